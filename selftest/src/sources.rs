//! The two sources side by side: what registers and general-purpose counters say of the same microkernel. SLOTS is one counter, so
//! they measure one after the other.
#![forbid(unsafe_code)]

use super::bottlenecks::{self, Bottleneck, Stretch};
use super::kernels::SlotMix;
use super::machine::TestMachine;
use super::raw::{EventTarget, MappedEvent, Start};
use super::report::{CheckObstacle, CheckResult, seen};
use serde::Serialize;
use topdown::{Corrections, Node, Options, SourceKind, TopDown};

/// INT_MISC.UOP_DROPPING, by the core: slots that both sources have in frontend bound, and the published metrics take out. (They correct
/// nothing on Lion Cove and later.)
const DROPPED: [(&str, u64); 3] = [("Sunny", 0x100d), ("Golden", 0x10ad), ("Redwood", 0x10ad)];

/// A share by one source, and the bound on its error.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SourceShare {
    value: f64,
    bound: f64,
}

/// How the two of a node differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum SourceVerdict {
    /// By no more than both bounds together.
    Agree,
    Differ,
}

/// A node by both.
#[derive(Debug, Serialize)]
pub struct Pair {
    node: &'static str,
    registers: SourceShare,
    counters: SourceShare,
    /// Registers less counters.
    difference: f64,
    verdict: SourceVerdict,
}

/// A microkernel by both.
#[derive(Debug, Serialize)]
pub struct WorkloadComparison {
    workload: &'static str,
    /// The part of all slots that INT_MISC.UOP_DROPPING counted, where the published metrics correct by it.
    dropped: Option<f64>,
    nodes: Vec<Pair>,
}

/// A handle on that source, as it is.
pub fn open(source: SourceKind) -> Result<TopDown, String> {
    let options = Options { source, corrections: Corrections::Bare, ..Options::default() };
    TopDown::open(&options).map_err(|error| error.to_string())
}

/// Which sources there are: both; or else why not.
pub fn both() -> Result<(), CheckObstacle> {
    let [registers, counters] =
        [SourceKind::Registers, SourceKind::Counters].map(|source| open(source).map(drop).err());
    match (registers, counters) {
        (None, None) => Ok(()),
        (None, Some(why)) => Err(CheckObstacle(format!("registers alone can be opened; counters: {why}"))),
        (Some(why), None) => Err(CheckObstacle(format!("counters alone can be opened; registers: {why}"))),
        (Some(one), Some(other)) => Err(CheckObstacle(format!("neither can be opened: {one}; {other}"))),
    }
}

/// Runs a microkernel for both: registers before and after counters, so that what drifts widens the bound of the registers.
pub fn compare(bottleneck: &Bottleneck, machine: &TestMachine) -> Result<WorkloadComparison, CheckObstacle> {
    let mut stretch = bottleneck.stretch(machine.emulated)?;
    let mix = machine.emulated.then_some(bottleneck.mix);
    let mut by = |source| measure(source, machine, mix, &mut stretch);
    let (first, dropped) = by(SourceKind::Registers)?;
    let (counters, _) = by(SourceKind::Counters)?;
    let (second, _) = by(SourceKind::Registers)?;
    Ok(WorkloadComparison { workload: bottleneck.name, dropped, nodes: pairs([&first, &second], &counters) })
}

/// The nodes by a source; and, of registers, the part of the slots that the core dropped.
fn measure(
    source: SourceKind,
    machine: &TestMachine,
    mix: Option<SlotMix>,
    stretch: &mut Stretch,
) -> Result<(Vec<Node>, Option<f64>), CheckObstacle> {
    let td = open(source).map_err(CheckObstacle)?;
    let core = td.info()?.core;
    let code = DROPPED.iter().find(|(name, _)| source == SourceKind::Registers && core.starts_with(name));
    let event = code.and_then(|(_, code)| {
        MappedEvent::open(&machine.pmu, *code, EventTarget::Thread(0), Start::Running, None).ok()
    });
    let (before, after) = bottlenecks::samples(&td, mix, bottlenecks::time(machine.emulated), stretch)?;
    let count = event.and_then(|event| event.count().ok()).filter(|count| count.enabled == count.running);
    let slots = after.slots.saturating_sub(before.slots).max(1) as f64;
    let nodes = topdown::decode_tree(Some(&before), &after)?;
    Ok((nodes, count.map(|count| count.slots as f64 / slots)))
}

fn reading(low: f64, high: f64, value: f64) -> SourceShare {
    SourceShare { value, bound: (high - value).max(value - low) }
}

