//! What each thread and process of a command has counted, by the kernel's records: one for each so many slots of a thread. What a
//! thread did after its last record is in no row of its own, but in the rest.
#![forbid(unsafe_code)]

use super::figures::StatFigures;
use super::group::GroupCount;
use super::group::StatGroup;
use super::groups::RECORD_SLOTS;
use super::rows_per::RowsPer;
use std::collections::{BTreeMap, HashMap};
use topdown::{Error, Sample};
use topdown_seam::page::Times;
use topdown_seam::records::{RecordContent, TaskId, TaskRecord};

/// The threads that ran, in the order in which they began.
#[derive(Default)]
pub struct Tasks {
    all: Vec<Task>,
    processes: Vec<TaskId>,
    /// Where those that run are in `all`, by their thread ids.
    present: HashMap<i32, usize>,
    /// Records that found no room.
    lost: u64,
    /// The kernel has stopped sampling for a while.
    throttled: bool,
}

struct Task {
    id: TaskId,
    name: String,
    /// Its process: where that is in `processes`.
    process: usize,
    /// Its last record of each group.
    last: BTreeMap<usize, (Times, Vec<u64>)>,
}

impl Tasks {
    /// Takes records up, each with the number of its group, in the order of time.
    pub fn take(&mut self, records: Vec<(usize, TaskRecord)>) {
        for (group, record) in records {
            match record.says {
                RecordContent::Counted(id, time, values) => self.counted(group, id, time, values),
                RecordContent::Named(id, name, _) => {
                    let task = self.present(id);
                    self.all[task].name = name;
                }
                RecordContent::Began(id, by) => {
                    let by = self.present(by);
                    let (name, process) = (self.all[by].name.clone(), self.all[by].process);
                    let process = if self.all[by].id.pid == id.pid { Some(process) } else { None };
                    self.begins(id, name, process);
                }
                RecordContent::Ends(id) => _ = self.present.remove(&id.tid),
                RecordContent::Lost(records) => self.lost += records,
                RecordContent::Throttled => self.throttled = true,
                RecordContent::Mapped { .. } | RecordContent::CountedIn(..) | RecordContent::Made(..) => {}
            }
        }
    }

    fn counted(&mut self, group: usize, id: TaskId, time: Times, values: Vec<u64>) {
        let mut task = self.present(id);
        let goes_on = |(_, before): &(Times, Vec<u64>)| before.iter().zip(&values).all(|(a, b)| a <= b);
        if !self.all[task].last.get(&group).is_none_or(goes_on) {
            // (another has its id, and the record that says so was lost)
            task = self.begins(id, self.all[task].name.clone(), None);
        }
        self.all[task].last.insert(group, (time, values));
    }

    /// Where a thread is in `all`.
    fn present(&mut self, id: TaskId) -> usize {
        match self.present.get(&id.tid) {
            Some(task) if self.all[*task].id.pid == id.pid => *task,
            _ => {
                let of_process = self.present.values().find(|task| self.all[**task].id.pid == id.pid);
                let process = of_process.map(|task| self.all[*task].process);
                self.begins(id, String::new(), process)
            }
        }
    }

    fn begins(&mut self, id: TaskId, name: String, process: Option<usize>) -> usize {
        let process = process.unwrap_or_else(|| {
            self.processes.push(id);
            self.processes.len() - 1
        });
        self.all.push(Task { id, name, process, last: BTreeMap::new() });
        self.present.insert(id.tid, self.all.len() - 1);
        self.all.len() - 1
    }

    /// Those of which no record tells what they counted.
    fn untold(&self) -> usize {
        self.all.iter().filter(|task| task.last.is_empty()).count()
    }

    /// What is to be said of the rest.
    pub fn remarks(&self) -> Vec<String> {
        let untold = self.untold();
        let mut lines = vec![format!(
            "{REST}: what the kernel's records do not tell of single threads: the last {RECORD_SLOTS} slots or fewer of each on each \
             CPU where it ran, and all that {untold} of the {} threads did, which is less than that",
            self.all.len(),
        )];
        if self.lost > 0 {
            lines.push(format!(
                "{} records of threads were lost, since the kernel's buffers were full: what they told of is in the {REST}",
                self.lost
            ));
        }
        if self.throttled {
            lines.push(
                "the kernel has stopped the records of threads for a while, and from Linux 6.16 on the counters with them: raise \
                 kernel.perf_event_max_sample_rate"
                    .into(),
            );
        }
        lines
    }

    /// Of which row each is, by its number, and the rows' ids and names.
    fn rows(&self, by: RowsPer) -> (Vec<usize>, Vec<(i32, String)>) {
        if by == RowsPer::Thread {
            let names = self.all.iter().map(|task| (task.id.tid, task.name.clone()));
            return ((0..self.all.len()).collect(), names.collect());
        }
        let name = |process: &TaskId| {
            let leads = self.all.iter().rev().find(|task| task.id == *process);
            (process.pid, leads.map_or(String::new(), |task| task.name.clone()))
        };
        (self.all.iter().map(|task| task.process).collect(), self.processes.iter().map(name).collect())
    }

