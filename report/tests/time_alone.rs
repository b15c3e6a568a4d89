//! Reports of processes of which clocks alone tell, also beside others that counted slots.

mod made;

use made::{Scratch, TableContent, nested, timed};
use serde_json::Value;
use std::path::PathBuf;
use topdown_report::{Format, Report, compare, merge, model, render};

const WHY: &str = "no topdown counters on <this> machine";
const SENTENCE: &str =
    "How slots divide cannot be told here, and this is time alone: no topdown counters on ";

/// A thread of 10 ms, and 8 ms of CPU time.
fn with_thread() -> (TableContent, u32) {
    let mut made = TableContent::by_clocks(10, "timed", WHY);
    let root = made.thread("main", timed(1, 1, 10_000_000, 8_000_000));
    (made, root)
}

/// Ten executions of "a" took 6 ms, and 5 ms of CPU time; 1,000 of "b" in it 2 ms, of which CPU time is not known.
fn by_clocks(pid: i32) -> TableContent {
    let mut made = TableContent::by_clocks(pid, "timed", WHY);
    let root = made.thread("main", timed(1, 1, 10_000_000, 8_000_000));
    let a = made.region("a", root, timed(10, 10, 6_000_000, 5_000_000));
    made.region("b", a, timed(1000, 16, 2_000_000, 30_000));
    made
}

fn report_of(made: &[&TableContent]) -> Report {
    let scratch = Scratch::new("time-alone");
    let files: Vec<PathBuf> = made.iter().map(|made| made.write(&scratch.0)).collect();
    merge(&files, None).unwrap()
}

fn region<'r>(report: &'r Report, name: &str, time_alone: bool) -> &'r model::Region {
    report.regions.iter().find(|region| region.name == name && region.time_alone == time_alone).unwrap()
}

fn times(figures: &model::Figures) -> (Option<u64>, Option<u64>, Option<u64>) {
    (figures.slots(), figures.wall_ns(), figures.time_ns())
}

#[test]
fn regions_have_elapsed_time_and_cpu_time_as_far_as_it_is_known_and_no_slots() {
    let report = report_of(&[&by_clocks(10)]);
    let ms = |ms: u64| Some(1_000_000 * ms);
    let (a, b) = (region(&report, "a", true), region(&report, "b", true));
    assert_eq!(a.item.counts.executions, 10);
    assert_eq!(times(&a.item.inclusive), (None, ms(6), ms(5)));
    assert_eq!(times(&a.item.exclusive), (None, ms(4), None));
    assert_eq!(times(&b.item.inclusive), (None, ms(2), None));
    assert_eq!(times(&report.whole.inclusive), (None, ms(10), ms(8)));
    assert_eq!(times(&report.whole.exclusive), (None, ms(4), ms(3)));
    assert_eq!(a.item.inclusive.time_alone.unwrap().wall_share, Some(0.6));
    assert_eq!((a.item.counts.measured, a.item.inclusive.share), (0, None));
    // the larger first
    let names: Vec<&str> = report.regions.iter().map(|region| &*region.name).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(report.processes[0].threads[0].tree[1].parent, Some(0));
}

/// A text has the places of most time of all threads together: those of a few threads, as a rule.
#[test]
fn a_text_of_many_threads_says_how_many_have_regions_in_others() {
    let of = |threads: u64| {
        let mut made = TableContent::by_clocks(10, "many", WHY);
        made.thread("main", timed(1, 1, 10_000_000, 8_000_000));
        for thread in 0..threads {
            let root = made.thread("worker", timed(1, 1, 10_000_000, 8_000_000));
            let mut parent = root;
            for k in 0..100 {
                let ns = if thread == 0 { 90_000 } else { 10_000 };
                let region = made.region(&format!("region {k}"), parent, timed(1, 1, ns, ns));
                parent = if k % 2 == 0 { region } else { root };
            }
        }
        render(&report_of(&[&made]), Format::Text)
    };
    let text = of(9);
    assert!(text.contains("\nwhat began in what, in 9 threads: -o FILE.html or FILE.json\n"), "{text}");
    assert!(of(4).contains(" of process 10, what began in what:\n"));
}

