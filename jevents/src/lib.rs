//! The interface of libjevents: events by name, lists of them measured together, counters read from user space, records
//! of the ring buffer. docs/jevents.md says what each function does, and where it differs from libjevents and why.
//!
//! A name goes: event files (`cpu`, `environment`, `files`, `perfmon`, `list`) or the kernel's (topdown-seam's
//! `sysfs` and `terms`, `qualifier`) -> `resolve` -> `session` opens, reads and prints. `rdpmc`, `measure`, `interrupts` and `ring` stand alone.

mod caller;
mod say;
mod sys;

mod cpu;
mod environment;
mod files;
pub mod list;
mod perfmon;

mod generic;
pub mod qualifier;

pub mod extra;
mod format;
mod print_attr;
pub mod resolve;

mod session;

pub mod interrupts;
pub mod measure;
pub mod rdpmc;
pub mod ring;

pub mod capi;

#[cfg(any(test, fuzzing))]
pub mod fuzz;

pub use topdown_seam::Attr;
