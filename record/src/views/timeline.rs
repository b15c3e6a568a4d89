//! CPU time over time: what samples stand for, by when they were, and by the category of the function that ran.
#![forbid(unsafe_code)]

use super::flame::dominant;
use super::index::FunctionIndex;
use crate::profile::{CallStack, Profile, ProfiledSample, ProfiledThread};
use std::collections::{HashMap, HashSet};
use topdown::LEVEL_1;
use topdown_report::chart::PARTS;

/// A column has so many samples on average: what it has is known to a third or so.
const SAMPLES_EACH: usize = 8;
/// Columns at the most, of all and of a thread.
const MOST_COLUMNS: usize = 300;
const MOST_OF_THREAD: usize = 100;
/// Threads that have a lane.
const MOST_THREADS: usize = 12;

/// What was seen in a part of the time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TimeColumn {
    pub samples: usize,
    /// Nanoseconds (or events) by the category that has most of the slots of the function that ran; the last: it cannot be told.
    pub parts: [f64; PARTS],
}

/// Columns of the same length, from the first sample to the last.
#[derive(Clone, Debug)]
pub(super) struct Lane<'p> {
    /// None: all threads together.
    pub thread: Option<&'p ProfiledThread>,
    pub columns: Vec<TimeColumn>,
}

/// The lanes, and their length in nanoseconds.
pub(super) struct Lanes<'p> {
    pub lanes: Vec<Lane<'p>>,
    pub length_ns: f64,
}

/// A sample, and since when its thread did what it stands for.
#[derive(Clone, Copy)]
struct TimedSample {
    from: f64,
    at: f64,
    thread: i32,
    weight: f64,
    category: usize,
}

/// All, and the threads of most time, if there are several. None, where there are too few samples for two columns.
pub(super) fn lanes(profile: &Profile) -> Option<Lanes<'_>> {
    let length_ns = profile.samples.last()?.at_ns.max(1) as f64;
    let all = timed(profile);
    let lane = |thread, samples: &[TimedSample], most: usize| {
        let number = (samples.len() / SAMPLES_EACH).min(most);
        (number > 1).then(|| Lane { thread, columns: columns(samples, number, length_ns) })
    };
    let mut lanes = vec![lane(None, &all, MOST_COLUMNS)?];
    let mut by_thread: HashMap<i32, Vec<TimedSample>> = HashMap::new();
    all.iter().for_each(|sample| by_thread.entry(sample.thread).or_default().push(*sample));
    if by_thread.len() > 1 {
        // (on a hybrid CPU a thread may be there for each kind of core)
        let mut seen = HashSet::new();
        let first = profile.by_thread.iter().filter(|thread| seen.insert(thread.tid)).take(MOST_THREADS);
        let of_thread = |thread| lane(Some(thread), by_thread.get(&thread.tid)?, MOST_OF_THREAD);
        lanes.extend(first.filter_map(of_thread));
    }
    Some(Lanes { lanes, length_ns })
}

/// The time for which a sample stands is that before it, since the thread's last one at the earliest. Of events it is not known when
/// they were.
fn timed(profile: &Profile) -> Vec<TimedSample> {
    let (categories, is_time) = (categories(profile), profile.is_of_time());
    let mut last: HashMap<i32, f64> = HashMap::new();
    let sample = |sample: &ProfiledSample| {
        let (at, weight) = (sample.at_ns as f64, sample.weight_ns as f64);
        let before = last.insert(sample.thread, at).unwrap_or(0.0);
        let from = if is_time { before.max(at - weight) } else { at };
        TimedSample { from, at, thread: sample.thread, weight, category: categories[sample.stack] }
    };
    profile.samples.iter().map(sample).collect()
}

/// So many columns of the same length.
fn columns(samples: &[TimedSample], number: usize, length_ns: f64) -> Vec<TimeColumn> {
    let mut columns = vec![TimeColumn::default(); number];
    let each = length_ns / number as f64;
    let column = |at: f64| ((at / each) as usize).min(number - 1);
    for TimedSample { from, at, weight, category, .. } in samples {
        let (first, last) = (column(*from), column(*at));
        columns[last].samples += 1;
        for (k, column) in columns.iter_mut().enumerate().take(last + 1).skip(first) {
            let (begin, end) = (k as f64 * each, (k + 1) as f64 * each);
            let part = if at > from { (at.min(end) - from.max(begin)) / (at - from) } else { 1.0 };
            column.parts[*category] += weight * part.max(0.0);
        }
    }
    columns
}

/// Of each stack, the category of the innermost function as flame graphs have it.
fn categories(profile: &Profile) -> Vec<usize> {
    let index = FunctionIndex::new(profile);
    let category = |stack: &CallStack| {
        let function = index.find(stack.core, stack.functions().last()?)?;
        dominant(&profile.cores[stack.core], &function.own).map(|(place, _)| place)
    };
    profile.stacks.keys().map(|stack| category(stack).unwrap_or(LEVEL_1.len())).collect()
}
