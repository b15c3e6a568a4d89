//! The C interface: the only place with exported names. Each function checks its pointers, calls the room
//! that does the work, and turns what went wrong into a code and this thread's last-error text.
//!
//! Comments of exported items are those of include/topdown.h and include/topdown_inline.h, which `make header` makes from
//! their templates here: a comment that C programmers read has to say all in terms of C. Flags of a field are consecutive
//! bits: a new one takes the lowest that is free, and none ever changes.

mod border;
mod caller_struct;
mod decode;
mod decoders;
mod info;
mod inline;
mod measure;
mod options;
mod simulate;
mod sums;
mod texts;
mod turns;

pub use border::td;
pub use caller_struct::{CallerStruct, read_by_size};
pub use decode::*;
pub use info::*;
pub use inline::*;
pub use measure::*;
pub use options::*;
pub use simulate::*;
pub use sums::*;
pub use texts::*;
pub use turns::*;
