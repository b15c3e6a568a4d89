//! Groups that take turns: what their turns tell, how long these are, and which is next.
#![forbid(unsafe_code)]

mod drill;
mod lengths;
mod region;
mod stretches;

pub use drill::{DrillDown, Flag, flag};
pub use lengths::{FIRST_STRETCH, STRETCH, TurnLengths};
pub use region::RegionTurns;
pub use stretches::{Stretches, ToldNode};
