//! Numbers and names as people read them.
#![forbid(unsafe_code)]

use crate::model::{
    CountedCommand, Counts, Figures, Machine, Overlap, Process, ProcessEnd, Report, Run, Thread,
};
use crate::nodes::NodeInterval;
use crate::{ranks, verdict};
use std::collections::BTreeMap;
use std::fmt::Write;
use topdown::{FEWEST_TURNS, LEVEL_1, LEVEL_2, Metric, Path};
pub use topdown_table::clean;

/// Nodes that have no place among the shares of levels 1 and 2 of the figures: deeper ones, and those of trees that are not divided
/// so. Each with its name and its parent's.
pub fn other_nodes(figures: &Figures) -> impl Iterator<Item = (String, &NodeInterval)> {
    let named = |metric: &Metric| {
        figures.level_1.is_some() && LEVEL_1.contains(metric)
            || figures.level_2.is_some() && LEVEL_2.contains(metric)
    };
    figures.tree.0.iter().filter(move |node| !named(node.kind.metric)).map(|node| {
        let parent = figures.tree.find(node.kind.parent).map(|parent| parent.kind.metric.title());
        let of = parent.map_or(String::new(), |parent| format!(" (of {parent})"));
        (format!("{}{of}", node.kind.metric.title()), node)
    })
}

/// 1,234,567.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (k, digit) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// "1 execution", "2,000 executions".
pub fn count(n: u64, one: &str) -> String {
    format!("{} {one}{}", thousands(n), if n == 1 { "" } else { "s" })
}

/// Three digits and a unit.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let (scale, unit) =
        units.iter().copied().find(|(scale, _)| value >= 0.9995 * scale).unwrap_or(units[units.len() - 1]);
    let value = value / scale;
    let digits = if scale == 1.0 || value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$}{unit}")
}

