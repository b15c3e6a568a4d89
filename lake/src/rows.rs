//! The rows of a report.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};
use topdown::{Path, TD_NODE_NONE};
use topdown_report::model::{Figures, Item, Machine, Process, ProcessEnd, Report, Run};
use topdown_report::nodes::NodeInterval;
use topdown_report::timeline::{SeriesSubject, TimelineInterval};
use topdown_report::{clean, pattern};

/// What a row is of: the same for all nodes.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    pub host: Option<String>,
    pub rank: Option<String>,
    pub command: Option<String>,
    pub started_unix_ns: Option<i64>,
    pub pid: Option<i64>,
    pub parent_pid: Option<i64>,
    pub ended: Option<String>,
    pub tid: Option<i64>,
    pub thread: Option<String>,
    pub region: Option<String>,
    pub what: &'static str,
    pub part: &'static str,
    pub core: Option<String>,
    pub cpu: Option<String>,
    pub path: Option<String>,
    pub cpu_number: Option<i64>,
    pub cgroup: Option<String>,
    pub begin_ns: Option<i64>,
    pub end_ns: Option<i64>,
    pub executions: Option<i64>,
    pub time_ns: Option<i64>,
    pub wall_ns: Option<i64>,
}

/// A node of it. Slots, or what the unit is, of `total`.
pub struct Row<'r> {
    pub of: &'r Subject,
    pub node: &'r str,
    pub level: i64,
    pub parent: Option<&'r str>,
    pub unit: &'r str,
    pub total: Option<f64>,
    pub slots: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

/// The node of level 0: all slots.
const ALL: &str = "slots";

type Take<'t> = dyn FnMut(&Row) -> io::Result<()> + 't;

/// Hands on all rows.
pub fn each(report: &Report, take: &mut Take) -> io::Result<()> {
    let run = report.run.as_ref();
    let rank = run.and_then(|_| pattern::rank_among(std::env::vars_os()));
    let run_of = Subject {
        host: run.map(|run| clean(&run.host)).filter(|host| !host.is_empty()).or_else(|| host_here(run)),
        rank: rank.map(|rank| clean(&rank.to_string_lossy())),
        ..Subject::default()
    };
    let started = report.processes.iter().map(|process| process.started_unix_ns).min();
    let command = run
        .map(|run| clean(&run.command))
        .or_else(|| common(report, |process| Some(process.command.as_str())).map(clean));
    let machine = match report.machines.as_slice() {
        [machine] => Some(machine),
        _ => None,
    };
    let mut whole = with_machine(run_of.clone(), machine);
    whole.host = whole.host.or_else(|| common(report, |process| process.host.as_deref()).map(clean));
    whole.rank = whole.rank.or_else(|| common(report, |process| process.rank).map(|rank| rank.to_string()));
    whole.command = command;
    whole.started_unix_ns =
        run.and_then(began_unix_ns).or_else(|| started.filter(|_| run.is_none()).map(signed));
    whole.pid = run.and_then(|run| run.pid).map(i64::from);
    whole.path = path_of(&report.machines);
    item(&Subject { what: "whole", ..whole.clone() }, &report.whole, take)?;
    if let Some(outside) = &report.outside {
        for core in &outside.cores {
            let of = with_machine(whole.clone(), report.machines.get(core.machine));
            figures(&Subject { what: "core", part: "inclusive", ..of }, &core.figures, take)?;
        }
        for process in &outside.processes {
            let command = Some(clean(&process.name));
            let of = Subject { what: "outside", command, pid: process.pid.map(i64::from), ..whole.clone() };
            item(&of, &process.item, take)?;
        }
    }
    let subjects: Vec<Subject> =
        report.processes.iter().map(|process| of_process(&run_of, process, &report.machines)).collect();
    for (process, of) in report.processes.iter().zip(&subjects) {
        item(&Subject { what: "process", ..of.clone() }, &process.item, take)?;
        for thread in &process.threads {
            let (tid, thread_name) = (Some(thread.tid.into()), Some(clean(&thread.name)));
            item(&Subject { what: "thread", tid, thread: thread_name, ..of.clone() }, &thread.item, take)?;
        }
    }
    for region in &report.regions {
        let name = clean(&region.name);
        for one in &region.threads {
            let (process, thread) = one.place;
            let thread = &report.processes[process].threads[thread];
            let of = Subject {
                what: "region",
                region: Some(name.clone()),
                tid: Some(one.tid.into()),
                thread: Some(clean(&thread.name)),
                ..subjects[process].clone()
            };
            item(&of, &one.item, take)?;
        }
    }
    for series in report.timeline.iter().flat_map(|timeline| &timeline.series) {
        let mut of = Subject { what: "interval", part: "inclusive", ..whole.clone() };
        match &series.of {
            SeriesSubject::Whole => {}
            SeriesSubject::Process { pid, name } => {
                (of.what, of.pid, of.command) =
                    ("interval of process", Some((*pid).into()), Some(clean(name)));
            }
            SeriesSubject::Thread { tid, name } => {
                (of.what, of.tid, of.thread) = ("interval of thread", Some((*tid).into()), Some(clean(name)));
            }
            SeriesSubject::Cpu { cpu } => (of.what, of.cpu_number) = ("interval of CPU", Some((*cpu).into())),
            SeriesSubject::Cgroup { path, .. } => {
                (of.what, of.cgroup) = ("interval of cgroup", Some(clean(path)));
            }
        }
        series.intervals.iter().try_for_each(|one| interval(&mut of, one, take))?;
    }
    Ok(())
}