#[test]
fn a_page_without_shares_says_nothing_of_their_bounds() {
    let page = render(&report_of(&[&by_clocks(10)]), Format::Html);
    assert!(!page.contains("within its bound"), "{page}");
    assert!(page.contains("of the first 16 executions of a region in each place"), "{page}");
}

#[test]
fn each_format_says_first_that_it_is_time_alone_and_shows_no_slots() {
    let report = report_of(&[&by_clocks(10)]);
    let text = render(&report, Format::Text);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("topdown: timed, time alone (1 process, 1 thread)"));
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(lines.next().unwrap().starts_with("How slots divide"), "{text}");
    assert!(words.contains(&format!("{SENTENCE}<this> machine.")), "{text}");
    let row = |name: &str| {
        let row = text.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap();
        row.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("a"), "10 6.00 ms 60.0 % 600 us 4.00 ms 5.00 ms");
    assert_eq!(row("b"), "1,000 2.00 ms 20.0 % 2.00 us 2.00 ms -");
    assert!(words.contains("outside regions 4.00 ms 40.0 % 3.00 ms"), "{text}");
    assert!(words.contains("what began in what: region"), "{text}");
    assert!(!text.contains(" slots,") && !text.contains("not measured"), "{text}");

    let json: Value = serde_json::from_str(&render(&report, Format::Json)).unwrap();
    assert_eq!((&json["schema"], &json["time_alone"]["no_slots"]), (&1.into(), &WHY.into()));
    assert_eq!(json["time_alone"]["clock"], "CLOCK_MONOTONIC");
    assert_eq!(json["time_alone"]["whole"], Value::Null);
    assert_eq!(json["processes"][0]["time_alone"], true);
    let b = &json["regions"][1];
    assert_eq!((&b["name"], &b["time_alone"], &b["executions"]), (&"b".into(), &true.into(), &1000.into()));
    let figures = &b["inclusive"];
    assert_eq!((&figures["wall_ns"], &figures["wall_share"]), (&2_000_000.into(), &0.2.into()));
    for unknown in ["slots", "share", "time_ns", "running", "level_1", "level_2"] {
        assert_eq!(figures.get(unknown), Some(&Value::Null), "{unknown}");
    }
    assert_eq!(json["regions"][0]["inclusive"]["time_ns"], 5_000_000);

    let csv = render(&report, Format::Csv);
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let lines: Vec<Vec<&str>> = lines.collect();
    let field = |name: &str, region: &str| {
        let line = lines.iter().find(|line| line[0] == region && line[1].is_empty()).unwrap();
        line[head.iter().position(|title| *title == name).unwrap()]
    };
    for (name, a) in [
        ("executions", "10"),
        ("slots", ""),
        ("share", ""),
        ("time_ns", "5000000"),
        ("running", ""),
        ("retiring", ""),
        ("time_alone", "yes"),
        ("wall_ns", "6000000"),
        ("exclusive_wall_ns", "4000000"),
        ("exclusive_time_ns", ""),
    ] {
        assert_eq!(field(name, "a"), a, "{name}");
    }
    assert!(lines.iter().all(|line| line.len() == head.len()));

    let page = render(&report, Format::Html);
    let said = page.find(&format!("{SENTENCE}&lt;this&gt; machine.")).unwrap();
    assert!(said < page.find("id=\"times\"").unwrap(), "{page}");
    assert!(page.contains("Where the time went") && page.contains("600 us") && !page.contains("slots</p>"));
}

