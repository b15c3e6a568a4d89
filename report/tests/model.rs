//! Table files to figures, with numbers that are worked out by hand.

mod made;
mod reported;

use made::{TableContent, core, nested, ran};
use reported::{near, parts_are_of_their_parents, region, report};
use topdown::{InputSum, LEVEL_1, LEVEL_2, Path, Sum};
use topdown_report::model::{Figures, ProcessEnd, UNTOLD};
use topdown_report::{Format, render};
use topdown_table::{EXECED, RUNS};

fn shares(figures: &Figures, one: [f64; 4], error: f64) {
    let found = figures.level_1.expect("measured");
    found.of.iter().zip(one).for_each(|(found, expected)| near(*found, expected));
    near(found.error, error);
}

#[test]
fn exclusive_is_what_is_left_and_all_of_it_is_the_whole() {
    let report = report("exclusive", &[nested()]);
    let (a, b) = (&region(&report, "a").item, &region(&report, "b").item);
    shares(&report.whole.inclusive, [0.5, 0.1, 0.1, 0.3], 0.01);
    // 500 - 420, 100 - 30, 100 - 30, 300 - 120 of 400; 10 + 12 slots of error
    shares(&report.whole.exclusive, [0.2, 0.175, 0.175, 0.45], 0.055);
    // 420 - 20, 30 - 10, 30 - 10, 120 - 160 of 400: the last is cut off at 0 of what is then 440, and may truly be nothing;
    // 400 may be 416 of 400
    shares(&a.exclusive, [400.0 / 440.0, 20.0 / 440.0, 20.0 / 440.0, 0.0], 1.0 - 400.0 / 440.0);
    shares(&b.exclusive, [0.1, 0.05, 0.05, 0.8], 0.02);
    assert_eq!((a.inclusive.slots, a.exclusive.slots, a.exclusive.time_ns), (600, 400, 40));
    let whole: u64 = report.whole.exclusive.slots + a.exclusive.slots + b.exclusive.slots;
    assert_eq!(whole, report.whole.inclusive.slots);
    near(a.inclusive.share.unwrap(), 0.6);
    // level 2: twice the bound, and heavy and light of a parent
    let two = report.whole.exclusive.level_2.unwrap();
    // 100 - 60 heavy, 400 - 360 light, of 400; 20 + 24 slots
    near(two.of[0], 0.1);
    near(two.of[1], 0.1);
    near(two.error, 0.11);
    let tree = &report.processes[0].threads[0].tree;
    let places: Vec<_> = tree.iter().map(|node| (node.name.as_str(), node.parent, node.depth)).collect();
    assert_eq!(places, [("a", None, 0), ("b", Some(0), 1)]);
}

#[test]
fn sums_merge_by_slots_and_so_do_their_bounds() {
    let mut one = TableContent::new(10, "one");
    let root = one.thread("main", ran(1000, [100, 0, 0, 0], [0; 4], 0).sum());
    one.region("a", root, ran(300, [80, 0, 0, 20], [0, 0, 0, 20], 3).sum());
    let mut two = TableContent::new(11, "two");
    let root = two.thread("main", ran(1000, [100, 0, 0, 0], [0; 4], 0).sum());
    two.region("a", root, ran(100, [40, 0, 0, 60], [0, 0, 0, 20], 5).sum());
    let unmeasured = two.thread("other", Sum::default());
    let mut counted =
        Sum { executions: 3, slots: 100, time_enabled_ns: 40, time_running_ns: 10, ..Sum::default() };
    counted.size = size_of::<Sum>() as u32;
    counted.last = Sum::of_inputs(made::CORE, 0, 0, 0.0, [None; 8].into_iter()).unwrap().last;
    two.region("a", unmeasured, counted);

    let report = report("merge", &[two, one]);
    let a = region(&report, "a");
    let commands: Vec<_> = report.processes.iter().map(|process| process.command.as_str()).collect();
    assert_eq!(commands, ["one", "two"], "as they began");
    assert_eq!((a.item.counts.executions, a.item.counts.measured, a.item.inclusive.slots), (5, 2, 500));
    // 240 + 40 of 400; 3 + 5 slots, and 100 of which nothing is known, of 500; and as many uncounted as pass in 30 ns
    let part = counted.uncounted_slots() / (500.0 + counted.uncounted_slots());
    assert!(counted.uncounted_slots() >= 30.0 * 10.0);
    shares(&a.item.inclusive, [0.7, 0.0, 0.0, 0.3], 108.0 / 500.0 * (1.0 - part) + part);
    // 30 + 10 ns, and 10 of 40
    near(a.item.inclusive.running.unwrap(), 50.0 / 80.0);
    let of_threads: Vec<_> =
        a.threads.iter().map(|one| (one.pid, one.tid, one.item.inclusive.slots)).collect();
    assert_eq!(of_threads, [(10, 10, 300), (11, 11, 100), (11, 13, 100)]);
    assert_eq!(a.threads[2].item.inclusive.level_1, None, "nothing is invented");
    assert_eq!(a.threads[2].item.inclusive.bottleneck, "not measured");
    // the second thread of the second process had its region's slots at least
    assert_eq!(report.processes[1].threads[1].item.inclusive.slots, 100);
    assert_eq!((report.machines.len(), report.processes[1].machine), (1, Some(0)));
}

