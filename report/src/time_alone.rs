//! What text and page show of time alone: a table of regions and threads, and the trees of threads.
#![forbid(unsafe_code)]

use crate::extent::{ShownPlaces, regions_in};
use crate::model::{Figures, Item, Process, Region, Report, Thread};
use crate::words::{clean, count, percent, thousands, time};

/// So many threads have rows, the largest if there are more.
const MOST_THREADS: usize = 16;

/// Why slots are not told, as `topdown record` says it; None: of some they are.
pub fn sentence(report: &Report) -> Option<String> {
    let alone = report.time_alone.as_ref().filter(|alone| alone.whole.is_none())?;
    Some(format!("How slots divide cannot be told here, and this is time alone: {}.", clean(&alone.no_slots)))
}

/// What the times are.
pub const NOTE: &str = "Times are elapsed time by CLOCK_MONOTONIC, added up over threads: what they waited is in them, and of each execution \
                        the clock's own reading, some tens of ns; in a region around others also what marks or hooks take of those. CPU \
                        time is that of the thread, the kernel's, too. It is read of the first 16 executions of a region in each place, and of \
                        further ones as long as all before took 50 us or more on average; if any was not read, there is none (-).";

/// What the columns behind a row's name are.
pub const COLUMNS: [&str; 6] = ["executions", "elapsed", "of all", "each", "alone", "CPU time"];

/// A row of the table.
pub struct TimeRow<'r> {
    /// How far it is indented: below a region its threads are, in a tree regions below the one in which they began.
    pub depth: usize,
    pub name: String,
    item: &'r Item,
    part: RowPart,
}

/// What of an item a row shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowPart {
    /// What a program or a thread has done.
    Thread,
    Region,
    /// What ran in no region.
    Rest,
}

impl<'r> TimeRow<'r> {
    fn new(depth: usize, name: &str, item: &'r Item, part: RowPart) -> TimeRow<'r> {
        TimeRow { depth, name: name.into(), item, part }
    }

    /// The figures that it shows.
    pub fn figures(&self) -> &'r Figures {
        if self.part == RowPart::Rest { &self.item.exclusive } else { &self.item.inclusive }
    }

    /// Texts of the columns.
    pub fn cells(&self) -> [String; COLUMNS.len()] {
        let (figures, executions) = (self.figures(), self.item.counts.executions);
        let region = self.part == RowPart::Region;
        // (of what never ended nothing is known)
        let known = executions > 0 || self.item.counts.unended == 0;
        let shown = |ns: Option<u64>| ns.map_or("-".into(), |ns| time(ns as f64));
        let each = figures.wall_ns().filter(|_| executions > 0).map(|ns| ns as f64 / executions as f64);
        let share = figures.time_alone.and_then(|time| time.wall_share);
        let only = |text: String| if region { text } else { String::new() };
        [
            only(thousands(executions)),
            shown(figures.wall_ns().filter(|_| known)),
            share.filter(|_| known).map_or("-".into(), percent),
            only(each.map_or("-".into(), time)),
            only(shown(self.item.exclusive.wall_ns().filter(|_| known))),
            shown(figures.time_ns().filter(|_| !region || executions > 0)),
        ]
    }

    /// What is odd about its executions.
    pub fn odd(&self) -> Vec<String> {
        let of_region = self.part == RowPart::Region;
        crate::words::oddities(of_region.then_some(self.name.as_str()), &self.item.counts)
    }
}