#[test]
fn beside_counted_slots_times_are_apart_and_the_report_says_whose_they_are() {
    let alone = report_of(&[&nested()]);
    let report = report_of(&[&nested(), &by_clocks(20)]);
    // (what was counted is what it is without the other)
    assert_eq!(report.whole.inclusive, alone.whole.inclusive);
    assert_eq!(report.whole.exclusive, alone.whole.exclusive);
    assert_eq!(region(&report, "a", false).item.inclusive, region(&alone, "a", false).item.inclusive);
    assert_eq!(region(&report, "a", false).item.counts.executions, 1);
    let a = region(&report, "a", true);
    assert_eq!((a.item.counts.executions, times(&a.item.inclusive).1), (10, Some(6_000_000)));
    assert_eq!((a.threads.len(), a.threads[0].pid), (1, 20));
    let time_alone = report.time_alone.as_ref().unwrap();
    assert_eq!(times(&time_alone.whole.as_ref().unwrap().inclusive).1, Some(10_000_000));

    let text = render(&report, Format::Text);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains(
            "process 20: how slots divide cannot be told of it, and this is time alone: no topdown"
        ),
        "{text}"
    );
    assert!(words.contains("processes with time alone 10.0 ms"), "{text}");
    assert!(words.contains("a 10 6.00 ms 60.0 % 600 us 4.00 ms 5.00 ms"), "{text}");
    assert!(!words.contains("time alone ("), "{text}");
    assert!(!words.contains("not measured") && !words.contains("nothing is measured"), "{text}");
    let page = render(&report, Format::Html);
    assert!(page.contains("Where the pipeline slots went") && page.contains("id=\"times\""));
    // what counts alone is as it was
    assert_eq!(render(&alone, Format::Csv).lines().next().unwrap().find("wall_ns"), None);
    assert!(!render(&alone, Format::Json).contains("wall_ns"));
}

#[test]
fn what_did_not_end_has_no_exclusive_time_and_a_killed_thread_what_was_seen() {
    let mut made = by_clocks(10);
    made.at(1).unended = 1;
    let report = report_of(&[&made]);
    let a = region(&report, "a", true);
    assert_eq!((a.item.inclusive.wall_ns(), a.item.exclusive.wall_ns()), (Some(6_000_000), None));
    assert_eq!(report.whole.exclusive.wall_ns(), None);
    let text = render(&report, Format::Text);
    assert!(text.contains("a: 1 never ended"), "{text}");

    let mut made = TableContent::by_clocks(10, "killed", WHY);
    let root = made.thread("main", timed(0, 0, 0, 0));
    made.region("a", root, timed(3, 3, 300, 200));
    *made.at(root).ended.get_mut() = 0;
    assert_eq!(times(&report_of(&[&made]).whole.inclusive), (None, None, None));
    made.at(root).seen_ns = 1000;
    let report = report_of(&[&made]);
    assert_eq!(times(&report.whole.inclusive), (None, Some(1000), None));
    assert_eq!(times(&report.whole.exclusive), (None, None, None));
    assert_eq!(times(&region(&report, "a", true).item.inclusive), (None, Some(300), Some(200)));
}

/// (As of a program that calls exit in its main loop.)
#[test]
fn what_ran_in_no_region_is_not_known_where_one_never_ended() {
    let (mut made, root) = with_thread();
    let main_loop = made.region("main loop", root, timed(0, 0, 0, 0));
    made.at(main_loop).unended = 1;
    let report = report_of(&[&made]);
    assert_eq!(times(&report.whole.inclusive), (None, Some(10_000_000), Some(8_000_000)));
    assert_eq!(times(&report.whole.exclusive), (None, None, None));
    let text = render(&report, Format::Text);
    let row = text.lines().find(|line| line.starts_with("main loop  ")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["main", "loop", "0", "-", "-", "-", "-", "-"]);
    // what one that ended did itself is not known either, if another that began in it did not
    let (mut made, root) = with_thread();
    let main_loop = made.region("main loop", root, timed(1, 1, 9_000_000, 7_000_000));
    let step = made.region("step", main_loop, timed(2, 2, 4_000_000, 3_000_000));
    made.at(step).unended = 1;
    let report = report_of(&[&made]);
    assert_eq!(region(&report, "main loop", true).item.exclusive.wall_ns(), None);
    assert_eq!(times(&report.whole.exclusive), (None, Some(1_000_000), Some(1_000_000)));
}