#[test]
fn a_region_that_was_not_measured_leaves_its_slots_in_doubt() {
    let mut made = TableContent::new(10, "unmeasured");
    let root = made.thread("main", ran(1000, [60, 0, 0, 40], [0; 4], 10).sum());
    made.region("a", root, Sum { executions: 3, slots: 250, ..Sum::default() });
    let report = report("unmeasured", &[made]);
    // taken to be as the rest, which may be wrong for all 250, of the 750 that are left
    shares(&report.whole.exclusive, [0.6, 0.0, 0.0, 0.4], 260.0 / 750.0);
    assert_eq!(region(&report, "a").item.exclusive.level_1, None);
}

/// What truly ran: slots of the categories of level 1, and of the first part of each.
type Truth = [u64; 8];

/// Trees of regions of which the truth is known, measured with errors within their bound: whatever is made of them, the
/// truth is within the bound of that.
#[test]
fn the_truth_is_within_every_bound() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below.max(1)
    };
    let mut checked = 0;
    for turn in 0..60 {
        let names = ["a", "b", "c", "d"];
        // the parent of each place, its own slots, and those with all below it; place 0 is the thread
        let mut places: Vec<(usize, usize)> = vec![(0, 0)];
        let own: Vec<Truth> = (0..12)
            .map(|k| {
                let one: [u64; 4] = std::array::from_fn(|_| random(100_000 + 1));
                let part = one.map(|slots| random(slots + 1));
                if k > 0 {
                    places.push((random(k) as usize, random(4) as usize));
                }
                std::array::from_fn(|n| if n < 4 { one[n] } else { part[n - 4] })
            })
            .collect();
        let mut all = own.clone();
        for k in (1..12).rev() {
            let below = all[k];
            (0..8).for_each(|n| all[places[k].0][n] += below[n]);
        }
        let mut made = TableContent::new(10, "random");
        for (k, (truth, (parent, name))) in all.iter().zip(&places).enumerate() {
            let slots: u64 = truth[..4].iter().sum();
            let exact = 1 + 20 * random(2);
            let error = random(slots / exact) / 4;
            let (from, to) = (random(4) as usize, random(4) as usize);
            let mut one: [u64; 4] = truth[..4].try_into().unwrap();
            let moved = random(error + 1).min(one[from]);
            one[from] -= moved;
            one[to] += moved;
            let two = std::array::from_fn(|n| {
                (truth[4 + n] + random(2 * error + 1)).saturating_sub(error).min(one[n])
            });
            let sum = made::Ran { slots, one, two, error, ns: 1, running_ns: 1 }.sum();
            match k {
                0 => made.thread("main", sum),
                _ => made.region(names[*name], *parent as u32, sum),
            };
        }
        let report = report(&format!("truth-{turn}"), &[made]);
        let holds = |figures: &Figures, truth: &Truth, what: &str| {
            let slots: u64 = truth[..4].iter().sum();
            assert_eq!(figures.slots, slots, "{what}");
            let near = |share: f64, truth: u64, error: f64| {
                let off = (share - truth as f64 / slots as f64).abs();
                assert!(
                    off <= error + 1e-9,
                    "{turn} {what}: {share} of {slots} is not {truth}, within {error}"
                );
            };
            let (one, two) = (figures.level_1.unwrap(), figures.level_2.unwrap());
            parts_are_of_their_parents(figures);
            for n in 0..4 {
                near(one.of[n], truth[n], one.error);
                near(two.of[2 * n], truth[4 + n], two.error);
                near(two.of[2 * n + 1], truth[n] - truth[4 + n], two.error);
            }
            let nodes = LEVEL_1.iter().chain(&LEVEL_2).enumerate().map(|(place, metric)| match place {
                n @ ..4 => (metric, truth[n]),
                n if n % 2 == 0 => (metric, truth[n / 2 + 2]),
                n => (metric, truth[(n - 5) / 2] - truth[(n - 1) / 2 + 2]),
            });
            for (metric, truth) in nodes {
                let node = figures.tree.find(metric.id).unwrap().share;
                let truth = truth as f64 / slots as f64;
                assert!(
                    node.low <= truth + 1e-9 && truth <= node.high + 1e-9 && node.low <= node.value,
                    "{turn} {what}: {truth} is not in {node:?}"
                );
            }
        };
        let add = |sum: Truth, more: &Truth| std::array::from_fn(|n| sum[n] + more[n]);
        let outermost = |mut k: usize| {
            let name = places[k].1;
            loop {
                k = places[k].0;
                if k == 0 || places[k].1 == name {
                    return k == 0;
                }
            }
        };
        holds(&report.whole.inclusive, &all[0], "whole");
        holds(&report.whole.exclusive, &own[0], "outside");
        for (n, name) in names.iter().enumerate() {
            let of: Vec<usize> = (1..12).filter(|k| places[*k].1 == n).collect();
            if of.is_empty() {
                continue;
            }
            let item = &region(&report, name).item;
            holds(&item.exclusive, &of.iter().fold([0; 8], |sum, k| add(sum, &own[*k])), name);
            let outer = of.iter().filter(|k| outermost(**k));
            holds(&item.inclusive, &outer.fold([0; 8], |sum, k| add(sum, &all[*k])), name);
            checked += 1;
        }
    }
    assert!(checked > 150, "{checked}");
}

