//! Intel's P-cores before PERF_METRICS: general counters at both ends of the pipeline (kernel-facts G.1; formulas as the kernel's
//! and perf's).

use super::metrics::{BACKEND_BOUND, BAD_SPECULATION, FRONTEND_BOUND, RETIRING, TD_NODE_NONE};
use super::perf_metrics::INTEL;
use super::tree::Formula::{Balance, Rest, Slots};
use super::tree::{Input, Tree, root};
use super::{Counters, Event, FORMULA, INTEL_CYCLES, Model};

const WIDTH: u32 = 4;

/// Operations that were issued and did not retire are bad speculation, and so are the cycles in which the core recovers from it.
pub(crate) static TREE: Tree = Tree {
    inputs: &[Input::Counter(0), Input::Counter(1), Input::Counter(2), Input::Cycles(3, WIDTH)],
    clocks: None,
    nodes: &[
        root(RETIRING, Slots(0)),
        root(BAD_SPECULATION, Balance(&[1, 3], &[0])),
        root(FRONTEND_BOUND, Slots(2)),
        root(BACKEND_BOUND, Rest),
    ],
    per_cycle: &[1.6, 1.8, 0.8, 0.05],
};

static COUNTERS: Counters = Counters {
    tree: &TREE,
    subtree: TD_NODE_NONE,
    general: 8, // of a core that runs one thread
    dropping: None,
    leaders: &[INTEL_CYCLES],
    events: &[
        Event::new("topdown-slots-retired", 0x02c2),
        Event::new("topdown-slots-issued", 0x010e),
        Event::new("topdown-fetch-bubbles", 0x019c),
        Event::new("INT_MISC.RECOVERY_CYCLES", 0x0100_010d),
    ],
    no_deeper: "level 2 takes 13 general counters, and the core has 8",
    alone: true,
};

pub(super) const ROWS: &[Model] = &[Model::counted(
    "Skylake or Cascade Lake",
    &[0x4e, 0x5e, 0x55, 0x8e, 0x9e, 0xa5, 0xa6],
    WIDTH,
    &COUNTERS,
)
.of(INTEL, 6)
.proved(FORMULA)];
