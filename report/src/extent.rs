//! How much of a large report is shown: what took the most time, and how much more there is. CSV has a line for each region in each thread.
#![forbid(unsafe_code)]

use crate::model::{Item, Process, Region, RegionOfThread, Thread, TreeRegion};
use serde::{Serialize, Serializer};
use std::cmp::Reverse;

/// In JSON all regions are, and so many with the threads of each,
const MOST_OF_REGIONS: usize = 3000;
/// but so many threads of them in any case;
const LEAST_OF_THREADS: usize = 500;
/// so many processes and their threads, together;
const MOST_OF_PROCESSES: usize = 3000;
/// and so many places in trees. (A report of 2,000 regions in 64 threads is to have less than 20 MB.)
const MOST_PLACES: usize = 1000;
/// Of each region so many threads are shown, if there is room.
const MOST_THREADS: usize = 16;
/// Rows of a region: it, and some threads.
const ROWS_OF_REGION: usize = 5;

/// Of each thread or place: the time by which the largest are told.
fn ns(item: &Item) -> u64 {
    item.inclusive.wall_ns().or(item.inclusive.time_ns()).unwrap_or(0)
}

/// Those of so much time are no more than `most`. (Of equal ones all or none.)
fn least_of(mut times: Vec<u64>, most: usize) -> u64 {
    match times.len() > most {
        true => times.select_nth_unstable_by(most, |a, b| b.cmp(a)).1.saturating_add(1),
        false => 0,
    }
}

/// How many regions are shown in so many rows, and threads of each.
pub fn regions_in(rows: usize, regions: usize) -> (usize, usize) {
    let shown = regions.min(rows / ROWS_OF_REGION);
    (shown, (rows / shown.max(1)).saturating_sub(1).min(MOST_THREADS))
}

/// Which places in the trees of these threads are shown.
#[derive(Clone, Copy)]
pub struct ShownPlaces(u64);

impl ShownPlaces {
    /// No more than so many, the largest.
    pub fn new<'r>(threads: impl Iterator<Item = &'r Thread>, most: usize) -> ShownPlaces {
        let places = threads.flat_map(|thread| &thread.tree);
        ShownPlaces(least_of(places.map(|place| ns(&place.item)).collect(), most))
    }

    /// Their indices in the thread's tree; none is below one that is not.
    pub fn of(self, thread: &Thread) -> Vec<usize> {
        let mut is_shown = Vec::with_capacity(thread.tree.len());
        for place in &thread.tree {
            let is_below_one = place.parent.is_none_or(|parent| is_shown[parent]);
            is_shown.push(is_below_one && ns(&place.item) >= self.0);
        }
        (0..is_shown.len()).filter(|place| is_shown[*place]).collect()
    }
}

#[derive(Serialize)]
struct RegionInJson<'r> {
    #[serde(flatten)]
    region: &'r Region,
    threads: Vec<&'r RegionOfThread>,
    threads_left_out: usize,
}

/// `Report::regions`, with the threads that have room.
pub fn regions<S: Serializer>(all: &[Region], serializer: S) -> Result<S::Ok, S::Error> {
    let threads = all.iter().flat_map(|region| &region.threads);
    let most = MOST_OF_REGIONS.saturating_sub(all.len()).max(LEAST_OF_THREADS);
    let times: Vec<u64> = threads.map(|thread| ns(&thread.item)).collect();
    let least = least_of(times.clone(), most);
    // (of those that have equal times at the end of what has room, the first)
    let mut equal = most.saturating_sub(times.iter().filter(|time| **time >= least).count());
    let mut has_room = move |time: u64| {
        time >= least
            || time + 1 == least && {
                let is_left = equal > 0;
                equal = equal.saturating_sub(1);
                is_left
            }
    };
    serializer.collect_seq(all.iter().map(|region| {
        let threads: Vec<_> = region.threads.iter().filter(|thread| has_room(ns(&thread.item))).collect();
        RegionInJson { region, threads_left_out: region.threads.len() - threads.len(), threads }
    }))
}

#[derive(Serialize)]
struct ProcessesInJson<'r> {
    processes: Vec<ProcessInJson<'r>>,
    processes_left_out: usize,
}