#[test]
fn a_region_within_itself_counts_once() {
    let mut made = TableContent::new(10, "recursion");
    let root = made.thread("main", ran(1000, [100, 0, 0, 0], [0; 4], 0).sum());
    let outer = made.region("a", root, ran(800, [100, 0, 0, 0], [0; 4], 0).sum());
    let between = made.region("b", outer, ran(500, [100, 0, 0, 0], [0; 4], 0).sum());
    made.region("a", between, ran(300, [100, 0, 0, 0], [0; 4], 0).sum());
    made.region("a", root, ran(100, [100, 0, 0, 0], [0; 4], 0).sum());
    made.at(outer).nested = 7;
    let report = report("recursion", &[made]);
    let (a, b) = (&region(&report, "a").item, &region(&report, "b").item);
    assert_eq!((a.inclusive.slots, a.counts.executions, a.counts.nested), (900, 2, 8));
    // 800 - 500, 300 and 100
    assert_eq!((a.exclusive.slots, b.exclusive.slots, report.whole.exclusive.slots), (700, 200, 100));
}

#[test]
fn of_a_killed_thread_what_is_in_flight_is_not_known() {
    let mut made = TableContent::new(10, "killed");
    *made.header.ended.get_mut() = RUNS;
    let root = made.thread("main", ran(1000, [100, 0, 0, 0], [0; 4], 10).sum());
    let flying = made.region("flying", root, Sum::default());
    let done = made.region("done", flying, ran(400, [50, 0, 0, 50], [0; 4], 4).sum());
    made.region("deep", done, ran(100, [50, 0, 0, 50], [0; 4], 0).sum());
    *made.at(root).ended.get_mut() = 0;
    (made.at(root).seen_slots, made.at(root).seen_ns) = (1250, 120);
    let report = report("killed", &[made]);
    assert_eq!(report.processes[0].ended, ProcessEnd::Killed);
    assert!(!report.processes[0].threads[0].ended);
    // 250 slots were seen after the last sum
    assert_eq!((report.whole.inclusive.slots, report.whole.inclusive.time_ns), (1250, 120));
    shares(&report.whole.inclusive, [1.0, 0.0, 0.0, 0.0], 260.0 / 1250.0);
    let flying = &region(&report, "flying").item;
    assert_eq!((flying.inclusive.slots, flying.exclusive.slots, flying.inclusive.level_1), (0, 0, None));
    let done = &region(&report, "done").item;
    shares(&done.inclusive, [0.5, 0.0, 0.0, 0.5], 0.01);
    shares(&done.exclusive, [0.5, 0.0, 0.0, 0.5], 1.0); // what is 0 may be all
    let exclusive: u64 = report.regions.iter().map(|region| region.item.exclusive.slots).sum();
    assert_eq!(exclusive + report.whole.exclusive.slots, 1250);
    let text = render(&report, Format::Text);
    assert!(
        text.contains("killed, ended by exit_group(2) without exit(3), or still running: process 10;"),
        "{text}"
    );
    assert!(text.contains("done: core bound: 50 % of slots wait"), "{text}");
}

