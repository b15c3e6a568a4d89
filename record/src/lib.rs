//! Sampling by bursts, from outside and without a patched kernel: which functions waste pipeline slots.
//!
//! A group of plain counters is opened on each thread. At random instants it is enabled for three samples that lie a short gap
//! apart (PERF_EVENT_IOC_REFRESH), and then stops. What passed between two neighbouring samples belongs to the function in which
//! both are; where the first sample of a burst lies tells the time. Modules in the order in which data passes them:

mod event;
mod ring;

mod records;

mod proof;
mod sampler;
mod sideband;

mod budget;

mod conditional;

mod spaces;
mod stacks;

mod recorder;

mod symbols;

mod statistics;

mod estimate;
mod held;
mod profile;

pub mod views;

pub use budget::{Limit, Pace};
pub use conditional::Condition;
pub use estimate::{Confidence, Told, Untold};
pub use held::Held;
pub use profile::{CallStack, FunctionFigures, Profile, ProfiledCore, ProfiledFunction, ProfiledLine};
pub use recorder::{RecordUntil, Recorder, Recording, RecordingEnd, Settings};
