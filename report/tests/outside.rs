//! Figures of processes beside what was counted from outside, worked out by hand.

mod made;

use made::{CORE, Ran, Scratch, TableContent, ran};
use topdown::{LEVEL_1, Node, Path, TD_NODE_NONE};
use topdown_report::model::{Machine, Run};
use topdown_report::steps::Means;
use topdown_report::{CpuTime, CpuUse, Format, OutsideCount, Report, merge, render};
use topdown_table::RUNS;

/// A command of so many slots, in percent, that was counted from outside.
fn outside(slots: u64, one: [u64; 4]) -> OutsideCount {
    let machine = Machine {
        cpu: "a CPU".into(),
        core: CORE.into(),
        pmu: "cpu".into(),
        path: topdown::Path::Read,
        level: 2,
        slots_per_cycle: 6,
        max_error: 0.0,
        max_overhead: 0.0,
        note: String::new(),
    };
    let sum = ran(slots, one, one.map(|part| part / 2), 1).sum();
    OutsideCount {
        run: Run { command: "seen from outside".into(), ..Run::default() },
        parts: vec![(machine, sum)],
        ..OutsideCount::default()
    }
}

#[test]
fn a_process_that_measured_nothing_has_a_row_of_its_own_and_the_rest_another() {
    let sum = |slots| outside(slots, [50, 10, 10, 30]).parts.remove(0).1;
    let process = |pid: Option<i32>, name: &str, slots| (pid, name.to_string(), vec![sum(slots)]);
    let whole = outside(10_000, [50, 10, 10, 30]);
    let processes = vec![process(Some(77), "static", 9_000), process(None, "rest", 1_000)];
    let report = Report::new(&[], Some(OutsideCount { processes, ..whole }));
    let rows = &report.outside.as_ref().unwrap().processes;
    assert_eq!((rows[0].pid, rows[0].inside, rows[0].item.inclusive.slots), (Some(77), 0, 9_000));
    assert_eq!((rows[1].pid, rows[1].item.inclusive.slots), (None, 1_000));
    let text = render(&report, Format::Text);
    assert!(text.contains("\n  77 static ") && text.contains("\n  rest "), "{text}");
    let csv = render(&report, Format::Csv);
    assert!(csv.contains("\n,77,,static,,") && csv.contains("\n,rest,,rest,,"), "{csv}");
}

#[test]
fn the_page_has_a_bar_for_each_process_that_did_not_measure_itself() {
    let scratch = Scratch::new("bars");
    let sum = |slots| outside(slots, [50, 10, 10, 30]).parts.remove(0).1;
    let process = |pid: Option<i32>, name: &str, slots| (pid, name.to_string(), vec![sum(slots)]);
    // process 10 measures itself, 78 is one of many small ones
    let mut processes = vec![process(Some(77), "<static>", 20_000), process(Some(10), "itself", 10_000)];
    processes.extend((78..178).map(|pid| process(Some(pid), "small", 90)));
    processes.push(process(None, "rest", 1_000));
    let whole = OutsideCount { processes, ..outside(40_000, [50, 10, 10, 30]) };
    let page = render(&merge(&[one_region().write(&scratch.0)], Some(whole)).unwrap(), Format::Html);
    let section = page.split("id=\"processes\"").nth(1).unwrap().split("</section>").next().unwrap();
    assert!(section.contains("77 &lt;static&gt;") && section.contains(">rest<"), "{section}");
    assert!(section.contains("20.0 k slots, ") && section.contains(" 50.0 % of all"), "{section}");
    assert!(section.contains("backend bound 30.0 %, within"), "{section}");
    assert!(section.contains("the 48 largest of 101") && !section.contains("itself</div>"), "{section}");
    assert_eq!(section.matches("class=\"bar\"").count(), 49, "{section}");
    // and none, if nothing is told apart
    let page = render(&Report::new(&[], Some(outside(40_000, [50, 10, 10, 30]))), Format::Html);
    assert!(!page.contains("id=\"processes\""), "{page}");
}