/// A region that two groups have counted in 16 turns each, the second after a piece of an execution: of what is frontend bound, a quarter
/// is latency in the first one's turns.
fn in_turns() -> TableContent {
    let mut made = TableContent::new(10, "turns");
    let thread = made.thread("main", ran(10_000, [60, 0, 40, 0], [0, 0, 10, 0], 0).sum());
    let other = made.turn(thread, "main", ran(10_000, [80, 0, 20, 0], [0, 0, 0, 0], 0).sum());
    let mut sum = ran(4_000, [60, 0, 40, 0], [0, 0, 10, 0], 0).sum();
    ran(4_000, [60, 0, 40, 0], [0, 0, 10, 0], 0).add_to(&mut sum);
    let region = made.region("solve", thread, sum);
    let again = made.region("solve", other, ran(8_000, [80, 0, 20, 0], [0, 0, 0, 0], 0).sum());
    made.region("of the other alone", other, ran(1_000, [80, 0, 20, 0], [0, 0, 0, 0], 0).sum());
    made.at(region).turns.pieces = 1;
    for record in &mut made.records[1..] {
        if record.thread == other {
            record.core = core("Redwood Cove"); // as a group of another name
        }
    }
    for number in [region, again] {
        let turns = &mut made.at(number).turns;
        (*turns.turns.get_mut(), *turns.next.get_mut(), turns.slots) = (16, 16, 8_000.0);
    }
    let tally = &mut made.at(region).turns.node[0];
    (tally.number, tally.above) = (topdown::TD_NODE_FETCH_LATENCY + 1, topdown::TD_NODE_FRONTEND_BOUND);
    (tally.own, tally.parent) = (800.0, 3_200.0);
    (tally.own_own, tally.own_parent, tally.parent_parent) =
        (800.0 * 800.0 / 16.0, 800.0 * 3_200.0 / 16.0, 3_200.0 * 3_200.0 / 16.0);
    made
}

#[test]
fn what_groups_counted_in_turns_is_of_one_region_and_the_nodes_of_each_are_estimated() {
    let report = report("turns", &[in_turns()]);
    let solve = region(&report, "solve");
    assert_eq!(
        (solve.item.counts.executions, solve.item.inclusive.slots, report.processes[0].threads.len()),
        (2, 16_000, 1)
    );
    assert_eq!((report.whole.inclusive.slots, report.whole.counts.executions), (20_000, 1));
    let tree = &solve.item.inclusive.tree;
    near(tree.find(topdown::TD_NODE_FRONTEND_BOUND).unwrap().share.value, 0.3);
    let latency = tree.find(topdown::TD_NODE_FETCH_LATENCY).unwrap();
    near(latency.share.value, 0.3 / 4.0);
    assert!(latency.share.error() < 0.001 && solve.item.inclusive.level_2.is_none(), "{latency:?}");
    assert!(!solve.item.counts.few_turns && region(&report, "of the other alone").item.counts.few_turns);
    // what was being worked on tells nothing
    let mut torn = in_turns();
    *torn.at(2).turns.next.get_mut() += 1;
    let report = self::report("torn", &[torn]);
    let solve = region(&report, "solve");
    assert!(
        solve.item.counts.few_turns
            && solve.item.inclusive.tree.find(topdown::TD_NODE_FETCH_LATENCY).is_none()
    );
    near(solve.item.inclusive.tree.find(topdown::TD_NODE_FRONTEND_BOUND).unwrap().share.value, 0.3);
}

