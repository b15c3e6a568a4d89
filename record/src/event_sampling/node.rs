//! The event that locates a node of the tree of deeper levels.
#![forbid(unsafe_code)]

use super::resolved::{Config, PmuSampling, SamplingRule, core_pmus};
use super::samples_of::SamplesOf;
use super::written::Periods;
use crate::records::CallGraph;
use topdown::{DeepTree, LocatingEvent, deep_tree, metric, metric_of_name};
use topdown_seam::sysfs::Sysfs;

/// Precise samples are of the instruction itself.
const PRECISE: u64 = 2;
/// The PMU of a hybrid CPU's P-cores, whose tree it is.
const P_CORES: &str = "cpu_core";

/// Of `NODE`, or `NODE=EVENT`, on this machine.
///
/// # Errors
/// This CPU has no such node, no event locates it, or there is no PMU.
pub(super) fn located(text: &str, period: Option<u64>, sysfs: &Sysfs) -> Result<SamplingRule, String> {
    let tree = deep_tree().ok_or(
        "--locate: no tree with events that locate its nodes is published for this CPU, or its core is not counted (on AMD and Arm \
         neither IBS nor SPE is sampled). `topdown record` without --locate tells which functions waste slots",
    )?;
    let pmus = core_pmus(sysfs);
    let (with, without): (Vec<_>, Vec<_>) = pmus.iter().map(|(name, _)| *name).partition(|name| {
        let is_hybrid = pmus.iter().any(|(name, _)| *name == P_CORES);
        *name == if is_hybrid { P_CORES } else { "cpu" }
    });
    let pmu = pmus.iter().find(|(name, _)| with.contains(name));
    let Some((name, kind)) = pmu.and_then(|(name, pmu)| Some((*name, pmu.kind()?))) else {
        return Err("--locate: the kernel shows no PMU of cores in /sys/bus/event_source/devices, as in a virtual machine that has none \
                    (`topdown check` says why)"
            .into());
    };
    let LocatedNode { node, above, event, other_events } = LocatedNode::of(text, tree)?;
    let sampling = PmuSampling {
        name,
        kind,
        cpus: sysfs.cpus_with(kind),
        sampled: Config { config: event.config, config1: event.config1 },
        precise_ip: if event.is_precise { PRECISE } else { 0 },
        // (whose nodes follow from latencies, whose samples have them)
        is_timed: event.is_precise && tree.timed().next().is_some(),
        kernel: false,
        callers: CallGraph::FramePointers,
        reload: None,
        is_random: false,
        is_counted_beside: !event.has_one_counter,
    };
    Ok(SamplingRule {
        of: SamplesOf::Node { node, precise: false, above, other_events },
        event: event.name.clone(),
        periods: Periods { sampled: period.unwrap_or(event.period), other: 0 },
        pmus: vec![sampling],
        without,
    })
}

/// What locates a node.
struct LocatedNode<'t> {
    node: String,
    /// The node above it whose event that is.
    above: Option<String>,
    event: &'t LocatingEvent,
    /// Others that could sample.
    other_events: Vec<String>,
}

impl LocatedNode<'_> {
    fn of<'t>(text: &str, tree: &'t DeepTree) -> Result<LocatedNode<'t>, String> {
        let (name, wanted) = text.split_once('=').map_or((text, None), |(name, event)| (name, Some(event)));
        let (name, wanted) = (name.trim(), wanted.map(str::trim).filter(|wanted| !wanted.is_empty()));
        let node = metric_of_name(name).filter(|node| tree.level(node.id) > 0);
        let node = node.ok_or_else(|| {
            format!("--locate {text}: {name} is no node of this CPU's tree (`topdown list --nodes`)")
        })?;
        let located = metric(tree.located(node.id));
        let all: Vec<&LocatingEvent> = located.iter().flat_map(|located| tree.samples(located.id)).collect();
        let names = || all.iter().map(|event| event.name.clone());
        let is_wanted =
            |event: &&&LocatingEvent| wanted.is_none_or(|wanted| event.name.eq_ignore_ascii_case(wanted));
        let event = all.iter().find(is_wanted).ok_or_else(|| match wanted {
            Some(wanted) if !all.is_empty() => {
                let names: Vec<String> = names().collect();
                format!("--locate {text}: {wanted} does not locate it: {} does", names.join(" or "))
            }
            _ => format!("--locate {text}: no event locates it, nor a node above it"),
        })?;
        Ok(LocatedNode {
            node: node.field().into(),
            above: located.filter(|located| located.id != node.id).map(|located| located.field().into()),
            event,
            other_events: names().filter(|name| *name != event.name).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spr() -> &'static DeepTree {
        topdown::deep_tree_of("spr").unwrap()
    }

    #[test]
    fn a_node_is_located_by_its_first_event_or_the_one_that_is_named() {
        let one = LocatedNode::of("tma_l3_miss_bound", spr()).unwrap();
        assert_eq!((&*one.node, &*one.event.name), ("l3_miss_bound", "MEM_LOAD_RETIRED.L3_MISS"));
        assert_eq!((one.event.config, one.event.period), (0x20d1, 50_021));
        assert!(one.event.is_precise && one.other_events.is_empty() && one.above.is_none());
        let one = LocatedNode::of("contested_accesses = mem_load_l3_hit_retired.xsnp_miss", spr()).unwrap();
        assert_eq!(one.event.name, "MEM_LOAD_L3_HIT_RETIRED.XSNP_MISS");
        assert_eq!(one.other_events, ["MEM_LOAD_L3_HIT_RETIRED.XSNP_FWD"]);
    }

    #[test]
    fn a_node_without_an_event_is_located_by_that_of_a_node_above_it() {
        let one = LocatedNode::of("mem_bandwidth", spr()).unwrap();
        assert_eq!((&*one.node, one.above.as_deref()), ("mem_bandwidth", Some("l3_miss_bound")));
        assert_eq!(one.event.name, "MEM_LOAD_RETIRED.L3_MISS");
    }

    #[test]
    fn what_locates_nothing_is_said() {
        let nothing = |text| LocatedNode::of(text, spr()).err().unwrap();
        assert!(nothing("nowhere").contains("nowhere is no node of this CPU's tree"));
        let others = "CYCLES does not locate it: MEM_LOAD_RETIRED.L3_MISS does";
        assert!(nothing("l3_miss_bound=CYCLES").contains(others));
    }
}