/// 1.23 G.
pub fn slots(n: f64) -> String {
    scaled(n, &[(1e15, " P"), (1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k"), (1.0, "")])
        .trim_end()
        .into()
}

/// 1.23 ms.
pub fn time(ns: f64) -> String {
    scaled(ns, &[(1e9, " s"), (1e6, " ms"), (1e3, " us"), (1.0, " ns")])
}

/// 12.3 %.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// What was measured with, a line for each CPU and PMU: how it was read, and down to which level.
pub fn machines(machines: &[Machine]) -> Vec<String> {
    let mut lines: Vec<(String, String)> = Vec::new();
    for machine in machines {
        let (of, how) = (cpu_and_pmu(machine), how_read(machine));
        match lines.iter_mut().find(|(known, _)| *known == of) {
            Some((_, all)) if !all.split("; ").any(|known| known == how) => *all += &format!("; {how}"),
            Some(_) => {}
            None => lines.push((of, how)),
        }
    }
    lines.into_iter().map(|(of, how)| format!("{of}, {how}")).collect()
}

fn how_read(Machine { path, level, .. }: &Machine) -> String {
    let how = match path {
        Path::Rdpmc => "read by RDPMC",
        Path::Read => "read by read(2)",
        Path::Simulated => SIMULATED,
    };
    format!("{how}, level {level}")
}

fn cpu_and_pmu(machine: &Machine) -> String {
    let Machine { cpu, core: name, pmu, slots_per_cycle, .. } = machine;
    let core = if name.is_empty() { String::new() } else { format!(" ({})", clean(name)) };
    let width =
        if *slots_per_cycle == 0 { String::new() } else { format!(", {slots_per_cycle} slots per cycle") };
    let bounded = if topdown::is_bounded(name) {
        ", INT_MISC.UOP_DROPPING is in the intervals where no counter was left for it"
    } else {
        ""
    };
    format!("{}{core}{width}{bounded}, PMU {}", clean(cpu), clean(pmu))
}

/// What each view says of figures that a simulated PMU has made up, whoever takes a part of it.
pub const SIMULATED: &str = "SIMULATED: the figures are made up";

/// Whether any of the figures are made up.
pub fn simulated(report: &Report) -> bool {
    report.machines.iter().any(|machine| machine.path == Path::Simulated)
}

/// Why nothing is measured, and in which processes.
pub fn troubles(report: &Report) -> BTreeMap<String, Vec<i32>> {
    let mut troubles: BTreeMap<String, Vec<i32>> = BTreeMap::new();
    if !report.trouble.is_empty() {
        troubles.insert(clean(&report.trouble), Vec::new());
    }
    for process in report.processes.iter().filter(|one| !one.trouble.is_empty() && !one.time_alone) {
        troubles.entry(clean(&process.trouble)).or_default().push(process.pid);
    }
    troubles
}

/// "process 7", "processes 7, 8 and 20 more".
fn processes(pids: &[i32]) -> String {
    const FEW: usize = 4;
    let few: Vec<String> = pids.iter().take(FEW).map(i32::to_string).collect();
    let more = if pids.len() > FEW { format!(" and {} more", pids.len() - FEW) } else { String::new() };
    format!("process{} {}{more}", if pids.len() == 1 { "" } else { "es" }, few.join(", "))
}

/// What is worth knowing of a report before its figures are believed.
pub fn remarks(report: &Report) -> Vec<String> {
    let kernel = &report.whole.kernel_note;
    let mut remarks: Vec<String> = (!kernel.is_empty()).then(|| clean(kernel)).into_iter().collect();
    remarks.extend(ranks::remarks(report));
    if let Some(outside) = &report.outside {
        of_outside(&mut remarks, outside, &report.whole.inclusive);
        remarks.extend(of_alone(outside, report));
        remarks.extend(of_e_cores(outside, report));
        remarks.extend(of_level_2(outside, report));
    }
    let sources = report.run.as_ref().map(|run| run.sources.as_str()).unwrap_or_default();
    remarks.extend(
        (!sources.is_empty() && (report.outside.is_none() || !report.regions.is_empty()))
            .then(|| sources.to_string()),
    );
    if report.run.as_ref().is_some_and(|run| run.sandboxed) {
        remarks.push(SANDBOXED.into());
    }
    for machine in &report.machines {
        // of a simulated one the line about it says so
        if !machine.note.is_empty() && machine.path != Path::Simulated {
            remarks.push(clean(&machine.note));
        }
    }
    remarks.extend(of_time_alone(report));
    for (trouble, pids) in troubles(report).into_iter().filter(|(_, pids)| !pids.is_empty()) {
        remarks.push(format!("{}: nothing is measured: {trouble}", processes(&pids)));
    }
    let pids = |ended: &dyn Fn(&Process) -> bool| -> Vec<i32> {
        report.processes.iter().filter(|process| ended(process)).map(|process| process.pid).collect()
    };
    let whose = if report.outside.is_some() { "figures of its threads and regions" } else { "the figures" };
    let run = report.run.as_ref();
    let command = run.filter(|run| run.status.is_some()).and_then(|run| run.pid);
    let (left, killed): (Vec<_>, Vec<_>) = pids(&|process| process.ended == ProcessEnd::Killed)
        .into_iter()
        .partition(|pid| command == Some(*pid));
    let ends = [
        (left, "ended by exit_group(2) without exit(3), as Go programs do"),
        (killed, "killed, ended by exit_group(2) without exit(3), or still running"),
    ];
    remarks.extend(ends.into_iter().filter(|(pids, _)| !pids.is_empty()).map(|(pids, how)| {
        format!(
            "{how}: {}; {whose} are those up to the last region that each thread completed",
            processes(&pids)
        )
    }));
    let lost = pids(&|process| {
        process.ended != ProcessEnd::Killed && process.threads.iter().any(|thread| !thread.ended)
    });
    if !lost.is_empty() {
        remarks.push(format!(
            "threads of {} have no end; their figures are those up to the last region that each completed",
            processes(&lost)
        ));
    }
    remarks.extend(of_overlaps(&report.overlaps));
    for process in &report.processes {
        let name = format!("process {}", process.pid);
        if process.refused > 0 {
            remarks.push(format!(
                "{name}: {} found no room in the table, and nothing is known of them; name fewer",
                count(process.refused, "region")
            ));
        }
        if process.unmeasured_threads > 0 {
            let threads = count(process.unmeasured_threads, "thread");
            let why = clean(&process.unmeasured_why);
            let why = if why.is_empty() { why } else { format!(": {why}") };
            remarks.push(format!("{name}: {threads} not measured{why}"));
        }
        if process.damaged > 0 {
            remarks.push(format!(
                "{name}: {} of its table file cannot be what the library wrote, and is left out",
                count(process.damaged, "record")
            ));
        }
    }
    remarks
}

/// Of which processes clocks alone tell, beside others that counted slots.
fn of_time_alone(report: &Report) -> Option<String> {
    let alone = report.time_alone.as_ref().filter(|alone| alone.whole.is_some())?;
    let processes_of: Vec<i32> =
        report.processes.iter().filter(|one| one.time_alone).map(|process| process.pid).collect();
    Some(format!(
        "{}: how slots divide cannot be told of it, and this is time alone: {}. Its times are apart from all figures of slots",
        processes(&processes_of),
        clean(&alone.no_slots)
    ))
}

/// Pairs of regions that are named in a remark.
const PAIRS: usize = 3;

/// Which regions do not nest.
fn of_overlaps(overlaps: &[Overlap]) -> Option<String> {
    let pair = |one: &Overlap| {
        format!(
            "'{}' was still open when '{}' ended ({})",
            clean(&one.region),
            clean(&one.ended),
            count(one.times, "time")
        )
    };
    let mut named: Vec<String> = overlaps.iter().take(PAIRS).map(pair).collect();
    if overlaps.len() > PAIRS {
        named.push(count((overlaps.len() - PAIRS) as u64, "other pair"));
    }
    (!named.is_empty()).then(|| {
        format!(
            "regions overlap: {}. It is split there, and each piece is an execution; if its end is missing instead, its figures \
             are too large",
            named.join("; ")
        )
    })
}

/// Why a command has CPU time that was not counted.
pub const UNCOUNTED: &str = "the kernel does not let a user count a program that is setuid or setgid, has file capabilities or \
                             cannot be read: measure it as root";

/// Why programs have neither threads nor regions.
pub const SANDBOXED: &str = "what was executed under a seccomp filter that a program installed meanwhile has neither threads nor regions \
                             here, since such a filter may kill for the system calls which that takes";

/// What keeps a count from outside from being that of all.
fn of_outside(remarks: &mut Vec<String>, outside: &CountedCommand, whole: &Figures) {
    let run = &outside.run;
    let nothing = if whole.slots == 0 { "nothing was counted: " } else { "" };
    if whole.time_ns == run.lost_ns {
        remarks.push(format!("{nothing}{UNCOUNTED}"));
    } else if run.lost_ns > 0 {
        let lost = time(run.lost_ns as f64);
        remarks.push(format!(
            "{lost} of its CPU time were not counted, and may have been of any category: {UNCOUNTED}"
        ));
    }
    let counted = whole.running.unwrap_or(1.0) * whole.time_ns as f64 + run.lost_ns as f64;
    if counted < 0.9995 * whole.time_ns as f64 {
        remarks.push(format!(
            "{nothing}the counters were not its own all the time (others hold them: perf stat, perf record, a pinned or system-wide \
             measurement; or its own groups take turns, between which none counts), or it ran on cores that cannot be counted; the bound has room for all that passed meanwhile"
        ));
    }
    let is_of_a_command = run.status.is_some() || run.signal.is_some();
    match run.outlived {
        _ if !is_of_a_command => {} // CPUs, processes or threads, while they were counted
        Some(false) => {}
        Some(true) => remarks.push(
            "processes that it started go on; what they have done until the command ended is counted (`topdown stat --wait` waits for them). \
             Whether others were not counted, as setuid programs are not, cannot be told"
                .into(),
        ),
        None => remarks.push(
            "whether processes that it started go on is not known, since the kernel gave no event that tells; if any do, what they \
             have done until the command ended is counted. Whether others were not, as setuid programs are not, cannot be told then"
                .into(),
        ),
    }
}

/// Slots that no process has counted itself, and whose they may be.
fn of_alone(outside: &CountedCommand, report: &Report) -> Option<String> {
    let part = percent(outside.alone? as f64 / report.whole.inclusive.slots as f64);
    let killed = report.processes.iter().any(|process| process.ended == ProcessEnd::Killed);
    let mut whose = Vec::new();
    if killed {
        whose.push("of threads that have no end, after the last region that each completed");
    }
    if report.ranks_of.is_none() && ran_on_e_cores(outside) {
        whose.push("on E-cores");
    }
    whose.push("of programs that the library is not loaded into (static ones), before it was, and after it could do no more");
    Some(format!(
        "{part} of the slots were counted from outside alone: {}; they are in the whole, and in no thread",
        whose.join(", ")
    ))
}

/// Whether any of it ran on a hybrid CPU's E-cores.
fn ran_on_e_cores(outside: &CountedCommand) -> bool {
    outside.cores.iter().skip(1).any(|cores| cores.figures.slots > 0)
}

/// Whose level 2 the whole has, if it was not counted from outside.
fn of_level_2(outside: &CountedCommand, report: &Report) -> Option<String> {
    let of_threads = report.whole.inclusive.level_2.is_some()
        && outside.cores.iter().all(|cores| cores.figures.level_2.is_none());
    of_threads.then(|| {
        "level 1 was counted from outside, and level 2 is what the threads have measured themselves, by registers (--outside: as deep as \
         counters are free, from outside alone, and no regions)"
            .into()
    })
}

/// That regions were measured on P-cores alone, if any of it ran on others. (Where the library counts both kinds of core nothing is
/// counted from outside)
fn of_e_cores(outside: &CountedCommand, report: &Report) -> Option<String> {
    let by_registers = report.run.as_ref().is_none_or(|run| run.sources.is_empty());
    // (a job's second kind of core may be another host's)
    let is_one = report.ranks_of.is_none();
    (is_one && by_registers && !report.regions.is_empty() && ran_on_e_cores(outside)).then(|| {
        "regions were measured on P-cores alone, whose registers the library reads: what they executed on E-cores is in their \
         bound. `topdown run --inside` measures them on both kinds of core"
            .into()
    })
}

/// What is odd about a region's executions, each in a few words. No name: those of a thread or the whole, whose ends are of regions that
/// never began there.
pub fn oddities(name: Option<&str>, counts: &Counts) -> Vec<String> {
    let mut odd = Vec::new();
    let Counts { nested, unended, unbalanced, missed, split, few_turns, .. } = *counts;
    if unbalanced > 0 {
        let of = name.map_or_else(|| "regions".into(), |name| format!("'{}'", clean(name)));
        odd.push(format!("unbalanced: {} of {of} without a beginning", count(unbalanced, "end")));
    }
    if unended > 0 {
        odd.push(format!("{} never ended", thousands(unended)));
    }
    if nested > 0 {
        odd.push(format!("{} within another of the same region", thousands(nested)));
    }
    if split > 0 {
        odd.push(format!(
            "{} of its executions are pieces: it was split where another region ended",
            thousands(split)
        ));
    }
    if missed > 0 {
        odd.push(format!("{} could not be read", thousands(missed)));
    }
    if few_turns {
        odd.push(format!(
            "a group of counters had fewer than {FEWEST_TURNS} turns in it, or a few that were most of it: nodes that it counts are not measured"
        ));
    }
    odd
}

/// "10,000 executions, 213 of them measured: a random sample".
pub fn executions(counts: &Counts) -> String {
    let mut out = count(counts.executions, "execution");
    if counts.measured < counts.executions {
        let _ = write!(out, ", {} of them measured", thousands(counts.measured));
    }
    out
}

/// The command of the report, and how much it became.
pub fn title(report: &Report) -> (String, String) {
    let run = report.run.as_ref();
    let first = report.processes.first().map(|process| &process.command);
    let command = run.map(|run| &run.command).or(first);
    let command = command.map(|command| command.split_whitespace().collect::<Vec<_>>().join(" "));
    let command = clean(&command.unwrap_or_default());
    let command = if command.is_empty() { "(no command)".into() } else { command };
    let says_nothing = report.machines.is_empty() && report.time_alone.is_none();
    if let (Some(run), true) = (run, report.processes.is_empty() || says_nothing) {
        return (command, ran(run));
    }
    let threads: usize = report.processes.iter().map(|process| process.threads.len()).sum();
    let ranks = report.ranks_of.map_or(String::new(), |size| format!("{}, ", count(size.into(), "rank")));
    let much = format!(
        "{ranks}{}{}, {}",
        report.processes.len(),
        if report.processes.len() == 1 { " process" } else { " processes" },
        count(threads as u64, "thread")
    );
    (command, much)
}

/// "1.23 s, 2.50 CPUs used, 1.80 instructions per cycle, exit status 0".
fn ran(run: &Run) -> String {
    let cpus = run.cpu_ns as f64 / run.wall_ns.max(1) as f64;
    let end = match (run.signal, run.status) {
        (Some(signal), _) => Some(format!("ended by signal {signal}")),
        (None, status) => status.map(|status| format!("exit status {status}")),
    };
    let all = [
        Some(time(run.wall_ns as f64)),
        (run.cpu_ns > 0).then(|| format!("{cpus:.2} CPUs used")),
        run.ipc.map(|ipc| format!("{ipc:.2} instructions per cycle")),
        end,
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// When and where the command ran, and how it ended, if that is not in the title.
pub fn occasion(report: &Report) -> Option<String> {
    let run = report.run.as_ref()?;
    let more = if report.processes.is_empty() { String::new() } else { format!(": {}", ran(run)) };
    Some(clean(&(occasion_of(&run.started, &run.host)? + &more)))
}

/// "2026-01-31 12:34:56 +0100 on HOST".
pub fn occasion_of(started: &str, host: &str) -> Option<String> {
    let (day, time) = started.split_once('T')?;
    let (time, zone) = time.split_at_checked(8)?;
    Some(format!("{day} {time} {zone} on {host}"))
}

/// Slots that were wasted: in which region, or in none of them, how many, where they went, and what to do next.
pub struct WastedSlots<'r> {
    pub name: &'r str,
    pub slots: u64,
    pub figures: &'r Figures,
    pub next: String,
}

/// Where the most slots were wasted: at most so many, of which each has a hundredth of all slots at least.
pub fn wasted(report: &Report, most: usize) -> Vec<WastedSlots<'_>> {
    const FEW: u64 = 100;
    let regions = report.regions.iter().filter_map(|region| {
        let figures = &region.item.exclusive;
        Some(WastedSlots { name: &region.name, slots: region.wasted?, figures, next: region.next.clone() })
    });
    let rest = &report.whole.exclusive;
    let none = if report.regions.is_empty() { "whole program" } else { "outside regions" };
    let rest = rest.wasted().map(|slots| WastedSlots {
        name: none,
        slots,
        figures: rest,
        // (that of the whole, if there is nothing else in it)
        next: if report.regions.is_empty() { report.next.clone() } else { verdict::next(rest) },
    });
    let mut all: Vec<WastedSlots> = regions.chain(rest).collect();
    all.retain(|one| one.slots > 0 && one.slots >= report.whole.inclusive.slots / FEW);
    all.sort_by_key(|one| std::cmp::Reverse(one.slots));
    all.truncate(most);
    all
}

/// A thread, its process, and where it is in the report.
pub struct ThreadPlace<'r> {
    pub place: (usize, usize),
    pub process: &'r Process,
    pub thread: &'r Thread,
}

/// All threads of which not clocks alone tell, in their order; if they are more than `most`, the largest of them first, and those only.
pub fn threads(report: &Report, most: usize) -> Vec<ThreadPlace<'_>> {
    let mut all: Vec<ThreadPlace> = Vec::new();
    for (p, process) in report.processes.iter().enumerate() {
        let counted = process.threads.iter().enumerate().filter(|(_, thread)| thread.counts_slots());
        all.extend(counted.map(|(t, thread)| ThreadPlace { place: (p, t), process, thread }));
    }
    if all.len() > most {
        all.sort_by_key(|one| std::cmp::Reverse(one.thread.item.inclusive.slots));
        all.truncate(most);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0.0, 999.0, 1000.0, 12_345.0, 999_999.0, 2.5e9].map(slots),
            ["0", "999", "1.00 k", "12.3 k", "1.00 M", "2.50 G"]
        );
        assert_eq!([7.0, 1500.0, 2.5e10].map(time), ["7 ns", "1.50 us", "25.0 s"]);
    }
}