#[test]
fn what_is_odd_is_told_with_its_name() {
    let mut made = nested();
    made.at(2).unbalanced = 3;
    made.at(1).unended = 2;
    made.at(1).missed = 1;
    made.at(1).measurement[1].executions += 9_999;
    *made.header.refused.get_mut() = 4;
    let report = report("odd", &[made]);
    let text = render(&report, Format::Text);
    for said in [
        "unbalanced: 3 ends of 'b' without a beginning",
        "2 never ended",
        "1 could not be read",
        "10,000 executions, 1 of them measured",
        "4 regions found no room",
    ] {
        assert!(text.contains(said), "{said} is not in:\n{text}");
    }
    // an execution never ended: what is nothing may be all
    near(region(&report, "a").item.exclusive.level_1.unwrap().error, 1.0);
    assert!(report.whole.exclusive.level_1.unwrap().error > UNTOLD);
    // nor is it known how many slots are its own, and of those of no region it has some
    assert!(text.contains("\n  exclusive             cannot be told: the bound is 100.0 points\n"), "{text}");
    assert!(text.contains("\n  outside regions ≤"), "{text}");
    let page = render(&report, Format::Html);
    assert!(page.contains("how many slots is not known: executions did not end"), "{page}");
    assert!(page.contains("<div class=\"name\">outside regions</div><div class=\"meta\">at most "), "{page}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    // an end of a region that never began there is no thread's
    let mut made = nested();
    made.at(0).unbalanced = 1;
    let text = render(&self::report("unbalanced", &[made]), Format::Text);
    assert!(text.contains("unbalanced: 1 end of regions without a beginning"), "{text}");
}

/// One execution of so many slots, by general-purpose counters: 40 % retiring, 30 % backend bound, 20 % frontend bound.
fn by_counters(slots: u64) -> Sum {
    let counts = [40, 30, 20].map(|percent| (slots * percent / 100) as f64);
    let counted = counts.map(|sum| Some(InputSum { sum, ..InputSum::default() }));
    let inputs = counted.into_iter().chain([None; 4]);
    let ns = slots / 10;
    Sum {
        executions: 1,
        measured: 1,
        slots,
        measured_slots: slots,
        time_enabled_ns: ns,
        time_running_ns: ns,
        ..Sum::of_inputs("Golden or Raptor Cove, bare counters", 1, 1, 0.0, inputs).unwrap()
    }
}

#[test]
fn what_is_counted_steadily_is_added_unless_it_was_written_meanwhile() {
    let made = |ahead: u64| {
        let mut made = TableContent::new(10, "counted");
        let root = made.thread("main", by_counters(100_000));
        made.region("r", root, by_counters(10_000));
        for number in 0..2 {
            made.at(number).core = core("Golden or Raptor Cove, bare counters");
        }
        let record = made.at(1);
        *record.counted_executions.get_mut() = 3;
        *record.counted_next.get_mut() = 3u64.wrapping_add(ahead);
        record.counted[0].slots = 1 << 60; // what does not hold
        record.counted[1].slots = 30_000;
        record.counted[1].ns = 3_000;
        record.counted[1].counter[1] = 30_000;
        made
    };
    for ahead in [0, 1] {
        let report = report("counted", &[made(ahead)]);
        let found = &region(&report, "r").item;
        assert_eq!((found.inclusive.slots, report.processes[0].damaged), (40_000, 0));
        let level_1 = found.inclusive.level_1.unwrap();
        [0.1, 0.025, 0.05, 0.825].into_iter().zip(level_1.of).for_each(|(truth, found)| near(found, truth));
    }
    for ahead in [2, u64::MAX] {
        let report = report("torn", &[made(ahead)]);
        assert_eq!((report.processes[0].damaged, report.regions.len()), (1, 0));
    }
}

#[test]
fn other_levels_paths_and_troubles() {
    let mut simulated = nested();
    simulated.header.path = 3;
    let mut nothing = TableContent::new(11, "nothing");
    nothing.header.path = 0;
    nothing.header.trouble[..6].copy_from_slice(b"no PMU");
    let report = report("paths", &[simulated, nothing]);
    assert_eq!((report.machines[0].path, report.processes[1].machine), (Path::Simulated, None));
    let json: serde_json::Value = serde_json::from_str(&render(&report, Format::Json)).unwrap();
    assert_eq!(json["machines"][0]["path"], "simulated");
    assert_eq!(report.processes[1].trouble, "no PMU");
    let text = render(&report, Format::Text);
    assert!(text.contains("SIMULATED") && text.contains("process 11: nothing is measured: no PMU"), "{text}");
}

#[test]
fn a_cpu_and_its_pmu_are_named_once_however_they_were_read() {
    let read = |pid, path, level| {
        let mut made = TableContent { ..nested() };
        (made.header.pid, made.header.path, made.header.level) = (pid, path, level);
        made
    };
    let report = report("ways", &[read(10, 1, 2), read(11, 2, 1), read(12, 2, 1)]);
    assert_eq!(report.machines.len(), 2);
    for text in [render(&report, Format::Text), render(&report, Format::Html)] {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" "); // (lines of a text are wrapped)
        let heads: Vec<&str> = text.match_indices(", PMU ").map(|(at, _)| &text[at..]).collect();
        assert_eq!(heads.len(), 1, "{text}");
        assert!(heads[0].contains(", read by RDPMC, level 2; read by read(2), level 1"), "{text}");
    }
}

