//! Bursts to functions.

use super::*;
use crate::event_sampling::{EventSampling, Tally};
use crate::proof::Calls;
use crate::settings::Settings;
use crate::spaces::Module;
use crate::stacks::CodePlace;
use crate::symbols::tests::{SOURCE, Scratch, lines_with, offsets_of};

/// Bursts at these offsets in a file, of 1 ms, 2 ms and so on, all of them below a caller in the file.
fn recording(file: &str, offsets: &[u64], caller: u64) -> Recording {
    let place = |address: u64| CodePlace { module: Some(0), address };
    let settings = Settings::default();
    let burst =
        |k: u32| Burst { weight_ns: 1_000_000 * u64::from(k + 1), stacks: vec![k], ..Burst::default() };
    Recording {
        events: vec![SampledEvents::of_core("Sunny, Willow or Cypress Cove, bare counters").unwrap()],
        settings,
        bursts: (0..offsets.len() as u32).map(burst).collect(),
        stacks: offsets.iter().map(|offset| vec![place(*offset), place(caller)]).collect(),
        modules: vec![Module::at(file)],
        files: std::sync::Arc::default(),
        made: std::sync::Arc::default(),
        totals: Recording::none(Vec::new(), settings).totals,
        sampling: None,
        simulated: None,
    }
}

/// After another start of the machine other functions are at the kernel's addresses.
#[test]
fn the_kernels_functions_are_those_of_the_start_in_which_it_was_recorded() {
    let scratch = Scratch::new("kernel");
    let mut recording = recording(&scratch.compiled("kernel", &[]), &[0xffff_ffff_8100_1000], 0);
    recording.modules = vec![Module::Kernel];
    let notes = |recording: &Recording| {
        let profile = Profile::new(recording);
        let is_told = |note: &&String| note.contains("the kernel's functions have no names");
        (profile.notes.iter().filter(is_told).count(), profile.functions[0].name.clone())
    };
    assert_eq!(notes(&recording).0, 0);
    recording.totals.boot = "another".into();
    assert_eq!(notes(&recording), (1, "[kernel]".into()));
}

#[test]
fn what_was_not_sampled_may_be_any_functions() {
    let scratch = Scratch::new("unseen");
    let file = scratch.compiled("with", &["-g"]);
    let mut recording = recording(&file, &[offsets_of(&file, "outer")[0]], 0);
    recording.bursts = vec![Burst { weight_ns: 3_000_000, ..recording.bursts[0].clone() }; 100];
    let all = |recording: &Recording| {
        let time = Profile::new(recording).cores[0].all.time;
        (time.value, (time.low * 100.0).round(), time.high)
    };
    assert_eq!(all(&recording), (1.0, 96.0, 1.0));
    recording.totals.unseen.ns = 100_000_000;
    assert_eq!(all(&recording), (1.0, 72.0, 1.0));
    let outer = |recording: &Recording| {
        let profile = Profile::new(recording);
        profile.functions.iter().find(|one| one.name == "outer").unwrap().inclusive.time.high
    };
    recording.stacks.push(Vec::new());
    recording.bursts.iter_mut().skip(50).for_each(|burst| burst.stacks = vec![1]);
    let with = outer(&recording);
    recording.totals.unseen.ns = 0;
    assert!((with - (outer(&recording) * 0.75 + 0.25)).abs() < 1e-9, "{with}");
    // (of events weights are no time)
    let without = outer(&recording);
    recording.totals.unseen.ns = 100_000_000;
    recording.sampling = Some((EventSampling::made_up(&[]), Tally::default()));
    assert!((outer(&recording) - without).abs() < 1e-9, "{without}");
    // (of time alone they are, and what threads did before their timers were open is missing beside what no sample stands for)
    let by_timer = EventSampling::of_stops(Settings::default(), 3_000_000, String::new());
    recording.sampling = Some((by_timer, Tally::of_time(100, 300_000_000, 350_000_000)));
    assert!((outer(&recording) - (without * 300.0 + 150.0) / 450.0).abs() < 1e-9);
}

