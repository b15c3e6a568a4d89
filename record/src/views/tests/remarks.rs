//! What is said of a profile besides its figures.

use super::super::flame;
use super::super::{parts::Parts, remarks};
use super::*;
use crate::cpus::{CpuChange, CpuTotals};
use crate::event_sampling::SamplesOf;
use crate::held::EventShare;
use crate::simulation::{BY_STOPS, BY_TIMER};

#[test]
fn a_profile_of_cpus_says_so_and_what_is_not_in_it() {
    let remarks = |profile: &Profile| {
        let text = String::from_utf8(View::Text.write(profile, &HEADING)).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&View::Json.write(profile, &HEADING)).unwrap();
        (text, json)
    };
    let (text, json) = remarks(&profile());
    assert!(
        !text.contains("CPU") && json.get("cpus").is_none() && json.get("time_by_timer").is_none(),
        "{text}"
    );
    let of_cpus = |totals: CpuTotals| remarks(&Profile { cpus: Some(totals), ..profile() });
    let totals = CpuTotals { cpus: 4, ..CpuTotals::default() };
    let (text, json) = of_cpus(totals.clone());
    assert!(text.starts_with("topdown: ./a.out (4.0 s, 4 CPUs, 1 thread, 2,000 bursts)\n"), "{text}");
    assert_eq!((json["cpus"].as_u64(), json["time_by_timer"].as_bool()), (Some(4), Some(false)));
    assert!(
        !["offline", "left out", "other users", "timer"].iter().any(|word| text.contains(word)),
        "{text}"
    );
    let change = |cpu, online, seen_ns| CpuChange { cpu, online, seen_ns };
    let changes = vec![change(3, false, 700_000_000), change(1, true, 2_250_000_000)];
    let (text, json) = of_cpus(CpuTotals {
        changed: vec![1, 3],
        changes,
        switched: 1234,
        hidden: 7,
        by_timer: true,
        ..totals
    });
    for said in [
        "CPUs went offline or came online meanwhile: 1, 3 (CPU 3 went by 0.7 s, CPU 1 came by 2.2 s).",
        "1,234 windows left out: another thread ran in them, too.",
        "Processes of other users that were there already: 7. ",
        "A timer tells the time",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert_eq!(json["windows_of_several_threads"], 1234);
    assert_eq!(json["processes_without_names"], 7);
    assert_eq!(json["cpus_changed"], serde_json::json!([1, 3]));
    assert_eq!(
        json["cpu_changes"][0],
        serde_json::json!({"cpu": 3, "online": false, "seen_ns": 700_000_000})
    );
}

#[test]
fn it_is_said_where_bursts_or_timers_tell_the_time_in_the_kernel() {
    let text = |unclocked, by_timer| {
        let profile = Profile { unclocked, by_timer, ..profile() };
        String::from_utf8(View::Text.write(&profile, &HEADING)).unwrap()
    };
    assert!(!text(0, 0).contains("tell the time") && !text(0, 0).contains("a timer"));
    assert!(text(2, 0).contains("Of 2 threads bursts tell the time") && !text(2, 0).contains("a timer"));
    assert!(text(0, 1).contains("Of 1 thread a timer tells the time") && !text(0, 1).contains("bursts tell"));
}