#[test]
fn of_programs_that_cannot_be_measured_one_line_says_why() {
    let nothing = |pid| {
        let mut made = TableContent::new(pid, "true");
        made.header.path = 0;
        made.header.trouble[..6].copy_from_slice(b"no PMU");
        made
    };
    let text = render(&report("nothing", &[nothing(10), nothing(11)]), Format::Text);
    assert_eq!(text, "topdown: true: nothing is measured: no PMU\n");
    let some: Vec<TableContent> = (11..17).map(nothing).chain([nested()]).collect();
    let text = render(&report("some", &some), Format::Text);
    assert!(text.contains("! processes 11, 12, 13, 14 and 2 more: nothing is measured: no PMU"), "{text}");
}

#[test]
fn csv_has_a_line_for_each_region_and_thread() {
    let mut made = nested();
    let line = b"two\nlines";
    made.at(1).name[..line.len()].copy_from_slice(line);
    let name = b"with \"quotes\", commas\nand a line";
    made.at(2).name[..name.len()].copy_from_slice(name);
    let csv = render(&report("csv", &[made]), Format::Csv);
    let (header, lines) = csv.split_once('\n').unwrap();
    let columns: Vec<&str> = header.split(',').collect();
    assert!(
        lines.contains(
            "\"with \"\"quotes\"\", commas\nand a line\",10,10,main,yes,1,1,0,0,0,0,0,200,0.2,20,1,"
        ),
        "{lines}"
    );
    assert!(lines.contains("\n\"two\nlines\",,,"), "{lines}");
    let a = lines.lines().find(|line| line.starts_with("lines\",,,")).unwrap();
    let fields: Vec<&str> = a.split(',').collect();
    assert_eq!(fields.len(), columns.len());
    let of = |name: &str| fields[columns.iter().position(|column| *column == name).unwrap()];
    assert_eq!((of("slots"), of("exclusive_slots"), of("executions")), ("600", "400", "1"));
    near(of("memory_bound").parse().unwrap(), 0.1);
    near(of("error_2").parse().unwrap(), 0.04);
    // the tree comes behind what all reports have
    let number = |name: &str| of(name).parse::<f64>().unwrap();
    assert_eq!(columns.iter().position(|column| *column == "tma_retiring").unwrap(), 50);
    assert_eq!(columns.len(), 50 + 2 * 3 * 12);
    for metric in LEVEL_1.iter().chain(&LEVEL_2) {
        let (name, field) = (metric.name.to_str().unwrap(), metric.field());
        for of in ["", "exclusive_"] {
            let share = number(&format!("{of}{field}"));
            assert_eq!(number(&format!("{of}{name}")), share);
            assert!(
                number(&format!("{of}{name}_low")) <= share && share <= number(&format!("{of}{name}_high"))
            );
        }
    }
    near(number("tma_memory_bound_high") - number("tma_memory_bound_low"), 0.04);
}

