//! Rows of all cores that there are, as the build makes them from their texts (`cpus/*.txt`, `build/tables.rs`).

use super::metrics;
use super::perf_metrics;
use super::tree::{
    BalanceInputs, Clocks, CorrectionInputs, DoubtfulSlots, Expr, Formula, Input, NodeRow, RetirementInputs,
    Tree,
};
use super::{Counters, Counting, Event, Leader, Model, NoDeeper, Variant};

include!(concat!(env!("OUT_DIR"), "/cpus.rs"));