#[test]
fn the_text_says_what_is_in_no_share_and_why_there_were_fewer_bursts() {
    type Change = fn(&mut Profile);
    let said = |change: Change| {
        let mut profile = profile();
        change(&mut profile);
        String::from_utf8(View::Text.write(&profile, &HEADING)).unwrap()
    };
    let quiet = said(|_| ());
    for word in ["left out", "instead of", "no room", "throttled", "still ran"] {
        assert!(!quiet.contains(word), "{word}: {quiet}");
    }
    assert!(!said(|profile| profile.unseen.ns = 10_000_000).contains("not sampled"));
    let changes: [(Change, &str); 15] = [
        (
            |profile| profile.left_running = 1,
            "1 process still ran when what was recorded had ended: what it did",
        ),
        (
            |profile| profile.left_running = 3,
            "3 processes still ran when what was recorded had ended: what they did",
        ),
        (|profile| profile.lost = 1234, "1,234 records found no room: the recorder came late"),
        (
            |profile| (profile.throttled, profile.held) = (6, Some(held())),
            "max_sample_rate): a longer --period has fewer of them at once",
        ),
        (|profile| profile.notes.push("A link.".into()), "A link."),
        (|profile| profile.without_callers = true, "Some virtual machines show such records and have none"),
        (
            |profile| (profile.threads, profile.unseen) = (300, Unseen { threads: 40, ns: 1_000_000_000 }),
            "40 of 300 threads had ended by then. At most 1000.0 ms, 20.0 % of all, are not in this.",
        ),
        (
            |profile| profile.unseen.ns = 200_000_000,
            "clock's counter others had. At most 200.0 ms, 4.8 % of all, are not in this.",
        ),
        (|profile| profile.throttled = 6, "throttled samples 3 times"),
        (|profile| profile.throttled = 6, "a lower -F has fewer of them at once"),
        (
            |profile| (profile.throttled, profile.pace.limit) = (6, Limit::Kernel),
            "max_sample_rate): a higher one permits more",
        ),
        (|profile| profile.parted = 5, "5 windows left out"),
        (|profile| profile.impossible = 4, "The time alone is told by 4 bursts"),
        (
            |profile| {
                profile.pace = Pace { frequency: 250.2, burst_ns: 4e4, limit: Limit::Cost, ..profile.pace };
            },
            "No more than 250 bursts a second and thread were asked for instead of 500: each takes 40.0 us, and all may take 1 % of the time",
        ),
        (
            |profile| profile.pace = Pace { frequency: 100.0, limit: Limit::Kernel, ..profile.pace },
            "No more than 100 bursts a second and thread were asked for instead of 500: more would be throttled",
        ),
    ];
    for (change, line) in changes {
        assert!(said(change).contains(line), "{line}");
    }
}

#[test]
fn it_is_said_how_many_bursts_came_if_these_are_far_fewer_than_were_asked_for() {
    // (in 4 s of CPU time)
    let said = |bursts, ms, cpus: bool| {
        let totals = CpuTotals { cpus: 2, ..CpuTotals::default() };
        let cpus = cpus.then_some(totals);
        let mut profile = Profile { bursts, cpus, elapsed: Duration::from_millis(ms), ..profile() };
        let text = String::from_utf8(View::Text.write(&profile, &HEADING)).unwrap();
        profile.functions.iter_mut().for_each(|function| function.own.shares = Err(NoShares::Few(3)));
        let nothing = says_nothing(&profile).unwrap();
        let came = text.lines().find(|line| line.contains("of CPU time")).map(str::to_string);
        assert!(nothing.contains(came.as_deref().unwrap_or("record longer.")), "{nothing}");
        came.unwrap_or_default()
    };
    assert_eq!([said(2000, 4000, false), said(1000, 4000, false), said(100, 0, true)], [""; 3]);
    let crowd = said(40, 2000, false);
    assert!(
        crowd.starts_with(
            "In a second of CPU time 10 bursts came (20 a second in all), far fewer than the 500 a second and thread that were to come: "
        ) && crowd.contains("more want to run than there are CPUs"),
        "{crowd}"
    );
    assert!(said(30, 4000, true).contains("time 7.5 bursts came (7.5 a second in all)"));
    assert!(said(30, 4000, true).contains("a second and CPU that were to come: only those of CPUs that run"));
    let many = said(999, 100, false);
    assert!(many.contains("together no more than 5000 a second"), "{many}");
}

