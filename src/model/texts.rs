//! Rows of the cores that have a text (`cpus/*.txt`), as the build makes them (`build/tables.rs`).

use super::metrics;
use super::tree::{Expr, Formula, Input, Row, Tree};
use super::{Counters, Counting, Event, Leader, Model};

include!(concat!(env!("OUT_DIR"), "/cpus.rs"));
