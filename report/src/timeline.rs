//! What was counted in each interval of a run: slots of each category, with the bound on their shares.
#![forbid(unsafe_code)]

use crate::nodes::NodeInterval;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// Intervals of a run, of the whole and of its parts.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Timeline {
    /// When the run began, by the clock CLOCK_BOOTTIME: the times of other traces of the machine.
    pub boottime_ns: u64,
    /// The whole first, then its parts, if there are several, the largest first.
    pub series: Vec<Series>,
}

/// What a series is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "of", rename_all = "lowercase")]
pub enum SeriesSubject {
    /// All that was counted.
    Whole,
    /// A process.
    Process {
        /// Its id.
        pid: i32,
        /// What it calls itself.
        name: String,
    },
    /// A thread, with what it started.
    Thread {
        /// Its id.
        tid: i32,
        /// What it calls itself.
        name: String,
    },
    /// A CPU.
    Cpu {
        /// Its number.
        cpu: u32,
    },
    /// A cgroup.
    Cgroup {
        /// Its path from the root.
        path: String,
        /// What people call it.
        name: String,
    },
}

impl SeriesSubject {
    /// For a reader: "CPU 3".
    pub fn title(&self) -> String {
        match self {
            SeriesSubject::Whole => "all of it".into(),
            SeriesSubject::Process { pid, name } => format!("process {pid} {name}"),
            SeriesSubject::Thread { tid, name } => format!("thread {tid} {name}"),
            SeriesSubject::Cpu { cpu } => format!("CPU {cpu}"),
            SeriesSubject::Cgroup { name, .. } => name.clone(),
        }
    }
}

/// The intervals of one of them, one after the other.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// Of what.
    #[serde(flatten)]
    pub of: SeriesSubject,
    /// The oldest first.
    pub intervals: Vec<TimelineInterval>,
}

impl Series {
    /// Slots of all intervals.
    pub fn slots(&self) -> u64 {
        self.intervals.iter().map(|interval| interval.slots).sum()
    }
}

/// What was counted between two readings. In JSON the nodes of levels 1 and 2 are slots, by perf's names; `error_1` and `error_2` the
/// bounds on their shares (null: nothing was counted).
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineInterval {
    /// Nanoseconds since the start.
    pub begin_ns: u64,
    /// Its end, in nanoseconds since the start.
    pub end_ns: u64,
    /// Slots that were counted.
    pub slots: u64,
    /// Nanoseconds in which threads ran, or CPUs were there.
    pub time_ns: u64,
    /// Part of that in which the counters were counting; none if there was no time.
    pub running: Option<f64>,
    /// The nodes of levels 1 and 2, as shares.
    pub nodes: Vec<NodeInterval>,
}

impl TimelineInterval {
    /// Slots of a node.
    pub fn count(&self, node: &NodeInterval) -> u64 {
        (node.share.value * self.slots as f64).round() as u64
    }

    /// No share of this level is farther from the truth; None: nothing was counted.
    pub fn error(&self, level: u32) -> Option<f64> {
        let nodes = self.nodes.iter().filter(|node| node.kind.level == level);
        nodes.map(|node| node.share.error()).reduce(f64::max)
    }
}

impl Serialize for TimelineInterval {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("begin_ns", &self.begin_ns)?;
        map.serialize_entry("end_ns", &self.end_ns)?;
        map.serialize_entry("slots", &self.slots)?;
        map.serialize_entry("time_ns", &self.time_ns)?;
        map.serialize_entry("running", &self.running)?;
        for node in &self.nodes {
            map.serialize_entry(node.kind.name(), &self.count(node))?;
        }
        map.serialize_entry("error_1", &self.error(1))?;
        map.serialize_entry("error_2", &self.error(2))?;
        map.end()
    }
}
