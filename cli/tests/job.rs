//! One report of the ranks of a job, which the environment alone tells of: where no MPI is.

mod running;

use running::made::timed;
use running::*;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

const SIZE: u32 = 4;

/// What rank `rank` of the job leaves: of slots so many thousands as its number and one more, that retire by so many tenths.
fn table_of(rank: u32) -> TableContent {
    let share = 10 * (u64::from(rank) + 1);
    let slots = 1000 * (u64::from(rank) + 1);
    let mut made = TableContent::new(10 + rank as i32, "solve");
    let shares = [share, 10, 10, 80 - share];
    let root = made.thread("main", ran(slots, shares, [5, 5, 5, 10], 10).sum());
    if rank > 0 {
        made.region("step", root, ran(slots / 2, shares, [5, 5, 5, 10], 6).sum());
    }
    made
}

/// A directory for a job, where each rank has its table.
fn job(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    for rank in 0..SIZE {
        let directory = scratch.0.join(rank.to_string());
        fs::create_dir_all(&directory).unwrap();
        table_of(rank).write(&directory);
    }
    scratch
}

/// A script that leaves the rank's table, waits until all ranks do so, and goes on.
fn leaving(scratch: &Scratch, then: &str) -> String {
    let all = scratch.0.display();
    format!(
        "cp {all}/$PMI_RANK/*.topdown \"${{TOPDOWN_OUTPUT%.topdown}}.10.0.topdown\"; : > {all}/there.$PMI_RANK; \
         for other in $RANKS; do until [ -e {all}/there.$other ]; do sleep 0.01; done; done; {then}"
    )
}

/// A rank of a job, or of as many of its ranks as are to run.
fn rank(scratch: &Scratch, arguments: &[&str], of: (&str, u32), ranks: &[u32]) -> Command {
    let (job, rank) = of;
    let mut command = scratch.topdown(arguments);
    let all: Vec<String> = ranks.iter().map(u32::to_string).collect();
    command
        .current_dir(&scratch.0)
        .env("PMI_RANK", rank.to_string())
        .env("PMI_SIZE", SIZE.to_string())
        .env("PMI_JOBID", job)
        .env("RANKS", all.join(" "))
        .env_remove("SLURM_JOB_ID")
        .stderr(std::process::Stdio::piped());
    command
}

/// Runs these ranks at once; what each said.
fn run(scratch: &Scratch, output: &str, then: &str, ranks: &[u32]) -> Vec<String> {
    let script = leaving(scratch, then);
    let arguments = ["run", "-o", output, "--", "sh", "-c", &script];
    let start = |number: &u32| rank(scratch, &arguments, ("j7", *number), ranks).spawn().unwrap();
    let children: Vec<Child> = ranks.iter().map(start).collect();
    children.into_iter().map(|child| text(&child.wait_with_output().unwrap().stderr)).collect()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// What was left beside the report.
fn directories(scratch: &Scratch) -> Vec<PathBuf> {
    let entries = fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.to_string_lossy().contains(".ranks-")).collect()
}

#[test]
fn ranks_that_end_leave_one_report_of_all() {
    let scratch = job("job-one");
    let said = run(&scratch, "job.json", "", &[0, 1, 2, 3]);
    let reports = said.iter().filter(|said| said.contains("report is in job.json, of 4 ranks")).count();
    assert_eq!(reports, 1, "{said:?}");
    assert!(directories(&scratch).is_empty() && scratch.is_clean());
    let report = json(&scratch.0.join("job.json"));
    assert_eq!((&report["ranks_of"], &report["run"]["status"]), (&4.into(), &0.into()));
    let ranks = report["ranks"].as_array().unwrap();
    assert_eq!(ranks.len(), 4);
    let (mut slots, mut retiring, mut error) = (0, 0.0, 0.0);
    for (number, rank) in ranks.iter().enumerate() {
        let figures = &rank["inclusive"];
        assert_eq!((rank["rank"].as_u64(), &rank["ended"]), (Some(number as u64), &"exited".into()));
        let own = figures["slots"].as_u64().unwrap();
        assert_eq!(own, 1000 * (number as u64 + 1));
        let level_1 = &figures["level_1"];
        assert!((level_1["retiring"].as_f64().unwrap() - 0.1 * (number as f64 + 1.0)).abs() < 1e-9);
        slots += own;
        retiring += own as f64 * level_1["retiring"].as_f64().unwrap();
        error += own as f64 * level_1["error"].as_f64().unwrap();
    }
    // sums, and bounds added in slots
    let whole = &report["whole"]["inclusive"];
    assert_eq!(whole["slots"].as_u64(), Some(slots));
    let in_slots = |name: &str| slots as f64 * whole["level_1"][name].as_f64().unwrap();
    assert!((in_slots("retiring") - retiring).abs() < 1e-6, "{whole}");
    assert!((in_slots("error") - error).abs() < 1e-6, "{whole}");
    let host = &report["hosts"][0];
    assert_eq!(
        (&host["ranks"], host["inclusive"]["slots"].as_u64()),
        (&vec![0, 1, 2, 3].into(), Some(slots))
    );
    let pids: Vec<_> = report["processes"].as_array().unwrap().iter().map(|one| &one["rank"]).collect();
    assert_eq!(pids.len(), 4);
    // a region over ranks
    let over = &report["regions"][0]["over_ranks"];
    let times: Vec<u64> = (0..4)
        .map(|rank| {
            let own = |process: &&Value| process["rank"] == rank;
            let process = report["processes"].as_array().unwrap().iter().find(own).unwrap();
            process["threads"][0]["tree"][0]["inclusive"]["time_ns"].as_u64().unwrap_or(0)
        })
        .collect();
    assert!(times[0] == 0 && times[3] > times[2], "{times:?}");
    assert_eq!((&over["slowest"], &over["fastest"], &over["ranks"]), (&3.into(), &0.into(), &3.into()));
    let sum: u64 = times.iter().sum();
    assert_eq!((over["sum_ns"].as_u64(), over["max_ns"].as_u64()), (Some(sum), Some(times[3])));
    let imbalance = 1.0 - sum as f64 / 4.0 / times[3] as f64;
    assert!((over["imbalance"].as_f64().unwrap() - imbalance).abs() < 1e-9);
}