#[test]
fn whether_processes_go_on_is_said_of_a_command_alone() {
    let said = |run: Run| {
        let report = Report::new(&[], Some(OutsideCount { run, ..outside(40_000, [50, 10, 10, 30]) }));
        render(&report, Format::Text).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    const UNKNOWN: &str = "whether processes that it started go on is not known";
    let cpus = said(Run { command: "all CPUs".into(), ..Run::default() });
    assert!(!cpus.contains("go on"), "{cpus}");
    for run in [Run { status: Some(0), ..Run::default() }, Run { signal: Some(9), ..Run::default() }] {
        assert!(said(run.clone()).contains(UNKNOWN));
        assert!(
            said(Run { outlived: Some(true), ..run.clone() }).contains("processes that it started go on;")
        );
        assert!(!said(Run { outlived: Some(false), ..run }).contains("go on"));
    }
}

#[test]
fn time_that_was_not_counted_on_cpus_of_one_kind_is_in_the_bound_beside_those_of_another() {
    let half = |of_cpus| {
        let OutsideCount { run, mut parts, .. } = outside(10_000, [50, 10, 10, 30]);
        parts.push(outside(10_000, [20, 10, 10, 60]).parts.remove(0));
        parts[1].0.pmu = "another".into();
        for (_, sum) in &mut parts {
            sum.time_running_ns = sum.time_enabled_ns / 2;
        }
        let processes = Vec::new();
        Report::new(&[], Some(OutsideCount { run, parts, of_cpus, processes, ..OutsideCount::default() }))
    };
    // two halves of a thread's time are all of it; of CPUs half is missing on either
    let running = |of_cpus| {
        let report = half(of_cpus);
        let cores = report.outside.unwrap().cores;
        let parts: Vec<_> = cores.iter().map(|cores| cores.figures.running).collect();
        (report.whole.inclusive.running, parts, report.whole.inclusive.level_1.unwrap().error > 0.4)
    };
    assert_eq!(running(false), (Some(1.0), vec![Some(1.0); 2], false));
    assert_eq!(running(true), (Some(0.5), vec![Some(0.5); 2], true));
}

#[test]
fn regions_of_p_cores_alone_are_said_where_others_ran() {
    let scratch = Scratch::new("kinds");
    let file = one_region().write(&scratch.0);
    let text = |e_cores| {
        let mut whole = outside(30_000, [50, 10, 10, 30]);
        whole.parts.push(outside(e_cores, [20, 10, 10, 60]).parts.remove(0));
        let text = render(&merge(std::slice::from_ref(&file), Some(whole)).unwrap(), Format::Text);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let said = [
        "regions were measured on P-cores alone",
        "`topdown run --inside`",
        "outside alone: on E-cores, of programs",
    ];
    assert!(said.iter().all(|words| text(10_000).contains(words)), "{}", text(10_000));
    assert!(said.iter().all(|words| !text(0).contains(words)), "{}", text(0));
}

#[test]
fn each_kind_of_core_has_its_own_level_2_in_the_text_where_both_counted() {
    let kinds = |e_cores| {
        let mut whole = outside(10_000, [50, 10, 10, 30]);
        let mut more = outside(e_cores, [20, 10, 10, 60]).parts.remove(0);
        more.0.pmu = "cpu_atom".into();
        whole.parts[0].0.pmu = "cpu_core".into();
        whole.parts.push(more);
        let text = render(&Report::new(&[], Some(whole)), Format::Text);
        let (_, rows) = text.split_once("\n  cpu_core ").expect("a row of the P-cores");
        rows.to_string()
    };
    let both = kinds(10_000);
    let lines: Vec<Vec<&str>> = both.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[1][..2], ["25.0", "heavy"], "{both}");
    assert_eq!(lines[3][..3], ["cpu_atom", "20.0", "%"], "{both}");
    assert_eq!(lines[4][..2], ["10.0", "heavy"], "{both}");
    // what is of one kind alone is the whole, which has it
    assert!(!kinds(0).contains("heavy"), "{}", kinds(0));
}

#[test]
fn the_whole_is_what_was_counted_from_outside_and_what_regions_leave_of_it_is_in_none() {
    let scratch = Scratch::new("outside");
    let mut made = TableContent::new(10, "killed early");
    let root = made.thread("main", ran(10_000, [50, 10, 10, 30], [10, 5, 5, 20], 100).sum());
    made.region("loop", root, ran(10_000, [50, 10, 10, 30], [10, 5, 5, 20], 10).sum());
    let files = [made.write(&scratch.0)];
    let report = merge(&files, Some(outside(40_000, [20, 10, 10, 60]))).unwrap();
    assert_eq!((report.whole.inclusive.slots, report.whole.exclusive.slots), (40_000, 30_000));
    assert_eq!(report.outside.as_ref().unwrap().alone, Some(30_000));
    assert_eq!(report.regions[0].item.inclusive.share, Some(0.25));
    let rest = report.whole.exclusive.level_1.unwrap();
    // 8,000 less 5,000 of 30,000
    assert!((rest.of[0] - 0.1).abs() < 1e-9 && rest.error < 0.01, "{rest:?}");
    let text = render(&report, Format::Text).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("whole program, counted from outside") && text.contains("75.0 % of the slots"),
        "{text}"
    );
    assert!(text.contains("topdown: seen from outside (1 process, 1 thread)"), "{text}");
    assert!(text.contains("outside alone: of programs that the library is not loaded into"), "{text}");
    // what has seen less of it is not believed, what has seen hardly less is
    for (slots, seen) in [(9_000, None), (9_995, Some(None)), (10_005, Some(None)), (10_200, Some(Some(200)))]
    {
        let report = merge(&files, Some(outside(slots, [20, 10, 10, 60]))).unwrap();
        assert_eq!(report.outside.map(|outside| outside.alone), seen, "{slots}");
        assert_eq!(report.whole.inclusive.slots, if seen.is_some() { slots } else { 10_000 });
    }
}

