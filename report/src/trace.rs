//! A timeline as a Perfetto trace (ui.perfetto.dev): a counter track for each node, in slots per second, and one for the bound.
//!
//! Messages and field numbers are those of Perfetto's protos/perfetto/trace/trace_packet.proto and what it includes.
#![forbid(unsafe_code)]

use crate::proto::ProtoMessage;
use crate::timeline::{Series, SeriesSubject, Timeline, TimelineInterval};
use crate::words::clean;
use std::collections::BTreeMap;

/// `Trace`.
const PACKET: u32 = 1;
/// `TracePacket`. Without `timestamp_clock_id` times are those of CLOCK_BOOTTIME.
const TIMESTAMP: u32 = 8;
const SEQUENCE_ID: u32 = 10;
const TRACK_EVENT: u32 = 11;
const SEQUENCE_FLAGS: u32 = 13;
const TRACK_DESCRIPTOR: u32 = 60;
/// `SEQ_INCREMENTAL_STATE_CLEARED`.
const CLEARED: u64 = 1;
/// `TrackDescriptor`.
const UUID: u32 = 1;
const NAME: u32 = 2;
const PARENT_UUID: u32 = 5;
const COUNTER: u32 = 8;
/// `CounterDescriptor`.
const UNIT_NAME: u32 = 6;
/// `TrackEvent`.
const TYPE: u32 = 9;
const TRACK_UUID: u32 = 11;
const DOUBLE_VALUE: u32 = 44;
const TYPE_COUNTER: u64 = 4;

/// One writer, hence one sequence of packets.
const SEQUENCE: u64 = 1;

/// A trace on the way.
struct Trace {
    out: ProtoMessage,
    /// Tracks so far, which are their ids.
    tracks: u64,
}

impl Trace {
    fn packet(&mut self, packet: ProtoMessage) {
        let packet = packet.number(SEQUENCE_ID, SEQUENCE);
        self.out.push(PACKET, packet);
    }

    /// A new track below another; of a counter, if it has a unit.
    fn track(&mut self, name: &str, parent: Option<u64>, unit: Option<&str>) -> u64 {
        self.tracks += 1;
        let mut track = ProtoMessage::default().number(UUID, self.tracks).with(NAME, clean(name));
        if let Some(parent) = parent {
            track = track.number(PARENT_UUID, parent);
        }
        if let Some(unit) = unit {
            track = track.with(COUNTER, ProtoMessage::default().with(UNIT_NAME, unit));
        }
        let packet = ProtoMessage::default();
        let packet = if self.tracks == 1 { packet.number(SEQUENCE_FLAGS, CLEARED) } else { packet };
        self.packet(packet.with(TRACK_DESCRIPTOR, track));
        self.tracks
    }

    fn value(&mut self, track: u64, at_ns: u64, value: f64) {
        let event = ProtoMessage::default().number(TYPE, TYPE_COUNTER).number(TRACK_UUID, track);
        let event = event.double(DOUBLE_VALUE, value);
        self.packet(ProtoMessage::default().number(TIMESTAMP, at_ns).with(TRACK_EVENT, event));
    }

    /// The tracks of a series. A value holds from its time to that of the next; the last is at the end.
    fn series(&mut self, series: &Series, parent: u64, boottime_ns: u64) {
        let parent = match series.of {
            SeriesSubject::Whole => parent,
            _ => self.track(&series.of.title(), Some(parent), None),
        };
        let slots = self.track("slots", Some(parent), Some("slots/s"));
        let bound = self.track("bound on shares of level 1", Some(parent), Some("%"));
        let mut nodes: BTreeMap<u32, u64> = BTreeMap::new();
        for node in series.intervals.iter().flat_map(|interval| &interval.nodes) {
            let track = || self.track(node.kind.name(), Some(parent), Some("slots/s"));
            nodes.entry(node.kind.metric.id).or_insert_with(track);
        }
        for interval in &series.intervals {
            let at = boottime_ns + interval.begin_ns;
            let rate = |slots: u64| slots as f64 * 1e9 / (interval.end_ns - interval.begin_ns).max(1) as f64;
            self.value(slots, at, rate(interval.slots));
            if let Some(error) = interval.error(1) {
                self.value(bound, at, 100.0 * error);
            }
            for (id, track) in &nodes {
                let node = interval.nodes.iter().find(|node| node.kind.metric.id == *id);
                self.value(*track, at, node.map_or(0.0, |node| rate(interval.count(node))));
            }
        }
        let end = series.intervals.last().map_or(0, |interval: &TimelineInterval| interval.end_ns);
        for track in [slots].into_iter().chain(nodes.into_values()) {
            self.value(track, boottime_ns + end, 0.0);
        }
    }
}

/// The bytes of the trace.
pub fn encode(timeline: &Timeline, title: &str) -> Vec<u8> {
    let mut trace = Trace { out: ProtoMessage::default(), tracks: 0 };
    let root = trace.track(&format!("topdown: {title}"), None, None);
    for series in &timeline.series {
        trace.series(series, root, timeline.boottime_ns);
    }
    trace.out.bytes()
}
