//! Hybrid CPUs as a whole: threads that run on P-cores and E-cores. Each kind has a group of its own, whose events count the
//! slots of the same categories, so the totals of both are added up, category by category.
//!
//! Of level 2 both kinds have three nodes under the same names. Machine clears and core bound are counted by one event on
//! E-cores and are a difference of two on P-cores, so they cannot be added up by counter; branch mispredicts can.

use super::e_cores;
use super::metrics::{
    BACKEND_BOUND, BAD_SPECULATION, BRANCH_MISPREDICTS, FRONTEND_BOUND, RETIRING, TD_NODE_BAD_SPECULATION,
    TD_NODE_NONE,
};
use super::p_counters;
use super::perf_metrics::DROPPED;
use super::tree::Formula::{self, Rest, Slots};
use super::tree::Input::Counter;
use super::tree::{Corrected, Row, Tree, child, root};
use super::{Counters, Event, Leader, Model, TRUTH};

const fn nodes(frontend: Formula) -> [Row; 5] {
    [
        root(RETIRING, Slots(0)),
        root(BAD_SPECULATION, Rest),
        root(FRONTEND_BOUND, frontend),
        root(BACKEND_BOUND, Slots(1)),
        child(BRANCH_MISPREDICTS, TD_NODE_BAD_SPECULATION, Slots(3)),
    ]
}

pub(crate) static TREE: Tree = Tree {
    inputs: &[Counter(0), Counter(1), Counter(2), Counter(3)],
    clocks: None,
    unsure: &[],
    nodes: &nodes(Slots(2)),
    per_cycle: &[1.6, 1.2, 0.8, 0.2],
};
/// With what the P-cores' frontend bound is corrected by.
pub(crate) static CORRECTED_TREE: Tree = Tree {
    inputs: &[Counter(0), Counter(1), Counter(2), Counter(3), Counter(4)],
    clocks: None,
    unsure: &[DROPPED],
    nodes: &nodes(Formula::Corrected(Corrected { slots: 2, less: &[4], more: &[] })),
    per_cycle: &[1.6, 1.2, 0.8, 0.2, 0.04],
};

const NO_DEEPER: &str = "of level 2 branch mispredicts alone, which both kinds of core count alike";

const fn counters(
    tree: &'static Tree,
    leaders: &'static [Leader],
    general: usize,
    events: &'static [Event],
) -> Counters {
    Counters {
        tree,
        leaders,
        events,
        general,
        subtree: TD_NODE_NONE,
        no_deeper: NO_DEEPER,
        alone: false,
        returns: None, // (no samples are of both together)
        clock: None,
    }
}

/// These events, and one more.
const fn and(events: [Event; 4], fifth: Event) -> [Event; 5] {
    [events[0], events[1], events[2], events[3], fifth]
}

/// Of E-cores in the place of what corrects the P-cores.
const NEVER: Event = e_cores::BACKEND.never();

static P_CORES: Counters =
    counters(&CORRECTED_TREE, p_counters::LEADERS, 0, &and(p_counters::SHARED, p_counters::UOP_DROPPING));
static GRACEMONT: Counters =
    counters(&CORRECTED_TREE, e_cores::LEADERS, 6, &and(e_cores::SHARED_BY_GRACEMONT, NEVER));
static CRESTMONT: Counters =
    counters(&CORRECTED_TREE, e_cores::LEADERS, 8, &and(e_cores::SHARED_BY_CRESTMONT, NEVER));
/// From Lion Cove on.
static LATER_P_CORES: Counters = counters(&TREE, p_counters::LEADERS, 0, &p_counters::SHARED);
static SKYMONT: Counters = counters(&TREE, e_cores::LEADERS, 8, &e_cores::SHARED_BY_SKYMONT);

const CPUS: [&[u32]; 4] =
    [e_cores::GRACEMONT_MODELS, e_cores::CRESTMONT_MODELS, e_cores::SKYMONT_MODELS, e_cores::DARKMONT_MODELS];

/// The row that samples name, of what the P-cores count. The width is the P-cores', which is the larger one.
pub(super) const ROWS: &[Model] = &[
    Model::counted("Golden or Raptor Cove and Gracemont", CPUS[0], 6, &P_CORES).proved(TRUTH),
    Model::counted("Redwood Cove and Crestmont", CPUS[1], 6, &P_CORES),
    Model::counted("Lion Cove and Skymont", CPUS[2], 8, &LATER_P_CORES).proved(TRUTH),
    Model::counted("Cougar Cove and Darkmont", CPUS[3], 8, &LATER_P_CORES),
];

/// Of each row of `ROWS` what the E-cores count.
pub(super) static E_CORES: [Model; 4] = [
    Model::counted("Gracemont", CPUS[0], 5, &GRACEMONT),
    Model::counted("Crestmont", CPUS[1], 6, &CRESTMONT),
    Model::counted("Skymont", CPUS[2], 8, &SKYMONT),
    Model::counted("Darkmont", CPUS[3], 8, &SKYMONT),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Counting;

    #[test]
    fn both_kinds_of_core_count_the_same_categories_in_the_same_order_as_by_themselves() {
        for (whole, e_cores) in ROWS.iter().zip(&E_CORES) {
            assert_eq!(whole.models, e_cores.models, "{}", whole.core);
            assert!(whole.core.ends_with(&format!(" and {}", e_cores.core)), "{}", whole.core);
            assert!(whole.slots_per_cycle >= e_cores.slots_per_cycle, "{}", whole.core);
            assert!(whole.core.len() < 48, "td_info.core has no room for {}", whole.core);
            let alone = |core: &str| {
                let (_, row) = crate::model::named(core).unwrap();
                let Counting::Counters(counters) = row.counting else { unreachable!("plain counters") };
                (row.slots_per_cycle, counters)
            };
            let p_core = whole.core.split(" and ").next().unwrap();
            for (row, name) in [(whole, format!("{p_core}, by counters")), (e_cores, e_cores.core.into())] {
                let Counting::Counters(here) = row.counting else { unreachable!("plain counters") };
                let (width, counters) = alone(&name);
                assert_eq!((row.slots_per_cycle, here.general), (width, counters.general), "{name}");
                for node in here.tree.nodes {
                    let same = &counters.tree.nodes[counters.tree.place(node.metric.id).unwrap()];
                    let (place, input) = match (node.formula, same.formula) {
                        (Rest, Rest) => continue,
                        (Slots(place), Slots(input)) => (place, input),
                        (Formula::Corrected(here_of), other) => {
                            let less = here.events[here_of.less[0]];
                            match other {
                                Slots(input) => {
                                    assert_eq!((less, here_of.more.len()), (NEVER, 0), "{name} {node:?}");
                                    (here_of.slots, input)
                                }
                                Formula::Corrected(of) => {
                                    assert_eq!(less, counters.events[of.less[0]], "{name} {node:?}");
                                    (here_of.slots, of.slots)
                                }
                                _ => unreachable!("{name} {node:?}"),
                            }
                        }
                        _ => unreachable!("{name} {node:?}"),
                    };
                    assert_eq!(counters.tree.inputs[input].counter(), Some((input, 1)), "in slots");
                    assert_eq!(here.events[place], counters.events[input], "{name} {node:?}");
                }
            }
        }
    }
}
