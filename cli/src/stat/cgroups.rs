//! What was counted of each cgroup's tasks, by the kernel's records: one group of counters on each CPU counts all, and whenever the CPU
//! changes to a task of another cgroup, and after each RECORD_SLOTS slots, a record says what was counted until then and which cgroup ran. So the
//! number of cgroups costs nothing, and what is counted of a cgroup can be added to its ancestors.
#![forbid(unsafe_code)]

use super::cgroup_names::{CgroupNames, cut, is_in, title};
use super::figures::by_pmu;
use super::group::GroupCount;
use super::groups::RECORD_SLOTS;
use super::tasks::{REST, change, emptied};
use std::collections::{BTreeMap, HashMap};
use topdown::{Error, Sample};
use topdown_report::timeline::SeriesSubject;
use topdown_seam::page::Times;
use topdown_seam::records::{RecordContent, TaskId, TaskRecord};

/// What is counted of cgroups.
pub struct CgroupCounts {
    names: CgroupNames,
    rows: CgroupRows,
    /// What each CPU's last record told, by the number of its group.
    last: HashMap<usize, LastRecord>,
    /// Names of the kinds of cores that records came from.
    pmus: Vec<String>,
    /// In which cgroup each thread was when that was told last.
    threads: HashMap<i32, u64>,
    sums: CgroupSums,
    /// Records that found no room.
    lost: u64,
    /// The kernel has stopped sampling for a while.
    throttled: bool,
    /// Tasks that were moved to another cgroup while they ran.
    moved: u64,
}

/// What each cgroup's own tasks have counted, by id and the place of the PMU in `CgroupCounts::pmus`.
pub type CgroupSums = HashMap<(u64, usize), RecordSum>;

/// Which cgroups have rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CgroupRows {
    /// Each that has tasks of its own, down to so many levels below the root: deeper ones are counted in their ancestor there.
    Each(usize),
    /// Those of these paths, each with its descendants.
    Named(Vec<String>),
}

impl CgroupRows {
    /// Those of these paths, as a user writes them: the slashes around one may be there or not, and one that comes twice has one row.
    pub fn named(paths: &[String]) -> CgroupRows {
        let mut named: Vec<String> = Vec::new();
        for path in paths.iter().map(|path| cut(path, usize::MAX)) {
            if !named.contains(&path) {
                named.push(path);
            }
        }
        CgroupRows::Named(named)
    }
}

struct LastRecord {
    /// The place of its PMU.
    pmu: usize,
    sum: RecordSum,
    /// What ran after it is not known.
    is_lost: bool,
}

/// Counts of a group, as its records have them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordSum {
    times: Times,
    values: Vec<u64>,
}

impl RecordSum {
    fn since(&self, before: &RecordSum) -> RecordSum {
        let values = self.values.iter().enumerate();
        let values = values.map(|(k, now)| now.saturating_sub(before.values.get(k).copied().unwrap_or(0)));
        RecordSum { times: self.times.since(before.times), values: values.collect() }
    }

    /// Adds what was counted from one time to another.
    fn add_since(&mut self, now: &RecordSum, before: &RecordSum) {
        let passed = now.times.since(before.times);
        self.times.enabled += passed.enabled;
        self.times.running += passed.running;
        self.values.resize(now.values.len(), 0);
        for (k, (sum, now)) in self.values.iter_mut().zip(&now.values).enumerate() {
            *sum += now.saturating_sub(before.values.get(k).copied().unwrap_or(0));
        }
    }
}

/// A cgroup, with what was counted of it on each kind of core, as by one group.
pub struct CgroupRow<'c> {
    /// As users call it.
    pub name: String,
    /// Its path; of the rest: none.
    pub path: Option<String>,
    pub counted: Vec<GroupCount<'c>>,
}

impl CgroupRow<'_> {
    /// What a series of it is of; None: of the rest.
    pub fn series(&self) -> Option<SeriesSubject> {
        let name = self.name.clone();
        self.path.clone().map(|path| SeriesSubject::Cgroup { path, name })
    }
}

impl CgroupCounts {
    /// # Errors
    /// No hierarchy of cgroups is mounted, or a cgroup that is named is not there.
    pub fn new(rows: CgroupRows) -> Result<CgroupCounts, String> {
        let names = CgroupNames::read()?;
        if let CgroupRows::Named(paths) = &rows {
            for path in paths {
                names.find(path)?;
            }
        }
        let threads = names.threads();
        Ok(CgroupCounts::of(names, threads, rows))
    }

