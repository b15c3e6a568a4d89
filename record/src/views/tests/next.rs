//! The verdict, and what to run next.

use super::*;
use crate::event_sampling::SamplesOf;
use topdown_report::steps::Means;

fn means() -> Means {
    Means { whom: "-- ./a.out".into(), ..Means::default() }.and("deep", true)
}

fn written(profile: &Profile, view: View) -> String {
    let means = means();
    let heading = Heading { means: Some(&means), ..HEADING };
    String::from_utf8(view.write(profile, &heading)).unwrap()
}

/// The profile of the other tests, of time alone.
fn of_time() -> Profile {
    let mut profile = conditional();
    profile.held = Some(crate::held::EventShare {
        of: SamplesOf::Time { why: "no PMU".into(), by_stops: false },
        ..held()
    });
    profile
}

fn end(text: &str) -> Vec<&str> {
    text.rsplit("\n\n").next().unwrap().lines().collect()
}

#[test]
fn a_text_ends_with_the_verdict_and_what_to_run_next() {
    let profile = profile();
    let text = written(&profile, View::Text);
    assert_eq!(
        end(&text),
        [
            "verdict: backend bound: 30 % of slots wait for data or execution units",
            "most wasted: f(\"x\", int) (a.out), 37.5 % of the time: backend bound: 25 % of slots wait for data or execution units",
            "next:",
            "  topdown record --lines -- ./a.out # their lines",
            "  topdown record --drill --lines -- ./a.out # the cause: levels 3 to 6, by function and line",
        ]
    );
    let lines = written(&profile, View::Lines);
    assert!(!lines.contains("record --lines --") && lines.contains("record --drill"), "{lines}");
    let page = written(&profile, View::Html);
    assert!(page.contains("<code>topdown record --drill --lines -- ./a.out</code> the cause"), "{page}");
    let unknown = String::from_utf8(View::Text.write(&profile, &HEADING)).unwrap();
    assert!(unknown.contains("\nverdict: ") && !unknown.contains("\nnext:"), "{unknown}");
}

#[test]
fn of_two_levels_both_are_told() {
    let mut profile = profile();
    let core = &mut profile.cores[0];
    let parents: Vec<_> = core.nodes.clone();
    let part = |k: usize, parent: usize| topdown::SampledNode {
        metric: topdown::LEVEL_2[k],
        parent: parents[parent].metric.id,
        level: 2,
    };
    core.nodes.extend([part(6, 3), part(7, 3)]);
    let told = core.all.shares.as_mut().unwrap();
    told.shares.extend([0.2, 0.1].map(|share| ShareInterval::around(share, 0.01)));
    let text = written(&profile, View::Text);
    assert!(text.contains("\nlevel 2: memory bound 20.0 ± 1.0 %, core bound 10.0 ± 1.0 %\n"), "{text}");
    assert!(text.contains("\nverdict: two things: frontend bound 20 %; memory bound 20 %\n"), "{text}");
}

#[test]
fn of_time_alone_lines_callers_and_how_to_get_slots_are_next() {
    let mut profile = of_time();
    let text = written(&profile, View::Text);
    assert_eq!(
        end(&text),
        [
            "most time: f(\"x\", int) (a.out), 75.0 % of it",
            "next:",
            "  topdown record --lines -- ./a.out # their lines",
            "  topdown check # what would have to change for slots",
        ]
    );
    profile.functions.iter_mut().for_each(|function| function.lines.clear());
    assert!(written(&profile, View::Text).contains("--lines -- ./a.out # their lines, of a build with -g\n"));
    // (frame pointers that tell nobody's caller)
    let alone = |stack: &CallStack| CallStack {
        frames: stack.frames[stack.frames.len() - 1..].to_vec(),
        ..stack.clone()
    };
    profile.stacks = profile.stacks.iter().map(|(stack, ns)| (alone(stack), *ns)).collect();
    let callers = "topdown record --call-graph dwarf -- ./a.out # callers";
    assert!(written(&profile, View::Text).contains(callers));
    profile.callers = CallGraph::Dwarf(8192);
    assert!(!written(&profile, View::Text).contains(callers));
}

#[test]
fn of_new_threads_that_were_not_sampled_what_sees_them_is_next() {
    let mut profile = of_time();
    let means = means().and("may-ptrace", true).and("may-all", true);
    let heading = Heading { means: Some(&means), ..HEADING };
    let steps = |profile: &Profile| -> Vec<String> {
        let text = String::from_utf8(View::Text.write(profile, &heading)).unwrap();
        end(&text).iter().filter_map(|line| Some(line.split_once(" #")?.0.trim().into())).collect()
    };
    assert_eq!(steps(&profile)[0], "topdown record --lines -- ./a.out");
    profile.unseen.ns = 10 * profile.cores.iter().map(|core| core.all.time_ns).sum::<u64>();
    let [stops, all] = ["topdown record --ptrace --lines -- ./a.out", "topdown record --lines -a -- ./a.out"];
    assert_eq!(steps(&profile)[..2], [stops, all]);
}

#[test]
fn a_step_keeps_what_decides_what_is_recorded() {
    let profile = of_time();
    let means = Means { options: "--call-graph dwarf".into(), ..means() };
    let heading = Heading { means: Some(&means), ..HEADING };
    let text = |profile: &Profile| String::from_utf8(View::Text.write(profile, &heading)).unwrap();
    assert!(
        text(&profile).contains("\n  topdown record --call-graph dwarf --lines -- ./a.out # their lines\n")
    );
}

#[test]
fn a_librarys_function_that_another_object_calls_can_be_a_region() {
    let mut profile = profile();
    let library = "libwork.so.1";
    for function in &mut profile.functions {
        (function.name, function.module) = ("work".into(), library.into());
    }
    let frame = |name: &str, module: &str| StackFrame {
        function: (name.into(), module.into()),
        line: None,
        inlined: false,
    };
    let stack =
        |caller: &str| CallStack { core: 0, frames: vec![frame("main", caller), frame("work", library)] };
    let regions = format!("topdown run --regions {library}:work -- ./a.out");
    profile.stacks = BTreeMap::from([(stack("a.out"), 1)]);
    assert!(written(&profile, View::Text).contains(&regions));
    // (`topdown run` has no -p, -a or -C)
    for whom in ["-p 7", "-a", "-a -- ./a.out"] {
        let means = Means { whom: whom.into(), ..means() };
        let text = View::Text.write(&profile, &Heading { means: Some(&means), ..HEADING });
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(&format!("record --lines {whom} #")) && !text.contains("--regions"), "{text}");
    }
    profile.stacks = BTreeMap::from([(stack(library), 1)]);
    assert!(!written(&profile, View::Text).contains(&regions));
}

#[test]
fn of_samples_of_an_event_nothing_is_said_of_slots() {
    let text = written(&conditional(), View::Text);
    assert!(!text.contains("verdict:") && !text.contains("\nnext:"), "{text}");
}
