//! Sampling by bursts, from outside and without a patched kernel: which functions waste pipeline slots.
//!
//! A group of general-purpose counters is opened on each thread. At random instants it is enabled for three samples that lie a short gap
//! apart (PERF_EVENT_IOC_REFRESH), and then stops. What passed between two neighbouring samples belongs to the function in which
//! both are; a clock of each thread tells the time. Modules in the order in which data passes them:

mod event;
mod file_proof;

mod records;

mod proof;
mod sampler;
mod sideband;

mod chances;
mod spare_counters;

mod budget;

mod event_sampling;

mod spaces;
mod stacks;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod stops;

mod elf_file;
mod unwind;

mod settings;
mod unseen;
mod whom;

mod branch_records;
mod clock_event;
mod cpu_clock;
mod cpus;
mod latency;
mod mean_latency;

mod recording;

mod simulation;

mod recorder;

mod journal;

mod symbols;

mod statistics;

mod estimate;
mod held;
mod sources;
mod strata;

mod processes;
mod profile;

pub mod views;

mod compare;

pub use branch_records::lbr_of_cpus;
pub use budget::{Limit, Pace};
pub use compare::{
    ComparedCore, ComparedFunction, FiguresChange, PartChange, RecordedFile, RecordingComparison, TimeChange,
};
pub use cpus::CpuTotals;
pub use estimate::{EstimatedShares, NoShares};
pub use event_sampling::{EventSampling, SamplesOf};
pub use held::EventShare;
pub use journal::{Journal, JournalContents};
pub use latency::{FEWEST_LATENCIES, LONGEST_LATENCY, TimedSamplers, TimedSamples, TimedStart, TimedTarget};
pub use mean_latency::MeanLatency;
pub use profile::{
    CallStack, FunctionFigures, Profile, ProfiledCore, ProfiledFunction, ProfiledLine, ProfiledSample,
    ProfiledThread, StackFrame,
};
pub use recorder::{RecordUntil, Recorder, RecordingEnd};
pub use recording::Recording;
pub use records::CallGraph;
pub use settings::{Settings, counted_events};
pub use sources::{SourcePlace, Sources};
pub use stops::StopRecorder;
pub use symbols::SourceLine;
pub use unseen::Unseen;
