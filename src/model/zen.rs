//! AMD's cores from Zen 4 on: general counters of dispatch slots (kernel-facts G.2; widths and formulas from perf's pmu-events,
//! models as in the kernel's arch/x86/kernel/cpu/amd.c).

use super::metrics::{BACKEND_BOUND, BAD_SPECULATION, FRONTEND_BOUND, RETIRING, SMT_CONTENTION};
use super::tree::Formula::{Balance, Rest, Slots};
use super::tree::{Input, Tree, root};
use super::{Counters, Event, Leader, Model, TRUTH, sixteens};

/// Family 0x19, too, without event 0x1a0.
pub(super) const ZEN_3: [u32; 80] = sixteens(&[0x00, 0x20, 0x30, 0x40, 0x50]);
const ZEN_4: [u32; 96] = sixteens(&[0x10, 0x60, 0x70, 0x80, 0x90, 0xa0]);
const ZEN_5: [u32; 96] = sixteens(&[0x00, 0x10, 0x20, 0x40, 0x60, 0x70]);
const ZEN_6: [u32; 80] = sixteens(&[0x50, 0x80, 0x90, 0xa0, 0xc0]);

/// Operations that retired, and all that were dispatched: the difference is bad speculation. Slots in which nothing was dispatched
/// are the frontend's, the other thread's or the backend's; one need not be counted. That is the backend's: so all fits beside
/// the NMI watchdog, which has the sixth counter.
pub(crate) static TREE: Tree = Tree {
    inputs: &[Input::Counter(0), Input::Counter(1), Input::Counter(2), Input::Counter(3)],
    clocks: None,
    nodes: &[
        root(RETIRING, Slots(0)),
        root(BAD_SPECULATION, Balance(&[1], &[0])),
        root(FRONTEND_BOUND, Slots(2)),
        root(BACKEND_BOUND, Rest),
        root(SMT_CONTENTION, Slots(3)),
    ],
    per_cycle: &[2.4, 3.0, 1.2, 0.3],
};

static COUNTERS: Counters = Counters {
    tree: &TREE,
    general: 6,
    dropping: None,
    leaders: &[Leader { event: Event::new("cpu-cycles", 0x76), by_cycle: true, general: true }],
    events: &[
        Event::new("ex_ret_ops", 0xc1),
        Event::new("de_src_op_disp.all", 0x7aa),
        Event::new("de_no_dispatch_per_slot.no_ops_from_frontend", 0x1_0000_01a0),
        Event::new("de_no_dispatch_per_slot.smt_contention", 0x1_0000_60a0).may_be_silent(),
    ],
    no_deeper: "level 2 takes 11 general counters, and the core has 6",
    alone: false,
};

const AMD: &str = "AuthenticAMD";

pub(super) const ROWS: &[Model] = &[
    Model::counted("Zen 4", &ZEN_4, 6, &COUNTERS).of(AMD, 0x19).proved(TRUTH),
    Model::counted("Zen 5", &ZEN_5, 8, &COUNTERS).of(AMD, 0x1a).proved(TRUTH),
    Model::counted("Zen 6", &ZEN_6, 8, &COUNTERS).of(AMD, 0x1a),
];
