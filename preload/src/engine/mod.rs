//! The regions of a thread: the tree of those that have been executed, the stack of those that are open, and the handle
//! that is read at both ends.
//!
//! A begin and an end of the steady state (`steady`) take no lock, no memory and no system call, and work in a signal
//! handler; all else (`slow`) runs with signals blocked. Names are looked up by where they are, then by what they say (`index`).

mod empty;
mod frame;
mod index;
mod node;
mod record;
pub mod slow;
mod split;
pub mod steady;
mod thread;
mod totals;
mod turns;

pub use thread::{ENDED, GONE, ThreadState, current};
pub use totals::{SoFar, forget, so_far};