#[derive(Serialize)]
struct ProcessInJson<'r> {
    #[serde(flatten)]
    process: &'r Process,
    threads: Vec<ThreadInJson<'r>>,
}

#[derive(Serialize)]
struct ThreadInJson<'r> {
    #[serde(flatten)]
    thread: &'r Thread,
    tree: Vec<TreeRegion>,
    places_left_out: usize,
}

/// The processes with the most time that have room with their threads, in their order: at least the first of them.
fn with_most_time(all: &[Process], most: usize) -> Vec<&Process> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|k| Reverse(ns(&all[*k].item)));
    let mut rows = 0;
    let has_room = |k: &usize| {
        let is_first = rows == 0;
        rows += 1 + all[*k].threads.len();
        is_first || rows <= most
    };
    let mut shown: Vec<usize> = order.into_iter().take_while(has_room).collect();
    shown.sort_unstable();
    shown.into_iter().map(|k| &all[k]).collect()
}

/// `Report::processes`, those that have room, with the places in trees that have.
pub fn processes<S: Serializer>(all: &[Process], serializer: S) -> Result<S::Ok, S::Error> {
    let told = with_most_time(all, MOST_OF_PROCESSES);
    let shown = ShownPlaces::new(told.iter().flat_map(|process| &process.threads), MOST_PLACES);
    let tree = |thread: &Thread| -> Vec<TreeRegion> {
        let places = shown.of(thread);
        let parent = |place: &TreeRegion| place.parent.and_then(|parent| places.binary_search(&parent).ok());
        let places = places.iter().map(|place| &thread.tree[*place]);
        places.map(|place| TreeRegion { parent: parent(place), ..place.clone() }).collect()
    };
    let processes = told.iter().map(|process| ProcessInJson {
        process,
        threads: Vec::from_iter(process.threads.iter().map(|thread| {
            let tree = tree(thread);
            ThreadInJson { thread, places_left_out: thread.tree.len() - tree.len(), tree }
        })),
    });
    let processes_left_out = all.len() - told.len();
    ProcessesInJson { processes: processes.collect(), processes_left_out }.serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Counts, Figures};
    use crate::nodes::NodeTree;

    #[test]
    fn as_many_as_fit_are_shown_and_of_equal_ones_all_or_none() {
        assert_eq!(least_of(vec![], 0), 0);
        assert_eq!(least_of(vec![3, 1, 2], 3), 0);
        assert_eq!(least_of(vec![3, 1, 2], 2), 2);
        assert_eq!(least_of(vec![3, 2, 2, 1], 2), 3);
        assert_eq!(least_of(vec![0, 0], 1), 1);
    }

    #[test]
    fn few_regions_have_rows_for_many_threads() {
        assert_eq!(regions_in(200, 0), (0, 16));
        assert_eq!(regions_in(200, 10), (10, 16));
        assert_eq!(regions_in(200, 40), (40, 4));
        assert_eq!(regions_in(200, 2000), (40, 4));
    }

    fn item(time_ns: u64) -> Item {
        let figures = Figures {
            time_alone: None,
            lacks: false,
            slots: 0,
            share: None,
            time_ns,
            running: None,
            level_1: None,
            level_2: None,
            bottleneck: String::new(),
            tree: NodeTree::default(),
        };
        Item { counts: Counts::default(), inclusive: figures.clone(), exclusive: figures }
    }

    /// (The time of one that was killed is not known: it has less than what ran in it.)
    #[test]
    fn no_place_is_shown_below_one_that_is_not() {
        let place = |parent: Option<usize>, ns| TreeRegion {
            name: String::new(),
            parent,
            depth: usize::from(parent.is_some()),
            item: item(ns),
        };
        let tree = vec![place(None, 1), place(Some(0), 9), place(None, 8), place(Some(2), 7), place(None, 2)];
        let thread = Thread { tid: 1, before: 0, name: String::new(), ended: true, item: item(20), tree };
        assert_eq!(ShownPlaces::new([&thread].into_iter(), 3).of(&thread), [2, 3]);
        assert_eq!(ShownPlaces::new([&thread].into_iter(), 5).of(&thread), [0, 1, 2, 3, 4]);
    }
}
