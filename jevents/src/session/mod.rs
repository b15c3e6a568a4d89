//! Lists of events that are measured together on every CPU: `struct event` and `struct eventlist`, whose memory callers
//! share (`layout`), made from a text (`parse`), opened (`open`), read (`read`) and printed (`print`).

pub mod layout;
pub mod open;
pub mod parse;
pub mod print;
pub mod read;

pub use layout::{Event, EventList, List};