#[test]
fn a_profile_that_says_nothing_of_slots_says_so() {
    let mut profile = profile();
    assert_eq!(says_nothing(&profile), None);
    profile.functions.iter_mut().for_each(|function| function.own.shares = Err(NoShares::Few(3)));
    profile.pace = Pace { frequency: 10.0, limit: Limit::Kernel, ..profile.pace };
    let said = says_nothing(&profile).unwrap();
    assert!(
        said.contains("of any function, from 2,000 bursts: record longer. No more than 10 bursts a second"),
        "{said}"
    );
    profile.cores.clear();
    assert!(says_nothing(&profile).unwrap().starts_with("Nothing was sampled"));
    assert!(says_nothing(&profile).unwrap().contains("others hold the counters"));
    // (there are none where shares are made up)
    profile.simulated = Some(BY_TIMER);
    assert!(says_nothing(&profile).unwrap().ends_with("record as root, or with --ptrace."));
    profile.simulated = Some(BY_STOPS);
    assert!(says_nothing(&profile).unwrap().ends_with("(a program of 32 bits)."));
    // (of a condition shares are never told, and that it held nowhere is what was asked)
    let mut profile = conditional();
    assert_eq!(says_nothing(&profile), None);
    profile.cores.clear();
    profile.functions.clear();
    assert_eq!(says_nothing(&profile), None);
}

#[test]
fn where_no_thread_was_looked_at_there_is_no_time_between_looks() {
    let said = |period| {
        let of = SamplesOf::Time { why: "--ptrace counts nothing".into(), by_stops: true };
        remarks::of_held(&EventShare { of, period, ..held() })[0].clone()
    };
    assert!(said(4_000_000).contains("looked at (ptrace), once in 4.0 ms of CPU time on average."));
    assert_eq!(said(0), "Threads that run are stopped and looked at (ptrace). Here none was.");
}

#[test]
fn empty_branch_records_are_said_beside_files_too() {
    let mut profile = profile();
    assert_eq!(says_no_callers(&profile), None);
    profile.without_callers = true;
    assert!(says_no_callers(&profile).unwrap().ends_with("--call-graph fp and dwarf do without."));
    profile.cores.clear();
    assert_eq!(says_no_callers(&profile), None, "nothing was sampled");
}

#[test]
fn why_shares_are_not_told_is_said_and_how_long_to_record_where_that_helps() {
    let said = |untold, bursts, seconds| {
        let elapsed = Duration::from_secs_f64(seconds);
        super::super::remarks::untold(
            untold,
            &FunctionFigures { bursts, ..figures(1_000_000_000, None) },
            &Profile { elapsed, ..profile() },
        )
    };
    assert_eq!(said(NoShares::Few(3), 50, 4.0), "cannot be told from 3 bursts: record some 13 s or more");
    assert_eq!(said(NoShares::Few(1), 50, 0.25), "cannot be told from 1 burst: record some 2.5 s or more");
    // too few to know that it is too short
    assert_eq!(said(NoShares::Few(0), 5, 10.0), "cannot be told from 0 bursts: record some 20 s or more");
    assert_eq!(
        said(NoShares::Few(0), 40, 10.0),
        "cannot be told: runs for less than a gap (40 bursts, no window)"
    );
}

fn stack_of_f(profile: &Profile) -> &CallStack {
    profile.stacks.keys().find(|stack| stack.functions().last().unwrap().0.starts_with("f(")).unwrap()
}

#[test]
fn shares_of_which_each_may_be_all_or_nothing_are_not_shown() {
    let mut profile = profile();
    let told = profile.functions[0].own.shares.as_mut().unwrap();
    told.shares.iter_mut().for_each(|share| (share.low, share.high) = (0.0, 1.0));
    let text = |profile: &Profile| String::from_utf8(View::Text.write(profile, &HEADING)).unwrap();
    let untold = "cannot be told: known to ±";
    assert!(
        text(&profile).lines().any(|line| line.contains(untold) && line.contains("f(\"x\", int)")),
        "{}",
        text(&profile)
    );
    let html = String::from_utf8(View::Html.write(&profile, &HEADING)).unwrap();
    assert!(html.contains(untold) && html.contains("Of none it can be told."));
    let (core, own) = (&profile.cores[0], &profile.functions[0].own);
    assert!(flame::dominant(core, own).is_none() && flame::dominant(core, &core.all).is_some(), "a colour");
    // all, level 1, and unknown
    assert_eq!(Parts::new(&profile).of(stack_of_f(&profile), 1000), [1000, 0, 0, 0, 0, 1000]);
    assert!(profile.functions[0].own.wasted(&profile.cores[0].nodes).is_none());
    assert!(says_nothing(&profile).is_some());
    // nor if one may be half of all that can be
    let told = profile.functions[0].own.shares.as_mut().unwrap();
    told.shares.iter_mut().for_each(|share| *share = ShareInterval::around(share.value, 0.1));
    assert!(!text(&profile).contains(untold) && says_nothing(&profile).is_none());
    let told = profile.functions[0].own.shares.as_mut().unwrap();
    (told.shares[3].value, told.shares[3].low, told.shares[3].high) = (0.1, 0.0, 0.98);
    assert!(text(&profile).contains("cannot be told: known to ±88 points alone"), "{}", text(&profile));
    assert_eq!(Parts::new(&profile).of(stack_of_f(&profile), 1000), [1000, 0, 0, 0, 0, 1000]);
}