/// The whole, each region, with its threads if there are several, and what ran in none. Of many regions those with the most time, in some
/// `most` rows.
pub fn rows(report: &Report, most: usize) -> Vec<TimeRow<'_>> {
    let Some(alone) = &report.time_alone else { return Vec::new() };
    let (whole, name) = match &alone.whole {
        None => (&report.whole.item, "whole program"),
        Some(item) => (item, "processes with time alone"),
    };
    let threads: Vec<(&Process, &Thread)> = threads(report).collect();
    let mut rows = vec![TimeRow::new(0, name, whole, RowPart::Thread)];
    if threads.len() > 1 {
        let wall = |(_, thread): &(&Process, &Thread)| thread.item.inclusive.wall_ns();
        let mut shown = threads.clone();
        shown.sort_by_key(|one| std::cmp::Reverse(wall(one)));
        shown.truncate(MOST_THREADS);
        rows.extend(
            shown.iter().map(|(_, thread)| TimeRow::new(1, &label(thread), &thread.item, RowPart::Thread)),
        );
    }
    let (regions, each) = regions_in(most, regions(report).count());
    for region in self::regions(report).take(regions) {
        rows.push(TimeRow::new(0, &region.name, &region.item, RowPart::Region));
        if threads.len() > 1 {
            let mut of: Vec<_> = region.threads.iter().collect();
            of.sort_by_key(|one| std::cmp::Reverse(one.item.inclusive.wall_ns()));
            rows.extend(of.into_iter().take(each).map(|one| {
                let thread = &report.processes[one.place.0].threads[one.place.1];
                TimeRow::new(1, &label(thread), &one.item, RowPart::Region)
            }));
        }
    }
    if regions > 0 {
        rows.push(TimeRow::new(0, "outside regions", whole, RowPart::Rest));
    }
    rows
}

/// "Not shown, with less time: 48 threads, 1,960 regions, in each region all threads but 4: -o FILE.csv", if some are not in the rows.
pub fn left_out(report: &Report, most: usize) -> Option<String> {
    let (regions, threads) = (regions(report).count(), threads(report).count());
    let (shown, each) = regions_in(most, regions);
    let of = |all: usize, shown, what| (shown < all).then(|| count((all - shown) as u64, what));
    let of_regions =
        (regions > 0 && each < threads).then(|| format!("in each region all threads but {each}"));
    let parts = [of(threads, MOST_THREADS, "thread"), of(regions, shown, "region"), of_regions];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("Not shown, with less time: {}: -o FILE.csv", parts.join(", ")))
}

fn regions(report: &Report) -> impl Iterator<Item = &Region> {
    report.regions.iter().filter(|region| region.time_alone)
}

/// The trees of threads with regions in others, a row for each place.
pub struct TimeTrees<'r> {
    /// Those that are shown.
    pub trees: Vec<(String, Vec<TimeRow<'r>>)>,
    /// How many places are not.
    pub left_out: usize,
    /// Threads that have one, whether or not it is shown.
    pub threads: usize,
}

/// In some `most` rows those with the most time.
pub fn trees(report: &Report, most: usize) -> TimeTrees<'_> {
    let nested = || threads(report).filter(|(_, thread)| thread.tree.iter().any(|place| place.depth > 0));
    let shown = ShownPlaces::new(nested().map(|(_, thread)| thread), most);
    let (all, threads): (usize, usize) =
        nested().fold((0, 0), |(places, threads), (_, thread)| (places + thread.tree.len(), threads + 1));
    let trees = nested().map(|(process, thread)| {
        let places = shown.of(thread).into_iter().map(|place| &thread.tree[place]);
        let rows = places.map(|place| TimeRow::new(place.depth, &place.name, &place.item, RowPart::Region));
        (format!("thread {} {} of process {}", thread.tid, clean(&thread.name), process.pid), rows.collect())
    });
    let trees: Vec<(String, Vec<_>)> =
        trees.filter(|(_, rows): &(String, Vec<_>)| !rows.is_empty()).collect();
    let left_out = all - trees.iter().map(|(_, rows)| rows.len()).sum::<usize>();
    TimeTrees { trees, left_out, threads }
}

/// Those of which clocks alone tell.
fn threads(report: &Report) -> impl Iterator<Item = (&Process, &Thread)> {
    let processes = report.processes.iter().filter(|process| process.time_alone);
    processes.flat_map(|process| process.threads.iter().map(move |thread| (process, thread)))
}

fn label(thread: &Thread) -> String {
    let before = if thread.before > 0 { format!(" and {} before it", thread.before) } else { String::new() };
    format!("{}{} {}{before}", thread.tid, if thread.ended { "" } else { " (no end)" }, thread.name)
}