#[test]
fn each_format_has_the_ranks() {
    let scratch = job("job-formats");
    for name in ["job.txt", "job.html", "job.csv"] {
        run(&scratch, name, "", &[0, 1, 2, 3]);
        let report = fs::read_to_string(scratch.0.join(name)).unwrap();
        let shows = match name {
            "job.csv" => report.lines().next().unwrap().contains(",rank,host"),
            "job.txt" => {
                report.contains("slowest rank 3, imbalance 43.8 %") && report.contains("  rank 2 on ")
            }
            _ => report.contains("rank 2 on ") && report.contains("slowest rank"),
        };
        assert!(shows, "{report}");
        for other in 0..SIZE {
            fs::remove_file(scratch.0.join(format!("there.{other}"))).unwrap();
        }
    }
}

#[test]
fn a_rank_that_is_killed_is_said() {
    let scratch = job("job-killed");
    let then = "[ $PMI_RANK != 2 ] || kill -9 $$; [ $PMI_RANK != 1 ] || exit 3";
    run(&scratch, "job.txt", then, &[0, 1, 2, 3]);
    let report = fs::read_to_string(scratch.0.join("job.txt")).unwrap();
    assert!(report.contains("! rank 2 of 4: killed by signal 9"), "{report}");
    assert!(report.contains("! rank 1 of 4: exit status 3"), "{report}");
    assert!(directories(&scratch).is_empty());
}

#[test]
fn a_rank_whose_topdown_is_killed_is_in_the_report_as_far_as_it_came() {
    let scratch = job("job-lost");
    let then = "[ $PMI_RANK != 1 ] || kill -9 $PPID; sleep 0.2";
    run(&scratch, "job.json", then, &[0, 1, 2, 3]);
    let report = json(&scratch.0.join("job.json"));
    let rank = &report["ranks"][1];
    assert_eq!((&rank["ended"], &rank["inclusive"]["slots"]), (&"lost".into(), &2000.into()));
    assert_eq!(report["whole"]["inclusive"]["slots"], 10_000);
}

#[test]
fn a_rank_that_fails_makes_a_report_while_others_run() {
    let scratch = job("job-fails");
    let waits = "n=0; until [ -e job.txt ] || [ $n = 500 ]; do sleep 0.01; n=$((n+1)); done; kill -9 $PPID";
    run(&scratch, "job.txt", &format!("[ $PMI_RANK != 1 ] || exit 3; {waits}"), &[0, 1, 2, 3]);
    let report = fs::read_to_string(scratch.0.join("job.txt")).expect("a report");
    assert!(report.contains("! rank 1 of 4: exit status 3"), "{report}");
    assert!(report.contains("! ranks 0, 2, 3 of 4: did not finish: still ran"), "{report}");
}

#[test]
fn of_ranks_that_never_begin_a_report_says_so_and_what_is_left_can_be_read() {
    let scratch = job("job-absent");
    let said = run(&scratch, "job.txt", "", &[0, 2]).concat();
    assert!(said.contains("of 2 of 4 ranks so far"), "{said}");
    let report = fs::read_to_string(scratch.0.join("job.txt")).unwrap();
    assert!(report.contains("! ranks 1, 3 of 4: not measured"), "{report}");
    let left = directories(&scratch);
    // (a thousand ranks of a host leave no more files)
    let files = fs::read_dir(&left[0]).unwrap().map(|entry| entry.unwrap().path());
    let (host, others): (Vec<_>, Vec<_>) = files.partition(|path| path.extension() == Some("ranks".as_ref()));
    assert!(host.len() == 1 && others.len() == 3, "{host:?} {others:?}");
    let again = done(&mut scratch.topdown(&["report", left[0].to_str().unwrap()]));
    let again = text(&again.stdout);
    assert!(again.contains("! ranks 1, 3 of 4: not measured") && again.contains("rank 2 on "), "{again}");
    // they begin after all
    run(&scratch, "job.txt", "", &[1, 3]);
    let report = fs::read_to_string(scratch.0.join("job.txt")).unwrap();
    assert!(
        report.contains("rank 3 on ") && report.contains("rank 0 on ") && !report.contains("not measured")
    );
    assert!(directories(&scratch).is_empty());
}

