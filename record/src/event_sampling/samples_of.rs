//! What samples of an event are of, in words and in JSON.
#![forbid(unsafe_code)]

use serde::Serialize;

/// What samples are of.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SamplesOf {
    /// Stretches in which this held.
    Condition {
        /// In words.
        condition: String,
    },
    /// What locates a node of the tree.
    Node {
        /// perf's name of it.
        node: String,
        /// The instruction itself was sampled, and not one after it.
        precise: bool,
        /// The node above it whose event was sampled, if none locates it alone.
        above: Option<String>,
        /// Other events that locate it.
        other_events: Vec<String>,
    },
    /// Time, as nothing here tells how slots divide.
    Time {
        /// Why not.
        #[serde(rename = "no_slots")]
        why: String,
        /// Threads were stopped and looked at; else a timer of the kernel has sampled.
        #[serde(skip)]
        by_stops: bool,
    },
}

impl SamplesOf {
    /// In a heading, behind what was recorded.
    pub(crate) fn heading(&self) -> String {
        match self {
            SamplesOf::Condition { condition } => format!(" where {condition}"),
            SamplesOf::Node { node, .. } => format!(" to locate {node}"),
            SamplesOf::Time { .. } => ", time alone".into(),
        }
    }

    /// What a function has a part of.
    pub(crate) fn all(&self) -> &'static str {
        match self {
            SamplesOf::Condition { .. } => "the stretches",
            SamplesOf::Node { .. } => "the events",
            SamplesOf::Time { .. } => "the time",
        }
    }

    /// Of a flame graph.
    pub(crate) fn title(&self) -> &'static str {
        match self {
            SamplesOf::Condition { .. } => "Stretches",
            SamplesOf::Node { .. } => "Events",
            SamplesOf::Time { .. } => "Time",
        }
    }

    /// Whether a sample stands for nanoseconds.
    pub(crate) fn is_time(&self) -> bool {
        matches!(self, SamplesOf::Time { .. })
    }

    /// Whether threads were stopped and looked at.
    pub(crate) fn is_by_stops(&self) -> bool {
        matches!(self, SamplesOf::Time { by_stops: true, .. })
    }

    /// Whether a condition was to hold.
    pub(crate) fn is_condition(&self) -> bool {
        matches!(self, SamplesOf::Condition { .. })
    }
}
