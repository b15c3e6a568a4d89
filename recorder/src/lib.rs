//! libtopdown-record.so: a program records itself (include/topdown_record.h).
//!
//! A thread of the library does what `topdown record -p` does from outside, on all other threads of the process, with the crate
//! topdown-record. The modules, none of which imports from a later one: `options` as C programs give them, `last_error`,
//! `descriptors`, `handover` and `helper` (the thread), `output` (the file), `recording` (one at a time), `capi`.

mod last_error;
mod options;

mod descriptors;
mod handover;
mod helper;
mod output;

mod recording;

mod capi;