/// Beside these, 40,000 slots were counted from outside: 20, 10, 10 and 60 percent.
fn beside(made: &TableContent) -> Report {
    let scratch = Scratch::new("beside");
    merge(&[made.write(&scratch.0)], Some(outside(40_000, [20, 10, 10, 60]))).unwrap()
}

/// Of what ran in no region.
fn error_of_rest(report: &Report) -> f64 {
    assert_eq!(report.whole.inclusive.slots, 40_000);
    assert!(report.whole.inclusive.level_1.unwrap().error < 1e-4, "the whole is as it was counted");
    report.whole.exclusive.level_1.unwrap().error
}

/// 10,000 slots in a region, and none outside.
fn one_region() -> TableContent {
    let mut made = TableContent::new(10, "one");
    let root = made.thread("main", ran(10_000, [50, 10, 10, 30], [10, 5, 5, 20], 10).sum());
    made.region("loop", root, ran(10_000, [50, 10, 10, 30], [10, 5, 5, 20], 10).sum());
    made
}

/// Threads have seen 10,000 slots; the whole is at level 1.
#[test]
fn a_whole_of_level_1_has_the_level_2_of_threads_that_saw_nearly_all_of_it() {
    let scratch = Scratch::new("deeper");
    let report = |slots: u64, level_2_of_threads: bool| {
        let mut count = OutsideCount { level_2_of_threads, ..outside(slots, [50, 10, 10, 30]) };
        count.parts[0].1.level = 1;
        merge(&[one_region().write(&scratch.0)], Some(count)).unwrap()
    };
    let nearly = report(10_500, true);
    let level_2 = nearly.whole.inclusive.level_2.unwrap();
    // (heavy operations: 1,000 of the slots that threads have seen; the other 500 may be any)
    assert!((level_2.of[0] - 0.1).abs() < 1e-3, "{level_2:?}");
    let heavy = nearly.whole.inclusive.tree.find(topdown::TD_NODE_HEAVY_OPERATIONS).unwrap().share;
    assert!(heavy.low * 10_500.0 <= 1_000.0 && heavy.high * 10_500.0 >= 1_500.0, "{heavy:?}");
    assert!(heavy.low > 0.09 && heavy.high < 0.15, "{heavy:?}");
    let says = |report: &Report| render(report, Format::Text).contains("level 2 is what the threads");
    assert!(says(&nearly));
    for without in [report(12_000, true), report(10_500, false)] {
        assert!(without.whole.inclusive.level_2.is_none() && !says(&without));
    }
}