    fn of(names: CgroupNames, threads: HashMap<i32, u64>, rows: CgroupRows) -> CgroupCounts {
        CgroupCounts {
            names,
            rows,
            last: HashMap::new(),
            pmus: Vec::new(),
            threads,
            sums: HashMap::new(),
            lost: 0,
            throttled: false,
            moved: 0,
        }
    }

    /// Takes records up, each with the number of its group, whose PMU `pmu` tells, in the order of time.
    pub fn take(&mut self, records: Vec<(usize, TaskRecord)>, pmu: impl Fn(usize) -> String) {
        for (group, record) in records {
            match record.says {
                RecordContent::CountedIn(task, cgroup, times, values) => {
                    // (one that has moved was in another cgroup during a part of the stretch)
                    let before = is_one_thread(task).then(|| self.threads.insert(task.tid, cgroup)).flatten();
                    let has_moved = before.is_some_and(|before| before != cgroup);
                    self.moved += u64::from(has_moved);
                    self.counted(group, (!has_moved).then_some(cgroup), RecordSum { times, values }, &pmu);
                }
                RecordContent::Began(task, by) => {
                    if let Some(cgroup) = self.threads.get(&by.tid).copied() {
                        self.threads.insert(task.tid, cgroup);
                    }
                }
                RecordContent::Ends(task) => _ = self.threads.remove(&task.tid),
                RecordContent::Made(id, path) => self.names.made(id, path),
                RecordContent::Lost(records) => {
                    self.lost += records;
                    // (the CPU may have changed to any, and back)
                    match self.last.get_mut(&group) {
                        Some(last) => last.is_lost = true,
                        None => {
                            let pmu = place_of(&mut self.pmus, pmu(group));
                            let nothing = LastRecord { pmu, sum: RecordSum::default(), is_lost: true };
                            self.last.insert(group, nothing);
                        }
                    }
                }
                RecordContent::Throttled => self.throttled = true,
                _ => {}
            }
        }
    }

    /// A group has counted so much so far, and since its last record of this cgroup, if that is known.
    fn counted(&mut self, group: usize, cgroup: Option<u64>, now: RecordSum, pmu: impl Fn(usize) -> String) {
        let none = RecordSum::default();
        let before = self.last.get(&group);
        let place = before.map_or_else(|| place_of(&mut self.pmus, pmu(group)), |last| last.pmu);
        if let Some(cgroup) = cgroup.filter(|_| before.is_none_or(|last| !last.is_lost)) {
            let sum = self.sums.entry((cgroup, place)).or_insert_with(|| {
                self.names.wanted(cgroup);
                RecordSum::default()
            });
            sum.add_since(&now, before.map_or(&none, |last| &last.sum));
        }
        self.last.insert(group, LastRecord { pmu: place, sum: now, is_lost: false });
    }

    /// Of which rows a cgroup is: their titles, each with its path.
    fn rows_of(&self, id: u64) -> Vec<String> {
        let path = self.names.path(id);
        match &self.rows {
            CgroupRows::Each(depth) => vec![cut(&path, *depth)],
            CgroupRows::Named(paths) => paths.iter().filter(|named| is_in(&path, named)).cloned().collect(),
        }
    }

    /// What was counted so far.
    pub fn so_far(&self) -> CgroupSums {
        self.sums.clone()
    }

