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

/// All, and the threads of most time, if there are several. None, where there are too few samples for two columns.
pub(super) fn lanes(profile: &Profile) -> Option<Lanes<'_>> {
    let length = profile.samples.last()?.at_ns + 1;
    let categories = categories(profile);
    let column = |number: usize, sample: &ProfiledSample| {
        ((sample.at_ns as u128 * number as u128) / u128::from(length)) as usize
    };
    let lane = |thread, samples: &[&ProfiledSample], most: usize| {
        let number = (samples.len() / SAMPLES_EACH).min(most);
        let mut columns = vec![TimeColumn::default(); number];
        for sample in samples.iter().filter(|_| number > 1) {
            let column = &mut columns[column(number, sample)];
            column.samples += 1;
            column.parts[categories[sample.stack]] += sample.weight_ns as f64;
        }
        (number > 1).then_some(Lane { thread, columns })
    };
    let all: Vec<&ProfiledSample> = profile.samples.iter().collect();
    let mut lanes = vec![lane(None, &all, MOST_COLUMNS)?];
    let mut by_thread: HashMap<i32, Vec<&ProfiledSample>> = HashMap::new();
    profile.samples.iter().for_each(|sample| by_thread.entry(sample.thread).or_default().push(sample));
    if by_thread.len() > 1 {
        // (on a hybrid CPU a thread may be there for each kind of core)
        let mut seen = HashSet::new();
        let first = profile.by_thread.iter().filter(|thread| seen.insert(thread.tid)).take(MOST_THREADS);
        let of_thread = |thread| lane(Some(thread), by_thread.get(&thread.tid)?, MOST_OF_THREAD);
        lanes.extend(first.filter_map(of_thread));
    }
    Some(Lanes { lanes, length_ns: length as f64 })
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