fn kill(made: &mut TableContent) {
    *made.header.ended.get_mut() = RUNS;
    *made.at(0).ended.get_mut() = 0;
}

#[test]
fn what_a_region_missed_while_it_was_not_counted_is_in_the_bound_of_the_rest() {
    assert!(error_of_rest(&beside(&one_region())) < 0.001);
    let mut made = TableContent::new(10, "half");
    let half = Ran { running_ns: 500, ..ran(10_000, [50, 10, 10, 30], [10, 5, 5, 20], 10) }.sum();
    let root = made.thread("main", half);
    made.region("loop", root, half);
    let report = beside(&made);
    assert_eq!(report.regions[0].item.inclusive.running, Some(0.5));
    let uncounted = half.uncounted_slots();
    assert!(uncounted >= 10_000.0, "as many as were counted, or more: {uncounted}");
    // 30,000 are left, and so many of them may be the region's. 10 % retire of what is left: all of those may, or none
    let part = uncounted / (30_000.0 + uncounted);
    let expected = part * 0.9 + 11.0 / 30_000.0 * (1.0 - part);
    let error = error_of_rest(&report);
    assert!((error - expected).abs() < 1e-3, "{error}, not {expected}");
}

#[test]
fn nothing_is_known_of_the_rest_beside_executions_that_are_in_no_regions_figures() {
    let rest = |change: &dyn Fn(&mut TableContent)| {
        let mut made = one_region();
        change(&mut made);
        error_of_rest(&beside(&made))
    };
    // 10 % retire of what is left: it may be all
    assert!(rest(&|_| {}) < 0.001);
    assert!(rest(&|made| made.at(1).unended = 1) >= 0.9);
    assert!(rest(&|made| made.at(1).missed = 1) >= 0.9);
    assert!(rest(&kill) >= 0.9);
    let mut killed = one_region();
    kill(&mut killed);
    let text = render(&beside(&killed), Format::Text);
    let row =
        text.lines().find(|line| line.contains("outside regions ≤75 %")).unwrap_or_else(|| panic!("{text}"));
    assert!(row.contains("cannot be told: the bound is 9"), "{text}");
    // what ran in itself is in the figures
    assert!(rest(&|made| made.at(1).nested = 1) < 0.001);
    // and a thread that had no regions has none that are not known
    let mut made = TableContent::new(10, "killed without regions");
    made.thread("main", ran(10_000, [50, 10, 10, 30], [10, 5, 5, 20], 10).sum());
    kill(&mut made);
    let report = beside(&made);
    assert!(error_of_rest(&report) < 0.001 && report.whole.exclusive.slots == 40_000);
    let text = render(&report, Format::Text).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("killed, ended by exit_group(2) without exit(3), or still running: process 10; figures of its threads and regions"),
        "{text}"
    );
    assert!(
        text.contains(
            "alone: of threads that have no end, after the last region that each completed, of programs"
        ),
        "{text}"
    );
}

