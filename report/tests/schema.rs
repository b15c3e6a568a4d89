//! What is written in JSON is what docs/schema says, field by field.

mod made;
mod schemas;

use made::{CORE, Scratch, TableContent, nested, ran, timed};
use std::fs;
use std::path::PathBuf;
use topdown_report::model::{
    BottleneckFigure, CompanionFigure, Finding, HostOfRanks, Machine, OverRanks, Overlap, Rank, Run,
};
use topdown_report::steps::Means;
use topdown_report::timeline::{Series, SeriesSubject, Timeline, TimelineInterval};
use topdown_report::{Format, OutsideCount, Report, ShareInterval, compare, merge, render, write_timeline};

fn machine(pmu: &str, path: topdown::Path) -> Machine {
    Machine {
        cpu: "a CPU".into(),
        core: CORE.into(),
        pmu: pmu.into(),
        path,
        level: 2,
        slots_per_cycle: 6,
        max_error: 0.0,
        max_overhead: 0.0,
        note: String::new(),
    }
}

/// Of both kinds of core of a hybrid CPU.
fn counted(path: topdown::Path) -> OutsideCount {
    let sum = ran(10_000, [50, 10, 10, 30], [10, 5, 5, 20], 1).sum();
    let parts = vec![(machine("cpu_core", path), sum), (machine("cpu_atom", path), sum)];
    OutsideCount { parts, ..OutsideCount::default() }
}

fn finding() -> Finding {
    Finding {
        node: "tma_l1_bound".into(),
        share: ShareInterval::around(0.2, 0.01),
        unit: "slots",
        threshold: 0.1,
        sure: true,
        above: vec![("Backend bound".into(), Some(0.3)), ("Memory bound".into(), None)],
        meaning: "what it means".into(),
        advice: "what to do".into(),
        locate: vec!["mem_load_retired.l1_hit".into()],
    }
}

fn run() -> Run {
    let metric = |why: &str| CompanionFigure {
        name: "ipc".into(),
        value: why.is_empty().then_some(1.5),
        unit: "instructions per cycle".into(),
        why: why.into(),
        ..CompanionFigure::default()
    };
    let bottleneck = |value| BottleneckFigure {
        name: "tma_bottleneck_big_code".into(),
        value,
        low: 0.0,
        high: 0.2,
        threshold: 0.1,
        meaning: "what it is".into(),
        advice: "what to do".into(),
    };
    Run {
        findings: vec![finding()],
        bottlenecks: vec![bottleneck(None), bottleneck(Some(0.1))],
        metrics: vec![metric(""), metric("no counters")],
        tree: "TMA 5.2".into(),
        command: "./a.out".into(),
        pid: Some(10),
        status: Some(0),
        wall_ns: 1_000_000,
        ipc: Some(1.5),
        means: Means { whom: "-- ./a.out".into(), has: ["record"].into(), ..Means::default() },
        ..Run::default()
    }
}

/// One of each kind, as long as a run that was counted and one interval more, in which nothing was.
fn timeline() -> Timeline {
    let name = || "a name".to_string();
    let subjects = [
        SeriesSubject::Whole,
        SeriesSubject::Process { pid: 10, name: name() },
        SeriesSubject::Thread { tid: 11, name: name() },
        SeriesSubject::Cpu { cpu: 0 },
        SeriesSubject::Cgroup { path: "/a/b".into(), name: name() },
    ];
    let interval = |begin, counted| TimelineInterval::new(begin, begin + 10, &counted).unwrap();
    let intervals = vec![interval(0, counted(topdown::Path::Rdpmc)), interval(10, OutsideCount::default())];
    let series = subjects.map(|of| Series { of, intervals: intervals.clone() });
    Timeline { boottime_ns: 5, series: series.into() }
}

/// All that a report of a command can have.
fn of_command(scratch: &Scratch, path: topdown::Path) -> Report {
    let sums = counted(path).parts.into_iter().map(|(_, sum)| sum).collect();
    let processes = vec![(Some(77), "static".into(), sums), (None, "rest".into(), Vec::new())];
    let outside = OutsideCount { run: run(), processes, timeline: Some(timeline()), ..counted(path) };
    merge(&[nested().write(&scratch.0)], Some(outside)).unwrap()
}

/// One process has slots, and of another clocks alone tell; regions overlap.
fn of_tables(scratch: &Scratch) -> Report {
    let mut alone = TableContent::by_clocks(11, "timed", "no counters");
    let root = alone.thread("main", timed(1, 1, 10_000_000, 8_000_000));
    alone.region("a", root, timed(10, 10, 6_000_000, 5_000_000));
    let overlap = Overlap { region: "a".into(), ended: "b".into(), times: 2 };
    let report = merge(&[nested().write(&scratch.0), alone.write(&scratch.0)], None).unwrap();
    Report { overlaps: vec![overlap], ..report }
}

/// As if it were of a job.
fn of_ranks(mut report: Report) -> Report {
    let item = report.whole.item.clone();
    let rank = |rank, ended, status, signal| Rank {
        rank,
        host: "host".into(),
        ended,
        status,
        signal,
        wall_ns: status.map(|_| 1_000_000),
        cpu_ns: None,
        processes: 1,
        item: item.clone(),
    };
    report.ranks_of = Some(3);
    report.ranks = vec![rank(0, "exited", Some(0), None), rank(1, "killed", None, Some(9))];
    report.hosts = vec![HostOfRanks { host: "host".into(), ranks: vec![0, 1], item }];
    for region in &mut report.regions {
        region.over_ranks = Some(OverRanks {
            ranks: 2,
            sum_ns: 30,
            min_ns: 10,
            mean_ns: 15,
            max_ns: 20,
            slowest: 1,
            fastest: 0,
            imbalance: 0.25,
            of_slowest: region.item.inclusive.clone(),
        });
    }
    report
}

#[test]
fn reports_timelines_and_comparisons_obey_their_schemas() {
    let scratch = Scratch::new("schema");
    let of_command = of_command(&scratch, topdown::Path::Rdpmc);
    let simulated = self::of_command(&scratch, topdown::Path::Simulated);
    let of_tables = of_tables(&scratch);
    let place = |name: &str| scratch.0.join(name);
    let reports = [
        ("command.json", of_command.clone()),
        ("simulated.json", simulated.clone()),
        ("tables.json", of_tables.clone()),
        ("ranks.json", of_ranks(of_tables)),
        ("nothing.json", Report::new(&[], Some(OutsideCount::default()))),
    ];
    let reports = reports.map(|(name, report)| {
        fs::write(place(name), render(&report, Format::Json)).unwrap();
        place(name)
    });
    schemas::have_all("report.schema.json", &reports);

    let timelines = [("t.json", of_command), ("s.json", simulated), ("n.json", Report::new(&[], None))];
    let timelines: [PathBuf; 3] = timelines.map(|(name, report)| {
        write_timeline(&report, &place(name)).unwrap();
        place(name)
    });
    schemas::have_all("timeline.schema.json", &timelines);

    let comparisons = [(0, 1), (0, 2), (2, 4)].map(|(before, after)| {
        let comparison = compare(&reports[before], &reports[after]).unwrap();
        let name = place(&format!("{before}-{after}.json"));
        fs::write(&name, comparison.render(Format::Json).unwrap()).unwrap();
        name
    });
    schemas::have_all("comparison.schema.json", &comparisons);
}