/// What all processes have in common.
fn common<'r, T: PartialEq + Copy>(report: &'r Report, of: impl Fn(&'r Process) -> Option<T>) -> Option<T> {
    let first = of(report.processes.first()?);
    first.filter(|_| report.processes.iter().all(|process| of(process) == first))
}

/// Where what has just run did, if it is no command that says so.
fn host_here(run: Option<&Run>) -> Option<String> {
    let name = run.and_then(|_| std::fs::read_to_string("/proc/sys/kernel/hostname").ok())?;
    Some(clean(name.trim())).filter(|name| !name.is_empty())
}

/// When a run began. (Of what is no command, before as much time as it took)
fn began_unix_ns(run: &Run) -> Option<i64> {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).ok();
    unix_ns(&run.started).or_else(|| Some(signed((now()?.as_nanos() as u64).saturating_sub(run.wall_ns))))
}

fn of_process(run: &Subject, process: &Process, machines: &[Machine]) -> Subject {
    let ended = match process.ended {
        ProcessEnd::Exited => "exited",
        ProcessEnd::Execed => "execed",
        ProcessEnd::Killed => "killed",
    };
    Subject {
        host: process.host.as_deref().map(clean).or_else(|| run.host.clone()),
        rank: process.rank.map(|rank| rank.to_string()).or_else(|| run.rank.clone()),
        command: Some(clean(&process.command)),
        started_unix_ns: Some(signed(process.started_unix_ns)),
        pid: Some(process.pid.into()),
        parent_pid: Some(process.parent.into()),
        ended: Some(ended.into()),
        ..with_machine(run.clone(), process.machine.map(|machine| &machines[machine]))
    }
}

fn with_machine(of: Subject, machine: Option<&Machine>) -> Subject {
    let Some(machine) = machine else { return of };
    let path = path_of(std::slice::from_ref(machine));
    Subject { core: Some(clean(&machine.core)), cpu: Some(clean(&machine.cpu)), path, ..of }
}

/// How counters were read: simulated, if any of it is.
fn path_of(machines: &[Machine]) -> Option<String> {
    let name = |path: Path| match path {
        Path::Rdpmc => "rdpmc",
        Path::Read => "read",
        Path::Simulated => "simulated",
    };
    let simulated = machines.iter().find(|machine| machine.path == Path::Simulated);
    let first = machines.first().filter(|first| machines.iter().all(|machine| machine.path == first.path));
    simulated.or(first).map(|machine| name(machine.path).into())
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn item(of: &Subject, item: &Item, take: &mut Take) -> io::Result<()> {
    let executions = Some(signed(item.counts.executions));
    for (part, one) in [("inclusive", &item.inclusive), ("exclusive", &item.exclusive)] {
        figures(&Subject { part, executions, ..of.clone() }, one, take)?;
    }
    Ok(())
}

fn figures(of: &Subject, figures: &Figures, take: &mut Take) -> io::Result<()> {
    let (time_ns, wall_ns) = (figures.time_ns().map(signed), figures.wall_ns().map(signed));
    let of = Subject { time_ns, wall_ns, ..of.clone() };
    all(&of, figures.slots(), take)?;
    figures.tree.0.iter().try_for_each(|one| node(&of, one, take))
}

fn interval(of: &mut Subject, interval: &TimelineInterval, take: &mut Take) -> io::Result<()> {
    (of.begin_ns, of.end_ns) = (Some(signed(interval.begin_ns)), Some(signed(interval.end_ns)));
    of.time_ns = Some(signed(interval.time_ns));
    all(of, Some(interval.slots), take)?;
    interval.nodes.iter().try_for_each(|one| node(of, one, take))
}

fn all(of: &Subject, slots: Option<u64>, take: &mut Take) -> io::Result<()> {
    let slots = slots.map(|slots| slots as f64);
    take(&Row {
        of,
        node: ALL,
        level: 0,
        parent: None,
        unit: ALL,
        total: slots,
        slots,
        low: slots,
        high: slots,
    })
}

fn node(of: &Subject, node: &NodeInterval, take: &mut Take) -> io::Result<()> {
    let NodeInterval { kind, whole, .. } = *node;
    let parent = Some(kind.parent).filter(|parent| *parent != TD_NODE_NONE).and_then(topdown::metric);
    let amount = |share: f64| Some(share * whole);
    take(&Row {
        of,
        node: kind.name(),
        level: kind.level.into(),
        parent: parent.and_then(|metric| metric.name.to_str().ok()),
        unit: kind.unit_name(),
        total: Some(whole),
        slots: amount(node.share.value),
        low: amount(node.share.low),
        high: amount(node.share.high),
    })
}

/// Of a time with its offset, "2026-01-31T12:34:56+0100".
fn unix_ns(time: &str) -> Option<i64> {
    let number = |at: std::ops::Range<usize>| time.get(at)?.parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let seconds = number(11..13)? * 3600 + number(14..16)? * 60 + number(17..19)?;
    let sign = if time.get(19..20)? == "-" { -1 } else { 1 };
    let offset = sign * (number(20..22)? * 3600 + number(22..24)? * 60);
    // days since 1970, of years that begin in March
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    Some((days * 86_400 + seconds - offset) * 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::unix_ns;

    #[test]
    fn local_times_are_times() {
        assert_eq!(unix_ns("1970-01-01T00:00:00+0000"), Some(0));
        assert_eq!(unix_ns("2026-01-31T12:34:56+0100"), Some(1_769_859_296_000_000_000));
        assert_eq!(unix_ns("2024-02-29T23:00:00-0230"), Some(1_709_256_600_000_000_000));
        assert_eq!(unix_ns("yesterday"), None);
    }
}