#[test]
fn a_command_that_cannot_be_counted_has_no_slots_and_a_reason() {
    let report = Report::new(&[], Some(outside(0, [0; 4])));
    assert_eq!((report.whole.inclusive.slots, report.outside.is_some()), (0, true));
    assert!(report.trouble.contains("setuid"), "{}", report.trouble);
    let text = render(&report, Format::Text);
    assert_eq!(text.matches("does not let a user").count(), 1, "{text}");
    assert!(Report::new(&[], Some(outside(100, [100, 0, 0, 0]))).trouble.is_empty());
}

#[test]
fn a_run_of_which_nothing_was_counted_from_outside_is_what_processes_measured() {
    let scratch = Scratch::new("inside");
    let nothing = OutsideCount { parts: Vec::new(), ..outside(1, [100, 0, 0, 0]) };
    let report = merge(&[one_region().write(&scratch.0)], Some(nothing)).unwrap();
    assert_eq!((report.whole.inclusive.slots, report.outside.is_none()), (10_000, true));
    assert_eq!(report.run.unwrap().command, "seen from outside");
}

#[test]
fn nodes_of_groups_that_took_turns_are_the_whole_as_those_of_one_group() {
    let node = |id: u32, parent: u32, level: u32, value: f64, far: f64| Node {
        id,
        parent,
        level,
        measured: 1,
        whole: 10_000,
        value,
        low: value - far,
        high: value + far,
        ..Node::default()
    };
    let [retiring, bad, frontend, backend] = LEVEL_1.map(|metric| metric.id);
    let nodes = vec![
        node(retiring, TD_NODE_NONE, 1, 0.5, 0.01),
        node(bad, TD_NODE_NONE, 1, 0.1, 0.01),
        node(frontend, TD_NODE_NONE, 1, 0.25, 0.02),
        node(backend, TD_NODE_NONE, 1, 0.15, 0.01),
        node(topdown::TD_NODE_FETCH_LATENCY, frontend, 2, 0.2, 0.05),
    ];
    let count = OutsideCount { nodes: Some(nodes), ..outside(10_000, [1, 1, 1, 97]) };
    let report = Report::new(&[], Some(count));
    let whole = &report.whole.inclusive;
    assert_eq!((whole.slots, whole.level_2), (10_000, None));
    let one = whole.level_1.unwrap();
    assert_eq!(one.of.map(|share| (100.0 * share).round()), [50.0, 10.0, 25.0, 15.0]);
    assert!((one.error - 0.02).abs() < 1e-9, "{one:?}");
    let latency = whole.tree.find(topdown::TD_NODE_FETCH_LATENCY).unwrap().share;
    assert!((latency.value - 0.2).abs() < 1e-9 && (latency.low - 0.15).abs() < 1e-9, "{latency:?}");
    assert!((latency.high - 0.25).abs() < 1e-9, "{latency:?}");
    for (format, says) in [
        (Format::Text, "fetch latency (of frontend bound): 20.0 % of slots, between 15.0 and 25.0"),
        (Format::Html, "fetch latency (of frontend bound): 20.0 % of slots, between 15.0 and 25.0"),
        (Format::Csv, "tma_fetch_latency_low"),
        (Format::Json, "\"tma_fetch_latency\""),
    ] {
        let text = render(&report, format);
        assert!(text.contains(says), "{text}");
    }
}

#[test]
fn a_command_that_ended_with_a_status_was_not_killed() {
    let said = |run: Run| {
        let mut made = one_region();
        kill(&mut made);
        let scratch = Scratch::new("exit-group");
        let outside = OutsideCount { run, ..outside(40_000, [20, 10, 10, 60]) };
        render(&merge(&[made.write(&scratch.0)], Some(outside)).unwrap(), Format::Text)
    };
    let own = "ended by exit_group(2) without exit(3), as Go programs do: process 10;";
    let status = Run { pid: Some(10), status: Some(0), ..Run::default() };
    assert!(said(status.clone()).contains(own) && !said(status.clone()).contains("killed"));
    // one of another process, or that a signal ended
    for run in [Run { pid: Some(11), ..status.clone() }, Run { status: None, signal: Some(9), ..status }] {
        let text = said(run);
        assert!(text.contains("killed, ended by exit_group(2)") && !text.contains(own), "{text}");
    }
}