    /// What was counted since then: a row for each cgroup, the largest first. `counted`: by all groups meanwhile; what no record tells of is in
    /// the last row.
    ///
    /// # Errors
    /// -EINVAL: a record is not its group's.
    pub fn rows<'c>(
        &mut self,
        counted: &'c [GroupCount<'c>],
        since: &CgroupSums,
    ) -> Result<Vec<CgroupRow<'c>>, Error> {
        self.names.refresh();
        let kinds = by_pmu(counted)?;
        let place = |pmu: &str| kinds.iter().position(|(group, _)| group.info.pmu == pmu);
        let zeros: Vec<Sample> = kinds.iter().map(|(_, figures)| emptied(&figures.sum.last)).collect();
        let mut rest = zeros.clone();
        for one in counted {
            let Some(kind) = place(&one.group.info.pmu) else { continue };
            let mut part = one.sample();
            less(&mut part, &one.from.sample);
            add(&mut rest[kind], &part);
        }
        let mut parts: BTreeMap<String, Vec<Sample>> = BTreeMap::new();
        for (key @ (id, pmu), sum) in &self.sums {
            let Some(kind) = place(&self.pmus[*pmu]) else { continue };
            let sum = since.get(key).map_or(sum.clone(), |before| sum.since(before));
            let sample = kinds[kind].0.sample_of_record(sum.times, &sum.values)?;
            less(&mut rest[kind], &sample);
            for row in self.rows_of(*id) {
                add(&mut parts.entry(row).or_insert_with(|| zeros.clone())[kind], &sample);
            }
        }
        let slots = |part: &[Sample]| part.iter().map(|sample| sample.slots).sum::<u64>();
        let mut named: Vec<_> = parts.into_iter().filter(|(_, part)| slots(part) > 0).collect();
        named.sort_by_key(|(_, part)| std::cmp::Reverse(slots(part)));
        let named = named.into_iter().map(|(path, part)| (title(&path), Some(path), part));
        let row = |(name, path, part): (String, Option<String>, Vec<Sample>)| {
            let each = kinds.iter().zip(&zeros).zip(part);
            let counted = each.map(|(((group, _), zero), part)| GroupCount::of(group, zero, &part)).collect();
            CgroupRow { name, path, counted }
        };
        Ok(named.chain([(REST.to_string(), None, rest)]).map(row).collect())
    }

    /// Records that found no room so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// What is to be said of the rest.
    pub fn remarks(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{REST}: what no record of the kernel tells of: on each CPU the last {RECORD_SLOTS} slots or fewer"
        )];
        if let CgroupRows::Named(_) = self.rows {
            lines.push("what ran in other cgroups is in no row".into());
        }
        if self.lost > 0 {
            lines.push(format!(
                "{} records of cgroups were lost, since the kernel's buffers were full: what was counted meanwhile is in the {REST}",
                self.lost
            ));
        }
        if self.moved > 0 {
            lines.push(format!(
                "{} times a thread was moved to another cgroup: what their CPUs did since the record before the move is in the {REST}",
                self.moved
            ));
        }
        if self.throttled {
            lines.push(
                "the kernel has stopped the records for a while, and from Linux 6.16 on the counters with them: raise \
                 kernel.perf_event_max_sample_rate"
                    .into(),
            );
        }
        lines
    }
}

/// Whether the number is one thread's: 0 is what each CPU does when nothing runs, and -1 any thread that has ended but still runs.
fn is_one_thread(task: TaskId) -> bool {
    task.tid > 0
}

/// Adds a part to a sum, times too.
fn add(sum: &mut Sample, part: &Sample) {
    change(sum, part, u64::saturating_add);
    sum.time_enabled_ns += part.time_enabled_ns;
}

/// Where a name is in a list, to which it is added if it is not.
fn place_of(list: &mut Vec<String>, name: String) -> usize {
    list.iter().position(|other| *other == name).unwrap_or_else(|| {
        list.push(name);
        list.len() - 1
    })
}