#[test]
fn names_that_tell_ranks_apart_are_reports_of_their_own() {
    let scratch = job("job-apart");
    run(&scratch, "job.%r.json", "", &[0, 1, 2, 3]);
    for number in 0..SIZE {
        let report = json(&scratch.0.join(format!("job.{number}.json")));
        assert!(report["ranks"].is_null() && report["whole"]["inclusive"]["slots"] == 1000 * (number + 1));
    }
}

#[test]
fn what_is_counted_from_outside_adds_up() {
    let scratch = job("job-outside");
    let script = leaving(&scratch, "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done");
    let script = script.replacen("cp ", "true ", 1);
    let arguments = ["run", "--outside", "-o", "job.json", "--", "sh", "-c", &script];
    let start = |number: u32| {
        let mut command = rank(&scratch, &arguments, ("j8", number), &[0, 1]);
        command.env("PMI_SIZE", "2").env("TOPDOWN_SIMULATE", "Zen 4").env_remove("TOPDOWN_PRELOAD").spawn()
    };
    let children: Vec<Child> = [0, 1].map(|number| start(number).unwrap()).into();
    children.into_iter().for_each(|child| _ = child.wait_with_output().unwrap());
    let report = json(&scratch.0.join("job.json"));
    let slots = |of: &Value| of["inclusive"]["slots"].as_u64().unwrap();
    let ranks = report["ranks"].as_array().unwrap();
    assert!(ranks.iter().all(|rank| slots(rank) > 1000), "{ranks:?}");
    assert_eq!(slots(&ranks[0]) + slots(&ranks[1]), slots(&report["whole"]));
    assert_eq!(report["outside"]["cores"][0]["slots"].as_u64(), Some(slots(&report["whole"])));
    assert_eq!(report["outside"]["cores"].as_array().unwrap().len(), 1);
}

#[test]
fn several_commands_of_a_rank_for_one_report_are_jobs_of_their_own() {
    let scratch = job("job-twice");
    // rank 1 has not ended the first command when the others begin the second one; it begins that when the first is over
    run(&scratch, "job.json", "", &[0, 2, 3]);
    let first = directories(&scratch);
    run(&scratch, "job.json", "", &[0, 2]);
    assert_eq!(directories(&scratch).len(), 2);
    run(&scratch, "job.json", "", &[1]);
    let left = directories(&scratch);
    assert!(left.len() == 1 && !left.contains(&first[0]), "{left:?}");
    run(&scratch, "job.json", "", &[1]);
    run(&scratch, "job.json", "", &[3]);
    assert!(directories(&scratch).is_empty());
    let reports = fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().path());
    let reports: Vec<Value> =
        reports.filter(|path| path.extension() == Some("json".as_ref())).map(|path| json(&path)).collect();
    assert_eq!(reports.len(), 2);
    assert!(reports.iter().all(|report| report["whole"]["inclusive"]["slots"] == 10_000), "{reports:?}");
}

#[test]
fn a_rank_without_counters_is_told_by_its_time() {
    let scratch = job("job-mixed");
    let own = scratch.0.join("3");
    fs::remove_dir_all(&own).unwrap();
    fs::create_dir_all(&own).unwrap();
    let mut blind = TableContent::by_clocks(13, "solve", "no counters");
    let root = blind.thread("main", timed(1, 1, 10_000_000, 8_000_000));
    blind.region("step", root, timed(10, 10, 6_000_000, 5_000_000));
    blind.write(&own);
    run(&scratch, "job.csv", "", &[0, 1, 2, 3]);
    let compared = done(scratch.topdown(&["compare", "--csv", "job.csv", "job.csv"]).current_dir(&scratch.0));
    let compared = text(&compared.stdout);
    // (each rank has a line in the report, which is no region)
    let regions: BTreeSet<&str> =
        compared.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert_eq!(regions, ["", "step", "step (time alone)"].into());
    for other in 0..SIZE {
        fs::remove_file(scratch.0.join(format!("there.{other}"))).unwrap();
    }
    run(&scratch, "job.json", "", &[0, 1, 2, 3]);
    // of neither row of the region is known what all ranks did
    let report = json(&scratch.0.join("job.json"));
    let regions = report["regions"].as_array().unwrap();
    assert!(
        regions.iter().all(|region| region["name"] == "step" && region["over_ranks"].is_null()),
        "{regions:?}"
    );
}