#[test]
fn how_long_to_record_is_said_of_what_is_told() {
    let mut profile = profile();
    let text = |profile: &Profile| String::from_utf8(View::Text.write(profile, &HEADING)).unwrap();
    assert!(!text(&profile).contains("below a point"));
    profile.functions[0].own.shares.as_mut().unwrap().sampling = 0.02;
    assert!(
        text(&profile).contains("is below a point in all that are told after some 16 s."),
        "{}",
        text(&profile)
    );
    profile.elapsed = Duration::from_millis(300);
    assert!(text(&profile).contains("after some 1.2 s."), "{}", text(&profile));
}

#[test]
fn it_is_said_of_what_functions_have_no_names() {
    let mut profile = profile();
    let text = |profile: &Profile| String::from_utf8(View::Text.write(profile, &HEADING)).unwrap();
    assert!(!text(&profile).contains("have no names"));
    profile.functions[1].is_unnamed = true;
    profile.functions[1].module = "libx.so".into();
    assert!(
        text(&profile).contains("Functions of libx.so have no names. A stripped file needs"),
        "{}",
        text(&profile)
    );
    // of what is not listed nothing
    profile.functions[1].own.time.value = 0.001;
    assert!(!text(&profile).contains("have no names"));
}

#[test]
fn what_is_not_listed_is_counted() {
    let mut profile = profile();
    let of = |profile: &Profile, view: View| String::from_utf8(view.write(profile, &HEADING)).unwrap();
    assert!(!of(&profile, View::Text).contains("Not listed"));
    let small = profile.functions[1].clone();
    for k in 0..50 {
        let mut function = ProfiledFunction { name: format!("small{k}"), ..small.clone() };
        (function.own.time.value, function.own.time_ns) = (0.0016, 1000);
        profile.functions.push(function);
    }
    for view in [View::Text, View::Html] {
        let text = of(&profile, view);
        assert!(
            text.contains("Not listed: 50 functions of less than 0.5 % of the time each, 8.0 % together"),
            "{text}"
        );
    }
}

#[test]
fn all_formats_with_text_say_that_a_timer_tells_the_time() {
    let profile = Profile { by_timer: 1, ..profile() };
    for view in [View::Text, View::Json, View::Html, View::Pprof, View::Firefox] {
        let written = String::from_utf8_lossy(&view.write(&profile, &HEADING)).into_owned();
        assert!(written.contains("Of 1 thread a timer tells the time"), "{view:?}");
    }
    let json = |profile: &Profile| -> serde_json::Value {
        serde_json::from_slice(&View::Json.write(profile, &HEADING)).unwrap()
    };
    assert_eq!(json(&profile)["time_by"], "timer");
    assert_eq!(json(&Profile { by_timer: 0, ..profile.clone() })["time_by"], "counter");
    let csv = String::from_utf8(View::Csv.write(&profile, &HEADING)).unwrap();
    let mut rows = csv.lines();
    assert!(rows.next().unwrap().ends_with(",time_by") && rows.all(|row| row.ends_with(",timer")), "{csv}");
}