/// Takes a part out of a sum, times too.
fn less(sum: &mut Sample, part: &Sample) {
    change(sum, part, u64::saturating_sub);
    sum.time_enabled_ns = sum.time_enabled_ns.saturating_sub(part.time_enabled_ns);
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: u64 = 1;
    const INNER: u64 = 10;
    const OTHER: u64 = 20;
    const PATHS: &[(u64, &str)] = &[(ROOT, "/"), (INNER, "/a/x"), (OTHER, "/b")];

    /// A record of a CPU's group: the thread, its cgroup, and slots so far.
    fn told(group: usize, time: u64, tid: i32, cgroup: u64, slots: u64) -> (usize, TaskRecord) {
        let times = Times { enabled: slots / 2, running: slots / 2 };
        let says = RecordContent::CountedIn(TaskId { pid: tid, tid }, cgroup, times, vec![slots, slots / 10]);
        (group, TaskRecord { time, says })
    }

    fn said(group: usize, time: u64, says: RecordContent) -> (usize, TaskRecord) {
        (group, TaskRecord { time, says })
    }

    fn counts(threads: &[(i32, u64)], records: Vec<(usize, TaskRecord)>) -> CgroupCounts {
        let threads = threads.iter().copied().collect();
        let mut counts = CgroupCounts::of(CgroupNames::known(PATHS), threads, CgroupRows::Each(usize::MAX));
        counts.take(records, |_| "cpu".into());
        counts
    }

    fn slots(counts: &CgroupCounts, cgroup: u64) -> u64 {
        counts.sums.get(&(cgroup, 0)).map_or(0, |sum| sum.values[0])
    }

    #[test]
    fn what_a_cpu_did_since_its_last_record_is_the_running_cgroups() {
        let records = vec![
            told(0, 1, 5, INNER, 100),
            told(1, 2, 6, OTHER, 30),
            told(0, 3, 0, ROOT, 104),
            told(0, 4, 5, INNER, 304),
            told(1, 5, 7, INNER, 80),
        ];
        let counts = counts(&[], records);
        assert_eq!((slots(&counts, INNER), slots(&counts, OTHER), slots(&counts, ROOT)), (350, 30, 4));
        assert_eq!(counts.sums[&(INNER, 0)].times, Times { enabled: 50 + 100 + 25, running: 175 });
    }

    #[test]
    fn what_a_moved_thread_did_before_is_no_cgroups() {
        let moves = vec![told(0, 1, 5, INNER, 100), told(0, 2, 5, OTHER, 150), told(0, 3, 5, OTHER, 190)];
        let counts_of_moves = counts(&[], moves);
        let found = (slots(&counts_of_moves, INNER), slots(&counts_of_moves, OTHER), counts_of_moves.moved);
        assert_eq!(found, (100, 40, 1));
        // a child was in its parent's cgroup when it began, and an id that is given again is another thread
        let (parent, child) = (TaskId { pid: 4, tid: 4 }, TaskId { pid: 5, tid: 5 });
        let children = vec![
            said(1, 1, RecordContent::Began(child, parent)),
            told(0, 2, 5, INNER, 100),
            said(0, 3, RecordContent::Ends(child)),
            told(0, 4, 5, OTHER, 130),
        ];
        let counts_of_children = counts(&[(4, ROOT)], children);
        let found =
            (slots(&counts_of_children, INNER), slots(&counts_of_children, OTHER), counts_of_children.moved);
        assert_eq!(found, (0, 30, 1));
        // the last record of a thread that has ended has no number
        let ended = vec![told(0, 1, -1, INNER, 100), told(0, 2, -1, OTHER, 150)];
        let counts_of_ended = counts(&[], ended);
        let found = (slots(&counts_of_ended, INNER), slots(&counts_of_ended, OTHER), counts_of_ended.moved);
        assert_eq!(found, (100, 50, 0));
    }

    #[test]
    fn what_lost_records_told_of_is_no_cgroups() {
        let records = vec![
            told(0, 1, 5, INNER, 100),
            told(1, 1, 6, OTHER, 10),
            said(0, 2, RecordContent::Lost(3)),
            told(0, 3, 5, INNER, 500),
            told(0, 4, 5, INNER, 560),
            told(1, 5, 6, OTHER, 20),
        ];
        let counts = counts(&[], records);
        assert_eq!((slots(&counts, INNER), slots(&counts, OTHER), counts.lost), (160, 20, 3));
        // before the first that is there, too
        let records =
            vec![said(0, 1, RecordContent::Lost(1)), told(0, 2, 5, INNER, 100), told(0, 3, 5, INNER, 140)];
        let counts = self::counts(&[], records);
        assert_eq!((slots(&counts, INNER), counts.lost), (40, 1));
    }

    #[test]
    fn rows_are_of_each_cgroup_or_of_those_that_are_named() {
        let mut each = counts(&[], vec![]);
        assert_eq!(each.rows_of(INNER), ["/a/x"]);
        assert_eq!(each.rows_of(99), ["/(removed cgroup 99)"]);
        each.take(vec![said(0, 1, RecordContent::Made(99, "/b/new".into()))], |_| "cpu".into());
        assert_eq!(each.rows_of(99), ["/b/new"]);
        each.rows = CgroupRows::Each(1);
        assert_eq!(each.rows_of(INNER), ["/a"]);
        each.rows = CgroupRows::named(&["a", "/a/", "/a//x", "/b"].map(String::from));
        assert_eq!(each.rows_of(INNER), ["/a", "/a/x"]);
        assert_eq!(each.rows_of(ROOT), [""; 0]);
    }

    #[test]
    fn a_cgroup_is_in_those_around_it() {
        assert!(is_in("/a/b", "/a") && is_in("/a", "/a/") && is_in("/a", "/"));
        assert!(!is_in("/ab", "/a") && !is_in("/a", "/a/b"));
        assert_eq!(cut("/a/b/c", 2), "/a/b");
        assert_eq!((cut("/", 3), cut("/a", usize::MAX)), ("/".into(), "/a".into()));
    }
}