#[test]
fn functions_and_lines_have_the_retire_latencies_of_their_samples() {
    let scratch = Scratch::new("latency");
    let file = scratch.compiled("timed", &["-g"]);
    let (outer, caller) = (offsets_of(&file, "outer")[0], offsets_of(&file, "caller")[0]);
    let mut recording = recording(&file, &[outer, caller], 0);
    recording.sampling = Some((EventSampling::made_up(&["cpu"]), Tally::default()));
    let burst =
        |stack: u32, latency| Burst { stacks: vec![stack], weight_ns: 1000, latency, ..Burst::default() };
    let mut of = |latency: fn(usize) -> Option<u16>| {
        recording.bursts = (0..200).map(|k| burst(u32::from(k % 4 == 0), latency(k))).collect();
        let profile = Profile::new(&recording);
        let own = |name: &str| profile.functions.iter().find(|one| one.name == name).unwrap().clone();
        (own("outer"), own("caller"), profile)
    };
    // (each fourth is the caller's; of the other function they are 40 and 60)
    let (outer, caller, profile) = of(|k| Some(if k % 4 == 0 { 7 } else { 40 + 20 * (k as u16 % 2) }));
    let told = outer.own.latency.unwrap();
    assert!((told.value - 53.3).abs() < 0.1 && told.low > 50.0 && told.high.unwrap() < 57.0, "{told:?}");
    assert_eq!(outer.lines[0].latency, Some(told));
    assert!(caller.own.latency.is_some_and(|told| told.value == 7.0 && told.low < 7.0 && told.low > 6.0));
    let all = profile.cores[0].all.latency.unwrap();
    assert!((all.value - (0.75 * 53.3 + 0.25 * 7.0)).abs() < 0.1, "{all:?}");
    // (ten of the caller's samples tell some)
    let (outer, caller, _) = of(|k| (k % 4 != 0 || k < 40).then_some(5));
    assert!(outer.own.latency.is_some() && caller.own.latency.is_none() && caller.lines[0].latency.is_none());
    assert!(of(|_| None).2.cores[0].all.latency.is_none());
}