fn pairs(registers: [&Vec<Node>; 2], counters: &[Node]) -> Vec<Pair> {
    let of = |nodes: &[Node], id| nodes.iter().find(|node| node.id == id && node.measured == 1).copied();
    let pair = |counted: &Node| {
        let [first, second] = registers.map(|nodes| of(nodes, counted.id));
        let (first, second) = (first?, second?);
        let value = (first.value + second.value) / 2.0;
        let registers = reading(first.low.min(second.low), first.high.max(second.high), value);
        let counters = reading(counted.low, counted.high, counted.value);
        let (difference, bounds) = (registers.value - counters.value, registers.bound + counters.bound);
        let verdict = if difference.abs() <= bounds { SourceVerdict::Agree } else { SourceVerdict::Differ };
        Some(Pair { node: counted.name(), registers, counters, difference, verdict })
    };
    counters.iter().filter(|node| node.measured == 1).filter_map(pair).collect()
}

/// Both sources agree.
pub fn judge(compared: &WorkloadComparison) -> CheckResult {
    let count = |verdict| compared.nodes.iter().filter(|pair| pair.verdict == verdict).count();
    let mut what =
        format!("{} of {} nodes agree within both bounds", count(SourceVerdict::Agree), compared.nodes.len());
    if let Some(dropped) = compared.dropped {
        what += &format!("; dropped (INT_MISC.UOP_DROPPING): {:.2} % of the slots", 100.0 * dropped);
    }
    what += &format!(
        "\n              {:<24} {:>17} {:>17} {:>11}",
        "points (within)", "registers", "counters", "difference"
    );
    for Pair { node, registers, counters, difference, verdict } in &compared.nodes {
        let text = |SourceShare { value, bound }: &SourceShare| {
            format!("{:.2} ({:.2})", 100.0 * value, 100.0 * bound)
        };
        what += &format!(
            "\n              {node:<24} {:>17} {:>17} {:>+11.2}{}",
            text(registers),
            text(counters),
            100.0 * difference,
            match verdict {
                SourceVerdict::Agree => "",
                SourceVerdict::Differ => "  MORE THAN BOTH BOUNDS",
            }
        );
    }
    seen(count(SourceVerdict::Differ) == 0 && !compared.nodes.is_empty(), what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use topdown::{TD_NODE_BACKEND_BOUND, TD_NODE_BAD_SPECULATION, TD_NODE_FRONTEND_BOUND, TD_NODE_RETIRING};

    const IDS: [u32; 4] =
        [TD_NODE_RETIRING, TD_NODE_BAD_SPECULATION, TD_NODE_FRONTEND_BOUND, TD_NODE_BACKEND_BOUND];

    fn nodes(values: [f64; 4], bound: f64) -> Vec<Node> {
        let node = |(id, value): (u32, f64)| Node {
            id,
            measured: 1,
            value,
            low: value - bound,
            high: value + bound,
            ..Node::default()
        };
        IDS.into_iter().zip(values).map(node).collect()
    }

    fn compared(registers: [[f64; 4]; 2], counters: [f64; 4], dropped: Option<f64>) -> WorkloadComparison {
        let [first, second] = registers.map(|values| nodes(values, 0.005));
        let nodes = pairs([&first, &second], &nodes(counters, 0.001));
        WorkloadComparison { workload: "made up", dropped, nodes }
    }

    fn verdicts(compared: &WorkloadComparison) -> Vec<SourceVerdict> {
        compared.nodes.iter().map(|pair| pair.verdict).collect()
    }

    #[test]
    fn what_both_bounds_cover_agrees() {
        let same = compared([[0.4, 0.1, 0.2, 0.3]; 2], [0.405, 0.097, 0.198, 0.3], None);
        assert_eq!(verdicts(&same), [SourceVerdict::Agree; 4]);
        let text = judge(&same).unwrap();
        assert!(
            text.holds && text.what.contains("4 of 4 nodes agree") && text.what.contains("-0.50"),
            "{text:?}"
        );
    }

    #[test]
    fn what_the_core_drops_is_in_both_sources_and_explains_no_difference() {
        let shifted = [[0.4, 0.1, 0.23, 0.27]; 2];
        for (counters, dropped) in [
            ([0.4, 0.13, 0.2, 0.27], None),
            ([0.4, 0.13, 0.2, 0.27], Some(0.031)),
            ([0.43, 0.1, 0.2, 0.27], Some(0.03)),
        ] {
            let text = judge(&compared(shifted, counters, dropped)).unwrap();
            assert!(!text.holds && text.what.contains("MORE THAN BOTH BOUNDS"), "{text:?}");
        }
    }

    #[test]
    fn what_drifts_is_in_the_bound() {
        let drifts = compared([[0.40, 0.1, 0.2, 0.3], [0.46, 0.1, 0.2, 0.24]], [0.45, 0.1, 0.2, 0.25], None);
        assert_eq!(verdicts(&drifts), [SourceVerdict::Agree; 4]);
    }
}