    /// What was counted: rows of threads or processes, the largest first, then the rest, then all. `counted`: by all groups, since
    /// they were opened; `enabled_ns`: how long the threads ran.
    ///
    /// # Errors
    /// -EINVAL: a record is not its group's.
    pub fn figures<'c>(
        &self,
        counted: &'c [GroupCount<'c>],
        enabled_ns: u64,
        by: RowsPer,
    ) -> Result<Vec<TaskRow<'c>>, Error> {
        let kinds = Kinds::new(counted);
        let mut all = TaskSum::none(&kinds);
        for (group, one) in counted.iter().enumerate() {
            all.add(kinds.of[group], &one.sample());
        }
        all.uncounted_ns = enabled_ns.saturating_sub(all.running_ns());
        // (Linux 7.2 counts it while the thread is on the group's own CPU, and at times else)
        let whole_time = |one: &GroupCount| one.sample().time_enabled_ns >= enabled_ns - enabled_ns / 1000;
        let is_whole_time = counted.iter().all(whole_time);
        let (row_of, names) = self.rows(by);
        let mut parts: Vec<TaskSum> = names.iter().map(|_| TaskSum::none(&kinds)).collect();
        for (task, row) in self.all.iter().zip(row_of) {
            let mut one = TaskSum::none(&kinds);
            for (group, (time, values)) in &task.last {
                one.add(kinds.of[*group], &counted[*group].group.sample_of_record(*time, values)?);
            }
            let enabled = task.last.values().map(|(time, _)| time.enabled).max().unwrap_or(0);
            // (since its last record on one CPU it may have run on others: what it did there is in the rest)
            let missing = if is_whole_time { enabled.saturating_sub(one.running_ns()) } else { u64::MAX };
            one.uncounted_ns = missing.min(all.uncounted_ns);
            parts[row].plus(&one);
            parts[row].uncounted_ns = parts[row].uncounted_ns.min(all.uncounted_ns);
        }
        let mut rest = all.clone();
        parts.iter().for_each(|part| rest.less(part));
        let id = |(id, name)| (Some(id), name);
        let mut rows: Vec<_> = names.into_iter().map(id).zip(parts).collect();
        rows.retain(|(_, part)| part.slots() > 0);
        rows.sort_by_key(|(_, part)| std::cmp::Reverse(part.slots()));
        rows.extend([((None, REST.into()), rest), ((None, ALL.into()), all)]);
        rows.into_iter().map(|((id, name), part)| kinds.figures(id, name, &part)).collect()
    }
}

/// The rows of what no record tells the thread of, and of all that was counted.
pub const REST: &str = "rest";
pub const ALL: &str = "all";

/// A thread or process, with its figures on each kind of core.
pub struct TaskRow<'c> {
    /// The thread's or process's; none: the rest, and all.
    pub id: Option<i32>,
    pub name: String,
    pub kinds: Vec<(&'c StatGroup, StatFigures)>,
}

impl TaskRow<'_> {
    /// Id, if there is one, and name.
    pub fn title(&self) -> String {
        self.id.map_or_else(|| self.name.clone(), |id| format!("{id} {}", self.name))
    }
}

/// The kinds of cores: a group of each, and which each group is of.
struct Kinds<'c> {
    first: Vec<(&'c StatGroup, Sample)>,
    of: Vec<usize>,
}

impl<'c> Kinds<'c> {
    fn new(counted: &'c [GroupCount<'c>]) -> Kinds<'c> {
        let mut kinds = Kinds { first: Vec::new(), of: Vec::new() };
        for one in counted {
            let known = kinds.first.iter().position(|(group, _)| group.info.pmu == one.group.info.pmu);
            kinds.of.push(known.unwrap_or_else(|| {
                kinds.first.push((one.group, emptied(&one.sample())));
                kinds.first.len() - 1
            }));
        }
        kinds
    }

    fn figures(&self, id: Option<i32>, name: String, part: &TaskSum) -> Result<TaskRow<'c>, Error> {
        let kinds = self.first.iter().zip(&part.kinds).map(|((group, zero), sum)| {
            // (what was not counted may have been on any kind)
            let time_enabled_ns = sum.time_running_ns + part.uncounted_ns;
            Ok((*group, StatFigures::between(zero, &Sample { time_enabled_ns, ..*sum })?))
        });
        let kinds = kinds.collect::<Result<Vec<_>, Error>>()?;
        Ok(TaskRow { id, name, kinds })
    }
}

/// A sample before anything was counted.
pub fn emptied(of: &Sample) -> Sample {
    Sample {
        slots: 0,
        slots_before: 0,
        time_enabled_ns: 0,
        time_running_ns: 0,
        counter: Default::default(),
        ..*of
    }
}

