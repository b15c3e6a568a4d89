//! Which metrics there are: counters of slots, never shares alone, so that they can be added up and averaged over any time.
#![forbid(unsafe_code)]

use super::CountedTotals;
use std::collections::{BTreeMap, HashMap, HashSet};
use topdown::TD_UNIT_SLOTS;
use topdown_report::model::SIMULATED_PATH;
use topdown_report::nodes::NodeInterval;
use topdown_report::timeline::{SeriesSubject, TimelineInterval};
use topdown_report::{Report, model};

/// Names and values of labels.
pub type Labels = Vec<(&'static str, String)>;

/// What kind a metric is, and its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricValue {
    Counter(u64),
    Seconds(f64),
    Gauge(f64),
    Info,
}

/// Metrics of one name.
#[derive(Clone, Debug)]
pub struct MetricFamily {
    /// Without the unit.
    pub name: String,
    pub unit: Option<&'static str>,
    pub help: &'static str,
    pub samples: Vec<(Labels, MetricValue)>,
}

/// The largest values so far, by name and labels.
#[derive(Debug, Default)]
pub struct LargestValues(HashMap<(String, Labels), f64>);

/// All of them, by name.
#[derive(Debug, Default)]
pub struct Families(BTreeMap<String, MetricFamily>);

const SLOTS: &str = "Pipeline slots by level 1 category";
const LEVEL_2: &str = "Pipeline slots by level 2 category, and the level 1 category that it is part of";
const BOUND: &str = "No category of this level is farther from the truth than so many slots";
const TIME: &str = "Time in which threads ran, or CPUs were there";
const WALL: &str = "Elapsed time of executions, where nothing counts slots: what threads waited is in it";
const NO_SLOTS: &str = "Why slots are not told of some processes, or of all";
const COUNTED: &str = "Time of that in which the counters were counting";

/// What is known of one of them.
struct SeriesFigures<'f> {
    slots: u64,
    time_ns: u64,
    running: Option<f64>,
    nodes: &'f [NodeInterval],
}

impl<'f> From<&'f TimelineInterval> for SeriesFigures<'f> {
    fn from(one: &'f TimelineInterval) -> SeriesFigures<'f> {
        SeriesFigures { slots: one.slots, time_ns: one.time_ns, running: one.running, nodes: &one.nodes }
    }
}

impl<'f> From<&'f model::Figures> for SeriesFigures<'f> {
    fn from(one: &'f model::Figures) -> SeriesFigures<'f> {
        SeriesFigures { slots: one.slots, time_ns: one.time_ns, running: one.running, nodes: &one.tree.0 }
    }
}

impl Families {
    /// Of what was counted from outside, and of what processes measured themselves: of the whole only, if nothing was from outside.
    pub fn new(command: &str, totals: &CountedTotals, inside: Option<&Report>) -> Families {
        let mut all = Families::default();
        let about = vec![
            ("version", env!("CARGO_PKG_VERSION").to_string()),
            ("command", topdown_report::clean(command)),
        ];
        all.add("topdown", None, "What is measured", about, MetricValue::Info);
        for (of, interval) in &totals.series {
            let (prefix, labels) = labels_of(of);
            all.figures(prefix, &labels, &interval.into());
        }
        if let Some((instructions, cycles)) = totals.ipc {
            all.add(
                "topdown_instructions",
                None,
                "Instructions",
                Vec::new(),
                MetricValue::Counter(instructions),
            );
            all.add("topdown_cycles", None, "Cycles", Vec::new(), MetricValue::Counter(cycles));
        }
        if let Some(report) = inside {
            all.inside(report, totals.series.is_empty());
        }
        if totals.simulated || inside.is_some_and(topdown_report::simulated) {
            all.mark_simulated();
        }
        all
    }

    /// Each sample says that figures are made up: a label goes with it into whatever is made of it.
    fn mark_simulated(&mut self) {
        let samples = self.0.values_mut().flat_map(|family| &mut family.samples);
        samples.for_each(|(labels, _)| labels.push(("path", SIMULATED_PATH.into())));
        let remark = vec![("remark", topdown_report::SIMULATED.to_string()), ("path", SIMULATED_PATH.into())];
        self.add("topdown_simulated", None, "What is measured is nothing", remark, MetricValue::Info);
    }

    fn inside(&mut self, report: &Report, whole: bool) {
        if whole && !report.machines.is_empty() {
            self.figures("topdown", &Vec::new(), &(&report.whole.inclusive).into());
        }
        if let Some(alone) = &report.time_alone {
            let why = vec![("no_slots", topdown_report::clean(&alone.no_slots))];
            self.add("topdown_time_alone", None, NO_SLOTS, why, MetricValue::Info);
        }
        // (of some, nothing is known before they end)
        for process in report.processes.iter().filter(|process| process.item.inclusive.slots > 0) {
            let labels =
                vec![("pid", process.pid.to_string()), ("process", topdown_report::clean(&process.command))];
            self.figures("topdown_process", &labels, &(&process.item.inclusive).into());
        }
        for region in report.regions.iter().filter(|region| region.time_alone) {
            let labels =
                vec![("region", topdown_report::clean(&region.name)), ("time_alone", "yes".to_string())];
            self.times("topdown_region", &labels, &region.item.inclusive);
            let executions = MetricValue::Counter(region.item.counts.executions);
            self.add("topdown_region_executions", None, "Executions that ended", labels, executions);
        }
        for region in report.regions.iter().filter(|region| !region.time_alone) {
            let labels = vec![("region", topdown_report::clean(&region.name))];
            self.figures("topdown_region", &labels, &(&region.item.inclusive).into());
            let executions = MetricValue::Counter(region.item.counts.executions);
            self.add("topdown_region_executions", None, "Executions that ended", labels, executions);
        }
    }