/// A command that was counted from outside, with so many milliseconds in user mode and in the kernel.
fn of_modes(user_ms: u64, system_ms: u64, counts_kernel: bool) -> OutsideCount {
    let time = CpuTime { user_ns: user_ms * 1_000_000, system_ns: system_ms * 1_000_000 };
    let whole = outside(40_000, [20, 10, 10, 60]);
    let cpu =
        CpuUse { total_ns: Some(time.total_ns()), time: Some(time), counts_kernel, ..CpuUse::default() };
    let mut parts = whole.parts.clone();
    for (_, sum) in &mut parts {
        (sum.time_enabled_ns, sum.time_running_ns) = (time.total_ns(), time.total_ns());
    }
    OutsideCount { run: Run { cpu, ..whole.run }, parts, ..whole }
}

#[test]
fn the_verdict_on_a_program_of_the_kernels_begins_with_the_kernel() {
    let report = Report::new(&[], Some(of_modes(100, 900, false)));
    let figures = &report.whole.inclusive;
    assert_eq!(
        figures.bottleneck,
        "kernel 90.0 % of CPU time, not counted; of the rest two things: memory bound 30 %; core bound 30 %"
    );
    assert_eq!(report.next, "kernel 90.0 % of CPU time: `topdown stat --kernel` counts it, too");
    for format in [Format::Text, Format::Html] {
        let text = render(&report, format).split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "900 ms of its 1.00 s of CPU time (90.0 %) are the kernel's, which was not counted",
            "CPU time 1.00 s (user 100 ms, system 900 ms), counted 100 ms",
            "kernel 90.0 % of CPU time: `topdown stat --kernel`",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains("find what is waited for"), "{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&render(&report, Format::Json)).unwrap();
    let ns = |name: &str| json["whole"][name].as_u64().unwrap() / 1_000_000;
    assert_eq!(
        ["cpu_time_ns", "user_time_ns", "system_time_ns", "counted_time_ns"].map(ns),
        [1000, 100, 900, 100]
    );
}

#[test]
fn of_a_program_in_user_mode_and_of_one_that_was_counted_whole_nothing_is_said_of_the_kernel() {
    for (count, counted) in [(of_modes(950, 50, false), 950), (of_modes(100, 900, true), 1000)] {
        let report = Report::new(&[], Some(count));
        assert_eq!(report.whole.time.counted_time_ns, Some(counted * 1_000_000));
        let text = render(&report, Format::Text);
        assert!(report.whole.kernel_note.is_empty() && !text.to_lowercase().contains("kernel"), "{text}");
        assert!(report.next.starts_with("memory bound 30 %: "), "{}", report.next);
        assert!(report.next.contains("; core bound 30 %: "), "{}", report.next);
    }
}

/// Whoever has no counters learns what the command took, and what tells more of it.
#[test]
fn of_what_was_not_counted_there_is_its_time_and_what_has_more() {
    let count = of_modes(950, 50, false);
    for (has, first) in [
        (&["timer", "stops"][..], "topdown record --lines -- ./a.out # "),
        (&["stops"], "topdown record --ptrace --lines -- ./a.out # "),
        (&[], "topdown check # "),
    ] {
        let means =
            Means { whom: "-- ./a.out".into(), has: has.iter().copied().collect(), ..Means::default() };
        let run = Run { means, wall_ns: 2_000_000_000, status: Some(3), ..count.run.clone() };
        let nothing = Report::new(&[], Some(OutsideCount { run, ..OutsideCount::default() }));
        let nothing = Report { trouble: "no PMU".into(), ..nothing };
        let text = render(&nothing, Format::Text);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(lines[0], "topdown: seen from outside: nothing is measured: no PMU");
        assert!(lines[1].starts_with("2.00 s, ") && lines[1].ends_with(", exit status 3"), "{text}");
        assert_eq!(lines[2], "CPU time 1.00 s (user 950 ms, system 50.0 ms)");
        assert!(
            lines[3].starts_with(first) && lines.last().unwrap().starts_with("topdown check # "),
            "{text}"
        );
        let page = render(&nothing, Format::Html);
        for part in [lines[1], lines[2], "<code>topdown check</code>"] {
            assert_eq!(page.matches(part).count(), 1, "{part}: {page}");
        }
    }
}

#[test]
fn what_can_be_run_next_is_in_each_report_of_a_command() {
    let with = |path: Path, has: &[&'static str]| {
        let count = of_modes(950, 50, false);
        let means =
            Means { whom: "-- ./a.out".into(), has: has.iter().copied().collect(), ..Means::default() };
        let mut parts = count.parts.clone();
        parts.iter_mut().for_each(|(machine, _)| machine.path = path);
        Report::new(&[], Some(OutsideCount { run: Run { means, ..count.run }, parts, ..count }))
    };
    let report = with(Path::Read, &["deep"]);
    let commands: Vec<&str> = report.steps.iter().map(|step| step.command.as_str()).collect();
    let lines = "topdown record --lines -- ./a.out";
    let drill = ["topdown stat --drill -- ./a.out", "topdown record --drill --lines -- ./a.out"];
    assert_eq!(commands, [lines, drill[0], drill[1]]);
    for command in &commands {
        for (format, written) in [
            (Format::Text, format!("{command} # ")),
            (Format::Html, format!("<code>{command}</code>")),
            (Format::Json, format!("\"command\": \"{command}\"")),
        ] {
            let text = render(&report, format);
            assert!(text.contains(&written), "{text}");
        }
    }
    // (what is made up has no cause in deeper levels)
    let simulated = with(Path::Simulated, &["deep"]);
    assert_eq!(simulated.steps.iter().map(|step| &step.command[..]).collect::<Vec<_>>(), [lines]);
    assert!(Report::new(&[], Some(of_modes(950, 50, false))).steps.is_empty(), "nobody knows of whom");
}

#[test]
fn the_verdict_on_regions_stays_where_the_program_is_the_kernels() {
    let scratch = Scratch::new("kernels");
    let report = merge(&[one_region().write(&scratch.0)], Some(of_modes(100, 900, false))).unwrap();
    assert!(report.whole.inclusive.bottleneck.starts_with("kernel 90.0 %"));
    assert!(!report.whole.exclusive.bottleneck.starts_with("kernel"));
    assert!(!report.regions[0].item.inclusive.bottleneck.starts_with("kernel"));
}

#[test]
fn counted_time_is_the_counters_part_of_what_they_count() {
    let mut count = of_modes(400, 600, false);
    // half of the time others had the counters; and of CPUs the idle time is no CPU time
    count.parts.iter_mut().for_each(|(_, sum)| sum.time_running_ns /= 2);
    assert_eq!(Report::new(&[], Some(count)).whole.time.counted_time_ns, Some(200_000_000));
    let mut cpus = OutsideCount { of_cpus: true, ..of_modes(400, 600, false) };
    for (_, sum) in &mut cpus.parts {
        (sum.time_enabled_ns, sum.time_running_ns) = (8_000_000_000, 8_000_000_000);
    }
    assert_eq!(Report::new(&[], Some(cpus)).whole.time.counted_time_ns, Some(400_000_000));
    // nothing is known of a report of tables alone
    let scratch = Scratch::new("tables");
    let tables = merge(&[one_region().write(&scratch.0)], None).unwrap();
    assert_eq!(tables.whole.time, topdown_report::CountedTime::default());
}