/// What was counted on each kind of core, by several threads.
#[derive(Clone)]
struct TaskSum {
    kinds: Vec<Sample>,
    /// In which they may have run uncounted, on any kind.
    uncounted_ns: u64,
}

impl TaskSum {
    fn none(kinds: &Kinds) -> TaskSum {
        TaskSum { kinds: kinds.first.iter().map(|(_, zero)| *zero).collect(), uncounted_ns: 0 }
    }

    fn add(&mut self, kind: usize, more: &Sample) {
        change(&mut self.kinds[kind], more, u64::saturating_add);
    }

    fn plus(&mut self, more: &TaskSum) {
        self.kinds.iter_mut().zip(&more.kinds).for_each(|(sum, more)| change(sum, more, u64::saturating_add));
        self.uncounted_ns = self.uncounted_ns.saturating_add(more.uncounted_ns);
    }

    fn less(&mut self, part: &TaskSum) {
        self.kinds.iter_mut().zip(&part.kinds).for_each(|(sum, part)| change(sum, part, u64::saturating_sub));
        self.uncounted_ns = self.uncounted_ns.saturating_sub(part.uncounted_ns);
    }

    fn running_ns(&self) -> u64 {
        self.kinds.iter().map(|sum| sum.time_running_ns).sum()
    }

    fn slots(&self) -> u64 {
        self.kinds.iter().map(|sum| sum.slots).sum()
    }
}

/// Adds counts to a sum, or takes them out of it. (How long counters were enabled is another thing.)
pub fn change(sum: &mut Sample, by: &Sample, how: impl Fn(u64, u64) -> u64) {
    sum.slots = how(sum.slots, by.slots);
    sum.slots_before = sum.slots; // no register holds any
    sum.time_running_ns = how(sum.time_running_ns, by.time_running_ns);
    sum.counter.iter_mut().zip(by.counter).for_each(|(sum, by)| *sum = how(*sum, by));
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIN: TaskId = TaskId { pid: 10, tid: 10 };
    const THREAD: TaskId = TaskId { pid: 10, tid: 11 };
    const CHILD: TaskId = TaskId { pid: 12, tid: 12 };

    fn counted(id: TaskId, slots: u64) -> RecordContent {
        RecordContent::Counted(id, Times::default(), vec![slots, slots / 2])
    }

    fn tasks(says: impl IntoIterator<Item = (usize, u64, RecordContent)>) -> Tasks {
        let mut tasks = Tasks::default();
        let records = says.into_iter().map(|(group, time, says)| (group, TaskRecord { time, says }));
        let mut records: Vec<_> = records.collect();
        records.sort_by_key(|(_, record)| record.time);
        tasks.take(records);
        tasks
    }

    fn last(tasks: &Tasks) -> Vec<(i32, &str, u64)> {
        let slots = |task: &Task| task.last.values().map(|(_, values)| values[0]).sum();
        tasks.all.iter().map(|task| (task.id.tid, task.name.as_str(), slots(task))).collect()
    }

    #[test]
    fn each_thread_has_its_last_records_of_all_cpus() {
        // (as they lie in the buffers of two CPUs)
        let tasks = tasks([
            (0, 1, RecordContent::Named(MAIN, "sh".into(), true)),
            (0, 5, counted(MAIN, 100)),
            (0, 9, counted(THREAD, 40)),
            (1, 2, RecordContent::Began(THREAD, MAIN)),
            (1, 3, RecordContent::Began(CHILD, MAIN)),
            (1, 4, RecordContent::Named(CHILD, "cc1".into(), true)),
            (1, 6, counted(MAIN, 7)),
            (1, 7, counted(MAIN, 8)),
            (1, 8, RecordContent::Ends(CHILD)),
        ]);
        assert_eq!(last(&tasks), [(10, "sh", 108), (11, "sh", 40), (12, "cc1", 0)]);
        assert_eq!(tasks.untold(), 1);
        let (row_of, names) = tasks.rows(RowsPer::Process);
        assert_eq!((row_of, names), (vec![0, 0, 1], vec![(10, "sh".to_string()), (12, "cc1".into())]));
    }

    #[test]
    fn an_id_that_is_given_again_is_another_thread() {
        let ended = [
            (0, 1, counted(CHILD, 100)),
            (0, 2, RecordContent::Ends(CHILD)),
            (0, 3, RecordContent::Began(CHILD, MAIN)),
        ];
        let mut ended = ended.to_vec();
        ended.push((0, 4, counted(CHILD, 200)));
        assert_eq!(last(&tasks(ended)), [(12, "", 100), (10, "", 0), (12, "", 200)]);
        // the records between were lost
        let lost = [(0, 1, counted(CHILD, 100)), (0, 2, RecordContent::Lost(2)), (0, 3, counted(CHILD, 50))];
        let tasks = tasks(lost);
        assert_eq!((last(&tasks), tasks.lost), (vec![(12, "", 100), (12, "", 50)], 2));
    }
}