    /// What clocks tell, where they alone do.
    fn times(&mut self, prefix: &str, labels: &Labels, figures: &model::Figures) {
        for (name, help, ns) in [("wall", WALL, figures.wall_ns()), ("time", TIME, figures.time_ns())] {
            let Some(ns) = ns else { continue };
            let seconds = MetricValue::Seconds(ns as f64 / 1e9);
            self.add(&format!("{prefix}_{name}"), Some("seconds"), help, labels.clone(), seconds);
        }
    }

    fn figures(&mut self, prefix: &str, labels: &Labels, figures: &SeriesFigures) {
        let with =
            |more: &[(&'static str, String)]| labels.iter().cloned().chain(more.iter().cloned()).collect();
        let nodes = figures.nodes.iter().filter(|node| node.kind.unit == TD_UNIT_SLOTS);
        let mut errors = [None; 2];
        for node in nodes.filter(|node| node.kind.level <= 2) {
            let category = ("category", node.kind.metric.field().to_string());
            let slots = MetricValue::Counter((node.share.value * figures.slots as f64).round() as u64);
            if node.kind.level == 1 {
                self.add(prefix, Some("slots"), SLOTS, with(&[category]), slots);
            } else {
                let parent = topdown::metric(node.kind.parent).map_or("", |metric| metric.field());
                let labels = with(&[category, ("parent", parent.into())]);
                self.add(&format!("{prefix}_level2"), Some("slots"), LEVEL_2, labels, slots);
            }
            let error = &mut errors[node.kind.level as usize - 1];
            *error = Some(node.share.error().max(error.unwrap_or(0.0)));
        }
        for (level, error) in errors.iter().enumerate() {
            let Some(error) = error else { continue };
            let labels = with(&[("level", (level + 1).to_string())]);
            // (counts are rounded)
            let bound = MetricValue::Gauge((error * figures.slots as f64).ceil() + 1.0);
            self.add(&format!("{prefix}_bound"), Some("slots"), BOUND, labels, bound);
        }
        let time = figures.time_ns as f64 / 1e9;
        let counted = time * figures.running.unwrap_or(0.0);
        self.add(
            &format!("{prefix}_time"),
            Some("seconds"),
            TIME,
            labels.clone(),
            MetricValue::Seconds(time),
        );
        self.add(
            &format!("{prefix}_counted"),
            Some("seconds"),
            COUNTED,
            labels.clone(),
            MetricValue::Seconds(counted),
        );
    }

    fn add(
        &mut self,
        name: &str,
        unit: Option<&'static str>,
        help: &'static str,
        labels: Labels,
        value: MetricValue,
    ) {
        let family = self.0.entry(format!("{name}_{}", unit.unwrap_or_default()));
        let new = || MetricFamily { name: name.into(), unit, help, samples: Vec::new() };
        let family = family.or_insert_with(new);
        family.samples.push((labels, value));
    }

    /// None is less than it was: counters only grow. What a category had within the bound it still has, since slots are not given
    /// back; and so are the bounds. A name and its labels come once: of processes of one id, the last.
    pub fn at_least(mut self, most: &mut LargestValues) -> Vec<MetricFamily> {
        for family in self.0.values_mut() {
            let mut seen = HashSet::new();
            family.samples.reverse();
            family.samples.retain(|(labels, _)| seen.insert(labels.clone()));
            family.samples.reverse();
            let name = format!("{}_{}", family.name, family.unit.unwrap_or_default());
            for (labels, value) in &mut family.samples {
                let mut least = |now: f64| {
                    let most = most.0.entry((name.clone(), labels.clone())).or_insert(now);
                    *most = most.max(now);
                    *most
                };
                *value = match *value {
                    MetricValue::Counter(now) => MetricValue::Counter(now.max(least(now as f64) as u64)),
                    MetricValue::Seconds(now) => MetricValue::Seconds(least(now)),
                    MetricValue::Gauge(now) => MetricValue::Gauge(least(now)),
                    MetricValue::Info => MetricValue::Info,
                };
            }
        }
        self.0.into_values().collect()
    }
}

fn labels_of(of: &SeriesSubject) -> (&'static str, Labels) {
    let clean = topdown_report::clean;
    match of {
        SeriesSubject::Whole => ("topdown", Vec::new()),
        SeriesSubject::Process { pid, name } => {
            ("topdown_process", vec![("pid", pid.to_string()), ("process", clean(name))])
        }
        SeriesSubject::Thread { tid, name } => {
            ("topdown_thread", vec![("tid", tid.to_string()), ("thread", clean(name))])
        }
        SeriesSubject::Cpu { cpu } => ("topdown_cpu", vec![("cpu", cpu.to_string())]),
        SeriesSubject::Cgroup { path, name } => {
            ("topdown_cgroup", vec![("cgroup", clean(path)), ("name", clean(name))])
        }
    }
}