#[test]
fn what_a_timer_tells_may_be_any_functions() {
    let mut recording = recording("/nowhere/a", &[0, 8], 16);
    recording.bursts = vec![recording.bursts[0].clone(); 1000];
    let ends = |recording: &Recording| {
        let profile = Profile::new(recording);
        profile.functions.iter().map(|one| (one.own.time.low, one.own.time.high)).collect::<Vec<_>>()
    };
    assert!(ends(&recording).iter().all(|(low, high)| high - low < 0.01), "{:?}", ends(&recording));
    recording.totals.by_timer = 1;
    assert!(ends(&recording).iter().all(|ends| *ends == (0.0, 1.0)));
    // of CPUs it is told besides
    recording.totals.cpus = Some(
        serde_json::from_str(r#"{"cpus":2,"changed":[],"switched":0,"hidden":0,"by_timer":false}"#).unwrap(),
    );
    assert!(ends(&recording).iter().all(|(low, high)| high - low < 0.01));
    recording.totals.cpus.as_mut().unwrap().by_timer = true;
    assert!(ends(&recording).iter().all(|ends| *ends == (0.0, 1.0)));
}

#[test]
fn files_that_are_not_those_that_ran_are_in_a_note() {
    let scratch = Scratch::new("note");
    let path = scratch.path("a\u{1b}").display().to_string();
    std::fs::write(&path, "one").unwrap();
    let recording = recording(&path, &[0], 16);
    let notes = || Profile::new(&recording).notes;
    assert!(notes().is_empty());
    std::fs::write(&path, "other").unwrap();
    let [note] = &notes()[..] else { panic!("no note, or several") };
    assert!(
        note.ends_with("/a\u{fffd}: another file is at its path, so its functions have no names."),
        "{note}"
    );
    std::fs::remove_file(&path).unwrap();
    assert!(notes()[0].contains(": it is not at its path, so"), "{:?}", notes());
}

#[test]
fn branch_records_that_tell_no_caller_of_any_sample_are_empty() {
    let mut recording = recording("/nowhere/a", &[0, 8], 16);
    let missing = |recording: &Recording| Profile::new(recording).without_callers;
    recording.modules.push(Module::Process("a".into()));
    let process = CodePlace { module: Some(1), address: 0 };
    recording.stacks[0][1] = process;
    recording.settings.callers = CallGraph::Lbr;
    assert!(!missing(&recording));
    recording.stacks[1][1] = process;
    assert!(missing(&recording));
    recording.settings.callers = CallGraph::FramePointers;
    assert!(!missing(&recording));
}

#[test]
fn a_time_is_within_its_interval() {
    for n in 1..3000_u32 {
        let whole = SampledWhole {
            time_ns: f64::from(n),
            bursts: f64::from(n),
            unseen_ns: 0.0,
            sampled: 1.0,
            by_timer: false,
            latency: LatencyTally::default(),
        };
        for part in [0, 1, n / 2, n - 1, n] {
            let time = whole.time(part.into());
            assert!(time.low <= time.value && time.value <= time.high, "{part} of {n}: {time:?}");
        }
    }
}

#[test]
fn returns_tell_of_a_function_without_inlined_ones_and_of_all_that_call() {
    let scratch = Scratch::new("returns");
    let file = scratch.compiled("with", &["-g"]);
    let (outer, caller) = (offsets_of(&file, "outer"), offsets_of(&file, "caller")[0]);
    let mut recording = recording(&file, &[outer[0]], caller);
    let place = |address: u64| CodePlace { module: Some(0), address };
    recording.stacks.push(vec![place(caller)]);
    let burst = |stack: u32, returns: u64| Burst {
        weight_ns: 1,
        stacks: vec![stack; 3],
        windows: vec![Some(vec![6000, 3000, 1000, 1000]); 2],
        calls: Calls { returns: vec![Some(returns); 2], stack: vec![0; 3] },
        ..Burst::default()
    };
    let errors = |returns: u64, recording: &mut Recording| {
        recording.bursts = (0..40).map(|k| burst(k % 2, returns)).collect();
        let profile = Profile::new(recording);
        let of = |name: &str, figures: fn(&ProfiledFunction) -> &FunctionFigures| {
            let found = profile.functions.iter().find(|function| function.name == name).unwrap();
            figures(found).shares.as_ref().unwrap().shares[0].error()
        };
        [of("outer", |f| &f.own), of("caller", |f| &f.own), of("caller", |f| &f.inclusive)]
    };
    let [outer, caller, inclusive] = errors(0, &mut recording);
    assert!(outer > 0.05 && caller < 0.001 && inclusive < 0.001, "{outer} {caller} {inclusive}");
    let with = errors(1, &mut recording);
    assert!(with.iter().all(|error| *error > 0.02), "{with:?}");
}

#[test]
fn time_of_an_inlined_function_is_its_own_and_its_callers_inclusive() {
    let scratch = Scratch::new("inclusive");
    let file = scratch.compiled("with", &["-g"]);
    let offsets = offsets_of(&file, "outer");
    let profile = Profile::new(&recording(&file, &offsets, offsets_of(&file, "caller")[0]));
    let figures = |name: &str| {
        let found = profile.functions.iter().find(|function| function.name == name).unwrap();
        (found.own.time_ns, found.inclusive.time_ns)
    };
    let all = (1..=offsets.len() as u64).sum::<u64>() * 1_000_000;
    let [innermost, between, outer] = ["innermost", "between", "outer"].map(figures);
    assert_eq!(innermost.0 + between.0 + outer.0, all);
    assert!(innermost.0 > 0 && innermost.1 == innermost.0, "{innermost:?}");
    assert!(between.0 > 0 && between.1 == between.0 + innermost.0, "{between:?}");
    assert!(outer.0 > 0 && outer.1 == all, "{outer:?}");
    assert_eq!(figures("caller"), (0, all));
    for function in &profile.functions {
        let of_lines: u64 = function.lines.iter().map(|line| line.time_ns).sum();
        assert!(of_lines <= function.own.time_ns);
        assert!(function.lines.is_sorted_by(|a, b| a.time_ns >= b.time_ns));
        let lines: BTreeSet<u32> = function.lines.iter().map(|line| line.line).collect();
        let marked = if function.own.time_ns > 0 { lines_with(&function.name) } else { BTreeSet::new() };
        assert!(lines.is_superset(&marked), "{}: {lines:?}", function.name);
    }
    assert!(profile.stacks.keys().any(|stack| {
        let names: Vec<&str> = stack.functions().map(|(name, _)| &**name).collect();
        names == ["caller", "outer", "between", "innermost"]
    }));
    // callers have the lines of their calls
    let calls =
        |function: &str| SOURCE.lines().position(|line| line.contains(&format!(" {function}("))).unwrap() + 1;
    for stack in profile.stacks.keys().filter(|stack| stack.frames.len() == 4) {
        let line = |depth: usize| stack.frames[depth].line.as_ref().map_or(0, |line| line.line as usize);
        assert_eq!([line(1), line(2)], [calls("  between"), calls("  innermost")], "{stack:?}");
        assert!(stack.frames[3].line.is_some());
        let inlined: Vec<bool> = stack.frames.iter().map(|frame| frame.inlined).collect();
        assert_eq!(inlined, [false, false, true, true]);
    }
}

/// Of threads 7 and 8 on a core, each in a process.
#[test]
fn threads_have_their_time_and_samples_are_in_its_order() {
    let mut recording = recording("/nowhere/a", &[0, 8], 16);
    recording.modules.extend([Module::Process("first".into()), Module::Process("second".into())]);
    for (stack, process) in recording.stacks.iter_mut().zip([1, 2]) {
        stack.push(CodePlace { module: Some(process), address: 0 });
    }
    let burst =
        |thread, at, stack| Burst { thread, at, weight_ns: 1_000, stacks: vec![stack], ..Burst::default() };
    recording.bursts =
        (0..300).map(|k| burst(if k % 3 == 0 { 7 } else { 8 }, 5_000 - k, u32::from(k % 3 != 0))).collect();
    let profile = Profile::new(&recording);
    let threads = |profile: &Profile| -> Vec<_> {
        let one = |thread: &ProfiledThread| (thread.tid, thread.process.clone(), thread.figures.time_ns);
        profile.by_thread.iter().map(one).collect()
    };
    assert_eq!(threads(&profile), [(8, "second".into(), 200_000), (7, "first".into(), 100_000)]);
    let part = profile.by_thread[1].figures.time;
    assert!(part.low < 0.3 && part.value == 100.0 / 300.0 && part.high > 0.38 && part.high < 0.4, "{part:?}");
    let samples = &profile.samples;
    assert_eq!((samples.len(), samples[0].at_ns, samples[299].at_ns), (300, 1_000, 1_299));
    assert!(samples.iter().all(|sample| {
        let stack = profile.stacks.keys().nth(sample.stack).unwrap();
        (stack.functions().next().unwrap().0 == "first") == (sample.thread == 7) && sample.weight_ns == 1_000
    }));
    // what nobody has sampled may be one thread's
    recording.totals.unseen.ns = 300_000;
    assert!(Profile::new(&recording).by_thread[1].figures.time.high > 0.66);
    // an old recording knows neither
    recording.bursts.iter_mut().for_each(|burst| (burst.thread, burst.at) = (0, 0));
    let old = Profile::new(&recording);
    assert!(old.by_thread.is_empty() && old.samples.is_empty() && old.stacks.len() == 2);
}

#[test]
fn what_was_not_sampled_may_be_any_threads_and_its_slots_anything() {
    let mut recording = recording("/nowhere/a", &[0], 8);
    let burst = |k: i32| Burst {
        weight_ns: 1_000,
        thread: 7 + k % 2,
        stacks: vec![0; 3],
        windows: vec![Some(vec![6000, 3000, 1000, 1000]); 2],
        calls: Calls { returns: vec![Some(0); 2], stack: vec![0; 3] },
        ..Burst::default()
    };
    recording.bursts = (0..80).map(burst).collect();
    let errors = |recording: &Recording| {
        let profile = Profile::new(recording);
        let shares = profile.by_thread.iter().map(|thread| thread.figures.shares.as_ref().unwrap());
        let errors: Vec<f64> = shares.map(|shares| shares.shares[0].error()).collect();
        let [one, other] = errors[..] else { panic!("{errors:?}") };
        assert!((one - other).abs() < 1e-9);
        one
    };
    let seen = errors(&recording);
    // as much as one of the two has done itself: half of what it did may be that, of a share that is half of its slots
    recording.totals.unseen.ns = 40_000;
    let with_unseen = errors(&recording);
    assert!((with_unseen - seen - 0.25).abs() < 1e-3, "{seen} {with_unseen}");
}
