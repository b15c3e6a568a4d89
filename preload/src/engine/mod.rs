//! The regions of a thread. Its state (`thread`) has three parts: the stack of open regions (`frame`), the nodes of the tree of those that
//! have been executed, and how they are found (`tree`), and the groups of counters, whose handles are read at both ends (`groups`).
//!
//! A begin and an end of the steady state (`steady`) take no lock, no memory and no system call, and work in a signal
//! handler; all else (`slow`) runs with signals blocked. Where nothing counts slots clocks are in the place of counters (`clocks`). Names are looked up by where they are (`cache`), then by what they say (`index`).

mod cache;
mod clocks;
pub mod empty;
mod execution;
mod frame;
mod groups;
mod handle;
mod index;
pub mod life;
mod node;
pub mod rotate;
pub mod slow;
mod split;
pub mod steady;
mod thread;
mod totals;
mod tree;
mod turn_clock;

pub use handle::ThreadHandle;
pub use node::SoFar;
pub use thread::{ENDED, GONE, ThreadState};
pub use totals::{forget, so_far};

#[cfg(test)]
mod tests;
