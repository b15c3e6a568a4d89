//! Rows of all cores that there are, as the build makes them from their texts (`cpus/*.txt`, `build/tables.rs`).

use super::metrics;
use super::perf_metrics;
use super::tree::{Clocks, Corrected, Expr, Formula, Input, Retired, Row, Tree, Unsure};
use super::{Counters, Counting, Event, Leader, Model, NoDeeper, Variant};

include!(concat!(env!("OUT_DIR"), "/cpus.rs"));