#[test]
fn json_has_what_the_document_says() {
    let json: serde_json::Value =
        serde_json::from_str(&render(&report("json", &[nested()]), Format::Json)).unwrap();
    assert_eq!(json["schema"], 1);
    assert_eq!(json["whole"]["inclusive"]["slots"], 1000);
    assert_eq!(json["regions"][0]["name"], "a");
    near(json["regions"][0]["inclusive"]["level_1"]["backend_bound"].as_f64().unwrap(), 0.2);
    near(
        json["processes"][0]["threads"][0]["tree"][1]["inclusive"]["level_2"]["memory_bound"]
            .as_f64()
            .unwrap(),
        0.7,
    );
    // each name that is in the report is in the document
    let document = include_str!("../../docs/report-formats.md");
    let mut todo = vec![&json];
    while let Some(value) = todo.pop() {
        match value {
            serde_json::Value::Array(items) => todo.extend(items),
            serde_json::Value::Object(fields) => {
                for (name, value) in fields {
                    // (perf's name of a node is ours behind tma_)
                    let name = name.strip_prefix("tma_").unwrap_or(name);
                    assert!(
                        document.contains(&format!("`{name}`")),
                        "docs/report-formats.md does not know {name}"
                    );
                    todo.push(value);
                }
            }
            _ => {}
        }
    }
}

#[test]
fn of_many_threads_the_largest_are_shown() {
    let mut made = TableContent::new(1000, "many");
    for k in 0..60 {
        let slots = 1000 + 10 * ((k * 37) % 60);
        let root = made.thread(&format!("t{k}"), ran(slots, [100, 0, 0, 0], [0; 4], 0).sum());
        made.region("a", root, ran(slots / 2, [100, 0, 0, 0], [0; 4], 0).sum());
    }
    *made.header.ended.get_mut() = EXECED;
    made.records.iter_mut().for_each(|record| *record.ended.get_mut() = 0);
    let report = report("many", &[made]);
    let text = render(&report, Format::Text);
    // 37 * 47 is one less than a multiple of 60, and 37 * 13 one more
    assert!(text.contains(" t47 ") && !text.contains(" t13 ") && !text.contains(" t0 "), "{text}");
    assert_eq!(text.matches("44 smaller threads").count(), 2, "{text}");
    assert!(!text.contains("killed"), "exec is no kill:\n{text}");
    let html = render(&report, Format::Html);
    assert!(html.contains("the 48 largest of 60") && !html.contains("<th>t0<"), "{html}");
}

#[test]
fn what_wasted_most_is_first_and_has_a_step() {
    let report = report("wasted", &[nested()]);
    // of 400 slots outside 20 % retire, of the 200 of "b" 10 %, and of "a" 40 of 440
    assert_eq!((region(&report, "b").wasted, region(&report, "a").wasted), (Some(180), Some(36)));
    assert!(region(&report, "b").next.contains("touch less memory"), "{}", region(&report, "b").next);
    let text = render(&report, Format::Text);
    let ranked = text.split("wasted slots").nth(1).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    let at = |what: &str| ranked.find(what).unwrap_or_else(|| panic!("{what} is not in:\n{text}"));
    assert!(at("1. outside regions: 320, 32.0 % of all slots") < at("2. b: 180, 18.0 % of all slots"));
    assert!(at("2. b:") < ranked.rfind("touch less memory").unwrap());
    let html = render(&report, Format::Html);
    assert!(html.find("<b>outside regions</b>").unwrap() < html.find("<b>b</b>").unwrap());
    // what is not known is not ranked
    let mut made = nested();
    made.at(1).unended = 1;
    let report = self::report("doubtful", &[made]);
    assert_eq!((region(&report, "a").wasted, region(&report, "a").next.as_str()), (None, ""));
}