/// After a longjmp out of it each execution is within one that never ends.
#[test]
fn executions_within_one_that_never_ended_are_the_regions() {
    let (mut made, root) = with_thread();
    let left = made.region("solve", root, timed(0, 0, 0, 0));
    made.at(left).unended = 3;
    let leaf = made.region("leaf", left, timed(0, 0, 0, 0));
    let again = made.region("solve", leaf, timed(10, 10, 6_000_000, 5_000_000));
    made.region("leaf", again, timed(10, 10, 2_000_000, 1_000_000));
    made.region("solve", again, timed(1, 1, 100_000, 100_000));
    let report = report_of(&[&made]);
    let solve = region(&report, "solve", true);
    assert_eq!(
        (solve.item.counts.executions, solve.item.counts.unended, solve.item.counts.nested),
        (10, 3, 1)
    );
    assert_eq!(times(&solve.item.inclusive), (None, Some(6_000_000), Some(5_000_000)));
    assert_eq!(region(&report, "leaf", true).item.inclusive.wall_ns(), Some(2_000_000));
}

#[test]
fn records_that_clocks_cannot_have_written_are_left_out() {
    let broken: [fn(&mut TableContent); 3] = [
        |made| made.at(2).measurement[0].slots = 7,
        |made| made.at(2).measurement[0].measured = 2000,
        |made| *made.at(2).counted_executions.get_mut() = 1,
    ];
    for break_it in broken {
        let mut made = by_clocks(10);
        break_it(&mut made);
        *made.at(2).counted_next.get_mut() =
            made.records[2].counted_executions.load(std::sync::atomic::Ordering::Relaxed);
        let report = report_of(&[&made]);
        assert_eq!(report.processes[0].damaged, 1);
        assert!(report.regions.iter().all(|one| one.name != "b" || one.item.counts.executions == 0));
    }
}

#[test]
fn times_are_compared_and_where_one_side_has_slots_it_is_said_what_cannot_be() {
    let scratch = Scratch::new("time-alone-compared");
    let file = |name: &str, made: &TableContent, format| {
        let path = scratch.0.join(name);
        std::fs::write(&path, render(&report_of(&[made]), format)).unwrap();
        path
    };
    let mut slower = by_clocks(10);
    slower.at(1).measurement[1].enabled_ns = 9_000_000;
    let table = slower.write(&scratch.0);
    for before in [file("t.json", &by_clocks(10), Format::Json), file("t.csv", &by_clocks(10), Format::Csv)] {
        let text = compare(&before, &table).unwrap().render(Format::Text).unwrap();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("elapsed 6.00 ms 9.00 ms +50.0 %"), "{text}");
        assert!(words.contains("time alone: there are no shares") && !words.contains(" slots "), "{text}");
        let csv = compare(&before, &table).unwrap().render(Format::Csv).unwrap();
        assert!(
            csv.contains("a,wall_ns,6000000,9000000,3000000,,\n") && csv.contains("a,slots,,,,,\n"),
            "{csv}"
        );
    }
    let counted = file("c.json", &nested(), Format::Json);
    let text = compare(&counted, &table).unwrap().render(Format::Text).unwrap();
    assert!(text.contains("time alone after: slots and shares cannot be compared"), "{text}");
    assert!(text.contains("executions") && !text.contains(": only"), "{text}");
    let csv = compare(&counted, &counted).unwrap().render(Format::Csv).unwrap();
    assert!(!csv.contains("wall_ns"), "{csv}");
}
