mod call_tree;
mod damaged;
mod firefox;
mod functions;
mod lines;
mod next;
mod processes;
mod remarks;
mod samples;
mod schema;
mod threads;
mod timeline;

use super::*;
use crate::budget::{Limit, Pace};
use crate::estimate::{EstimatedShares, NoShares};
use crate::profile::{
    CallStack, FunctionFigures, ProfiledCore, ProfiledFunction, ProfiledLine, ProfiledSample, ProfiledThread,
    StackFrame,
};
use crate::records::CallGraph;
use crate::sources::Sources;
use crate::symbols::SourceLine;
use crate::unseen::Unseen;
use samples::{conditional, held};
use std::collections::BTreeMap;
use std::time::Duration;
use topdown::SampledEvents;
use topdown_report::ShareInterval;

pub(crate) const HEADING: Heading =
    Heading { command: "./a.out", occasion: "2026-01-31 12:34:56 +0100 on host", means: None };

fn figures(ns: u64, shares: Option<[f64; 4]>) -> FunctionFigures {
    let told = shares.map(|shares| EstimatedShares {
        shares: shares.map(|share| ShareInterval::around(share, 0.01)).to_vec(),
        windows: 100,
        sampling: 0.005,
    });
    let value = ns as f64 / 4e9;
    FunctionFigures {
        time: ShareInterval::around(value, 0.02),
        time_ns: ns,
        bursts: 50,
        latency: None,
        shares: told.ok_or(NoShares::Few(3)),
    }
}

fn line(line: u32, ns: u64) -> ProfiledLine {
    let time = ShareInterval::around(ns as f64 / 4e9, 0.01);
    ProfiledLine { file: "/src/a.c".into(), line, time, time_ns: ns, bursts: 20, latency: None }
}

fn function(name: &str, ns: u64, shares: Option<[f64; 4]>) -> ProfiledFunction {
    let module = if name == "no;name" { "" } else { "a.out" };
    ProfiledFunction {
        name: name.into(),
        is_unnamed: false,
        module: module.into(),
        path: "/bin/a.out".into(),
        core: 0,
        own: figures(ns, shares),
        inclusive: figures(ns, shares),
        lines: (1..=6).map(|k| line(k, ns / u64::from(k + 1))).chain([line(7, 4_000_000)]).collect(),
    }
}

fn thread(tid: i32, process: &str, ns: u64, shares: Option<[f64; 4]>) -> ProfiledThread {
    ProfiledThread { tid, process: process.into(), core: 0, figures: figures(ns, shares) }
}

const SAMPLE_NS: u64 = 100_000_000;

/// The stacks of `profile` one after the other: all but the last of thread 7, which never waits; that of thread 8, which waits as long as it runs
/// from the end of the first second on.
fn samples() -> Vec<ProfiledSample> {
    let of_first =
        [(1, 15), (2, 10), (0, 5)].into_iter().flat_map(|(stack, n)| std::iter::repeat_n(stack, n));
    let first = of_first.enumerate().map(|(k, stack)| ((k as u64 + 1) * SAMPLE_NS, 7, stack));
    let second = (0..10).map(|k| (1_000_000_000 + (2 * k + 1) * SAMPLE_NS, 8, 3));
    let sample = |(at_ns, thread, stack)| ProfiledSample { at_ns, thread, weight_ns: SAMPLE_NS, stack };
    let mut all: Vec<ProfiledSample> = first.chain(second).map(sample).collect();
    all.sort_by_key(|sample| (sample.at_ns, sample.thread));
    all
}

/// Two functions of 3 s and 1 s, of which the second cannot be told.
pub(crate) fn profile() -> Profile {
    let events = SampledEvents::of_core("Sunny, Willow or Cypress Cove, bare counters").unwrap();
    let all = figures(4_000_000_000, Some([0.4, 0.1, 0.2, 0.3]));
    let frame = |(name, line, inlined): &(&str, u32, bool)| StackFrame {
        function: ((*name).into(), if *name == "no;name" { "" } else { "a.out" }.into()),
        line: (*line > 0).then(|| SourceLine { file: "/src/a.c".into(), line: *line }),
        inlined: *inlined,
    };
    let stack =
        |frames: &[(&str, u32, bool)]| CallStack { core: 0, frames: frames.iter().map(frame).collect() };
    Profile {
        cores: vec![ProfiledCore {
            name: events.core,
            nodes: events.nodes(),
            all,
            windows: 400,
            excess: 0.0,
            note: String::new(),
        }],
        functions: vec![
            function("f(\"x\", int)", 3_000_000_000, Some([0.5, 0.1, 0.15, 0.25])),
            function("no;name", 1_000_000_000, None),
        ],
        stacks: BTreeMap::from([
            (stack(&[("main", 20, false), ("f(\"x\", int)", 1, true)]), 1_500_000_000),
            (stack(&[("main", 20, false), ("f(\"x\", int)", 2, true)]), 1_000_000_000),
            (stack(&[("f(\"x\", int)", 1, false)]), 500_000_000),
            (stack(&[("main", 30, false), ("no;name", 0, false)]), 1_000_000_000),
        ]),
        samples: samples(),
        by_thread: vec![
            thread(7, "a.out", 3_000_000_000, Some([0.5, 0.1, 0.15, 0.25])),
            thread(8, "", 1_000_000_000, None),
        ],
        elapsed: Duration::from_secs(4),
        bursts: 2000,
        threads: 1,
        cpus: None,
        refused: (0, String::new()),
        unseen: Unseen::default(),
        unclocked: 0,
        by_timer: 0,
        left_running: 0,
        lost: 0,
        throttled: 0,
        parted: 0,
        impossible: 0,
        pace: Pace { asked: 500, frequency: 500.0, burst_ns: 1e4, budget: 0.01, limit: Limit::Asked },
        held: None,
        simulated: None,
        callers: CallGraph::default(),
        without_callers: false,
        kernel_is_hidden: false,
        notes: Vec::new(),
        sources: Sources::default(),
    }
}

#[test]
fn the_text_has_shares_bounds_and_what_cannot_be_told() {
    let text = String::from_utf8(View::Text.write(&profile(), &HEADING)).unwrap();
    let line = |name: &str| text.lines().find(|line| line.ends_with(name)).unwrap().trim();
    assert!(text.starts_with("topdown: ./a.out (4.0 s, 1 thread, 2,000 bursts)\n"), "{text}");
    assert_eq!(
        line("f(\"x\", int) (a.out)").split("   ").map(str::trim).collect::<Vec<_>>(),
        [
            "75.0 ± 2.0",
            "37.5",
            "50.0 ± 1.0",
            "10.0 ± 1.0",
            "15.0 ± 1.0",
            "25.0 ± 1.0",
            "f(\"x\", int) (a.out)"
        ]
    );
    assert!(line("no;name").contains("cannot be told from 3 bursts: record some 13 s or more"), "{text}");
}

#[test]
fn a_text_is_as_wide_as_the_terminal_and_names_stay_apart() {
    let mut profile = profile();
    let name =
        |of: &str| format!("llvm::InlineFunctionImpl(llvm::CallBase&, llvm::{of}&, bool, llvm::AAResults*)");
    for of in ["InlineFunctionInfo", "InlineFunctionOver"] {
        profile.functions.push(function(&name(of), 500_000_000, Some([0.5, 0.1, 0.15, 0.25])));
    }
    for columns in [60, 80, 120, 140] {
        let layout = Layout { columns, is_terminal: true, ..Layout::FILE };
        for view in [View::Text, View::Lines] {
            let text = String::from_utf8(view.write_for(&profile, &HEADING, &layout)).unwrap();
            // (figures take what they take)
            let wide = text.lines().find(|line| line.chars().count() > columns.max(76));
            assert_eq!(wide, None, "{text}");
            let cut: Vec<&str> = text.lines().filter(|line| line.contains("llvm::")).collect();
            assert!(cut.len() == 2 && cut[0] != cut[1], "{text}");
            assert!(
                cut.iter().all(|line| line.contains('…') == (columns != 140) || columns >= 120),
                "{text}"
            );
        }
    }
    let text = String::from_utf8(View::Text.write(&profile, &HEADING)).unwrap();
    assert!(text.contains(&name("InlineFunctionInfo")), "{text}");
}

/// AMD's cores have five shares.
#[test]
fn five_shares_fit_a_terminal_of_80_columns() {
    let mut profile = profile();
    let nodes = SampledEvents::of_core("Zen 4").unwrap().nodes();
    let count = nodes.len();
    let shares = |figures: &mut FunctionFigures| {
        figures
            .shares
            .iter_mut()
            .for_each(|told| told.shares.resize(count, ShareInterval::around(0.0, 0.32)));
    };
    shares(&mut profile.cores[0].all);
    profile.cores[0].nodes = nodes;
    profile.functions.iter_mut().flat_map(|one| [&mut one.own, &mut one.inclusive]).for_each(shares);
    let layout = Layout { columns: 80, is_terminal: true, ..Layout::FILE };
    for view in [View::Text, View::Lines] {
        let text = String::from_utf8(view.write_for(&profile, &HEADING, &layout)).unwrap();
        assert_eq!(text.lines().find(|line| line.chars().count() > 80), None, "{text}");
        assert!(text.contains("smt cont.") && text.contains("  0.0 ±32.0"), "{text}");
    }
}

#[test]
fn the_hottest_lines_are_below_their_function() {
    let text = String::from_utf8(View::Text.write(&profile(), &HEADING)).unwrap();
    assert!(!text.contains("a.c"), "{text}");
    let text = String::from_utf8(View::Lines.write(&profile(), &HEADING)).unwrap();
    let mut lines = text.lines().skip_while(|line| !line.ends_with("f(\"x\", int) (a.out)"));
    let column = lines.next().unwrap().split("f(\"x\"").next().unwrap().chars().count();
    for (line, time) in lines.by_ref().take(5).zip([
        " 37.5 ± 1.0",
        " 25.0 ± 1.0",
        " 18.8 ± 1.0",
        " 15.0 ± 1.0",
        " 12.5 ± 1.0",
    ]) {
        let name: String = line.chars().skip(column).collect();
        assert!(line.starts_with(time) && name.starts_with("  a.c:"), "{text}");
    }
    assert!(lines.next().unwrap().ends_with("no;name"), "{text}");
    // of the other function, whose lines have half of a percent and more
    assert_eq!(text.matches("a.c:").count(), 10, "{text}");
    assert_eq!(View::Json.with_lines(), Ok(View::Json));
    assert_eq!(View::Html.with_lines(), Ok(View::Html));
    assert!(View::Csv.with_lines().is_err());
}

#[test]
fn csv_and_json_have_each_node_with_its_interval() {
    let csv = String::from_utf8(View::Csv.write(&profile(), &HEADING)).unwrap();
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(names[..5], ["core", "function", "module", "scope", "time_ns"]);
    assert_eq!(names[9..12], ["tma_retiring", "tma_retiring_low", "tma_retiring_high"]);
    let row = csv.lines().find(|line| line.contains("\"f(\"\"x\"\", int)\",\"a.out\",own,")).unwrap();
    assert!(row.contains(",100,0.500000,0.490000,0.510000,"), "{row}");
    assert!(csv.lines().any(|line| line.ends_with(",0,,,,,,,,,,,,,counter")), "{csv}");
    let json: serde_json::Value = serde_json::from_slice(&View::Json.write(&profile(), &HEADING)).unwrap();
    assert_eq!(json["functions"][0]["own"]["shares"]["tma_backend_bound"]["value"], 0.25);
    assert_eq!(
        json["functions"][1]["own"]["cannot_be_told"],
        "too few bursts have a window in the function: 3"
    );
    let line = &json["functions"][0]["lines"][1];
    assert_eq!((line["file"].as_str(), line["line"].as_u64()), (Some("/src/a.c"), Some(2)));
    assert_eq!((line["time_ns"].as_u64(), line["bursts"].as_u64()), (Some(1_000_000_000), Some(20)));
    assert_eq!(line["time"]["value"], 0.25);
    assert_eq!(json["cores"][0]["all"]["time_ns"], 4_000_000_000_u64);
}

#[test]
fn folded_stacks_have_microseconds() {
    let folded = String::from_utf8(View::Folded.write(&profile(), &HEADING)).unwrap();
    assert_eq!(folded, "f(\"x\", int) 500000\nmain;f(\"x\", int) 2500000\nmain;no:name 1000000\n");
}

/// Fields of a message of protocol buffers: number, and either a varint or bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (first, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        match key & 7 {
            0 => all.push((key >> 3, varint(&mut bytes), Vec::new())),
            2 => {
                let (field, rest) = {
                    let len = varint(&mut bytes) as usize;
                    bytes.split_at(len)
                };
                bytes = rest;
                all.push((key >> 3, 0, field.to_vec()));
            }
            other => panic!("wire type {other}"),
        }
    }
    all
}

#[test]
fn pprof_reads_what_profile_proto_says() {
    let message = fields(&View::Pprof.write(&profile(), &HEADING));
    let of = |tag: u64| message.iter().filter(move |(number, _, _)| *number == tag);
    let strings: Vec<String> = of(6).map(|(_, _, text)| String::from_utf8(text.clone()).unwrap()).collect();
    assert_eq!(strings[0], "");
    let value = |message: &[u8], tag: u64| {
        fields(message).iter().find(|(number, _, _)| *number == tag).map_or(0, |(_, value, _)| *value)
    };
    let types: Vec<&str> = of(1).map(|(_, _, one)| &*strings[value(one, 1) as usize]).collect();
    assert_eq!(
        types,
        ["cpu", "tma_retiring", "tma_bad_speculation", "tma_frontend_bound", "tma_backend_bound", "unknown"]
    );
    let packed = |bytes: &[u8]| -> Vec<u64> {
        let (mut all, mut value, mut shift) = (Vec::new(), 0, 0);
        for byte in bytes {
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                all.push(std::mem::take(&mut value));
                shift = 0;
            }
        }
        all
    };
    let function = |id: u64| {
        let found = of(5).find(|(_, _, one)| value(one, 1) == id).unwrap();
        let text = |tag| &*strings[value(&found.2, tag) as usize];
        assert_eq!(text(2), text(3));
        (text(2), text(4))
    };
    // functions, files and lines of a location, the innermost first
    let location = |location: &u64| -> Vec<(&str, &str, u64)> {
        let found = &of(4).find(|(_, _, one)| value(one, 1) == *location).unwrap().2;
        assert!(of(3).any(|(_, _, mapping)| value(mapping, 1) == value(found, 2)));
        let lines = fields(found).into_iter().filter(|(number, _, _)| *number == 4);
        let line = |(_, _, line): (u64, u64, Vec<u8>)| {
            let (name, file) = function(value(&line, 1));
            (name, file, value(&line, 2))
        };
        lines.map(line).collect()
    };
    let samples: Vec<(Vec<_>, Vec<u64>)> = of(2)
        .map(|(_, _, one)| {
            let parts = fields(one);
            (packed(&parts[0].2).iter().map(location).collect(), packed(&parts[1].2))
        })
        .collect();
    let (f, main) = (|line| ("f(\"x\", int)", "/src/a.c", line), |line| ("main", "/src/a.c", line));
    let inlined =
        |line, ns: u64| (vec![vec![f(line), main(20)]], vec![ns, ns / 2, ns / 10, ns * 15 / 100, ns / 4, 0]);
    let alone = (vec![vec![f(1)]], vec![500_000_000, 250_000_000, 50_000_000, 75_000_000, 125_000_000, 0]);
    let untold =
        (vec![vec![("no;name", "", 0)], vec![main(30)]], vec![1_000_000_000, 0, 0, 0, 0, 1_000_000_000]);
    for wanted in [inlined(1, 1_500_000_000), inlined(2, 1_000_000_000), alone, untold] {
        assert!(samples.contains(&wanted), "{wanted:?}: {samples:?}");
    }
    assert_eq!((samples.len(), of(4).count(), of(5).count()), (4, 5, 3));
    // what is not known is nowhere else
    assert!(of(3).all(|(_, _, mapping)| [7, 8, 9, 10].iter().all(|has| value(mapping, *has) == 1)));
    assert_eq!(strings[of(14).next().unwrap().1 as usize], "cpu");
}

#[test]
fn the_ending_chooses() {
    for (file, view) in [
        ("a.csv", View::Csv),
        ("a", View::Text),
        ("-", View::Text),
        ("x.pprof", View::Pprof),
        ("x.svg", View::Svg),
        ("x.html", View::Html),
        ("x.json", View::Json),
        ("firefox.json", View::Json),
        ("x.y.firefox.json", View::Firefox),
    ] {
        assert_eq!(View::of(Path::new(file)).unwrap(), view);
    }
    assert!(View::of(Path::new("a.pdf")).unwrap_err().contains(".html, .svg,"));
}

fn svg(profile: &Profile) -> String {
    String::from_utf8(View::Svg.write(profile, &HEADING)).unwrap()
}

fn page(profile: &Profile) -> String {
    String::from_utf8(View::Html.write(profile, &HEADING)).unwrap()
}

/// What the page has in the section of this id; nothing, if it has none.
fn section(profile: &Profile, id: &str) -> String {
    let page = page(profile);
    let (_, section) = page.split_once(&format!("id=\"{id}\"")).unwrap_or_default();
    section.split("</section>").next().unwrap_or_default().into()
}

/// A frame: its class, where it begins and how wide it is in %, from which pixel down, and its name.
#[derive(Clone, Debug)]
struct Frame {
    class: String,
    x: f64,
    y: f64,
    width: f64,
    name: String,
}

/// The frames of each graph.
fn frames(text: &str) -> Vec<Vec<Frame>> {
    let graphs = text.split("<g class=\"frames\">").skip(1);
    let graphs = graphs.map(|graph| graph.split("</g>").next().unwrap());
    let attribute = |frame: &str, name: &str| {
        let (_, value) =
            frame.split_once(&format!(" {name}=\"")).unwrap_or_else(|| panic!("{name}: {frame}"));
        value.split('"').next().unwrap().to_string()
    };
    let number =
        |frame: &str, name: &str| attribute(frame, name).trim_end_matches('%').parse::<f64>().unwrap();
    let frame = |frame: &str| Frame {
        class: attribute(frame, "class"),
        x: number(frame, "x"),
        y: number(frame, "y"),
        width: number(frame, "width"),
        name: frame.split("y=\"12\">").nth(1).unwrap().split("</text>").next().unwrap().into(),
    };
    graphs.map(|graph| graph.split("<svg").skip(1).map(frame).collect()).collect()
}

fn named<'f>(frames: &'f [Frame], name: &str) -> Vec<&'f Frame> {
    frames.iter().filter(|frame| frame.name == name).collect()
}

#[test]
fn frames_are_as_wide_as_their_time_and_above_their_callers() {
    let svg = svg(&profile());
    let [frames] = &frames(&svg)[..] else { panic!("{svg}") };
    let core = named(frames, "Sunny, Willow or Cypress Cove, bare counters")[0];
    let main = named(frames, "main")[0];
    let f = named(frames, "f(&quot;x&quot;, int)");
    assert_eq!((core.x, core.width, main.width), (0.0, 100.0, 87.5), "{frames:?}");
    // as a root of its own, and in main
    assert_eq!(f.iter().map(|f| f.width).collect::<Vec<_>>(), [12.5, 62.5], "{frames:?}");
    assert!(f[0].y == main.y && f[1].y < main.y && main.y < core.y, "{frames:?}");
    let inner = named(frames, "no;name")[0];
    assert_eq!((f[1].x, inner.x, inner.width), (main.x, main.x + 62.5, 25.0), "{frames:?}");
}

#[test]
fn colours_are_those_of_the_largest_category() {
    for (largest, shares) in
        [[0.4, 0.2, 0.2, 0.2], [0.2, 0.4, 0.2, 0.2], [0.2, 0.2, 0.4, 0.2], [0.2, 0.2, 0.2, 0.4]]
            .into_iter()
            .enumerate()
    {
        let mut profile = profile();
        profile.functions[0].own = figures(3_000_000_000, Some(shares));
        for text in [svg(&profile), page(&profile)] {
            for frames in frames(&text) {
                for frame in named(&frames, "f(&quot;x&quot;, int)") {
                    assert_eq!(frame.class, format!("a{largest}"), "{shares:?}");
                }
                for frame in named(&frames, "no;name").into_iter().chain(named(&frames, "main")) {
                    assert_eq!(frame.class, "untold");
                }
            }
        }
    }
    // a module of the same name is another function
    let mut profile = profile();
    profile.functions[0].module = "other".into();
    assert!(named(&frames(&svg(&profile))[0], "f(&quot;x&quot;, int)").iter().all(|f| f.class == "untold"));
    // the style says what colours they are, without names
    let text = svg(&profile);
    assert!(text.contains(".a3 { fill: #") && !text.contains("var("), "{text}");
}

#[test]
fn a_page_has_time_and_waste_from_both_ends() {
    let mut profile = profile();
    profile.functions[1].own = figures(1_000_000_000, Some([0.1, 0.7, 0.1, 0.1]));
    let all = frames(&page(&profile));
    let [time, waste, time_first, waste_first] = &all[..] else { panic!("{}", all.len()) };
    // f wastes half of 3 s, the other nine tenths of 1 s
    let part = |wasted: f64| 100.0 * wasted / 2.4;
    let near = |frame: &Frame, width: f64| assert!((frame.width - width).abs() < 0.001, "{frame:?} {width}");
    near(named(time, "no;name")[0], 25.0);
    near(named(waste, "no;name")[0], part(0.9));
    near(named(waste, "main")[0], part(0.9 + 0.5 * 2.5));
    near(named(time_first, "f(&quot;x&quot;, int)")[0], 75.0);
    near(named(waste_first, "f(&quot;x&quot;, int)")[0], part(1.5));
    // callers are below what they call
    let mains = named(time_first, "main");
    assert_eq!(mains.len(), 2, "{time_first:?}");
    assert!(mains.iter().all(|main| main.y > named(time_first, "no;name")[0].y), "{time_first:?}");
}

#[test]
fn what_cannot_be_told_is_in_no_waste_and_that_is_said() {
    let text = page(&profile());
    let all = frames(&text);
    assert!(named(&all[1], "no;name").is_empty() && !named(&all[0], "no;name").is_empty());
    assert!(text.contains("25.0 % of the time is not in it"), "{text}");
}

#[test]
fn the_page_has_what_the_text_says() {
    let mut profile = profile();
    (profile.throttled, profile.parted, profile.refused) = (6, 5, (2, "EMFILE".into()));
    profile.pace = Pace { frequency: 100.0, limit: Limit::Kernel, ..profile.pace };
    let (page, text) = (page(&profile), String::from_utf8(View::Text.write(&profile, &HEADING)).unwrap());
    assert!(page.starts_with("<!DOCTYPE html>"), "{page}");
    let remarks = text.lines().filter(|line| line.ends_with('.') || line.contains("EMFILE"));
    let missing: Vec<_> = remarks.clone().filter(|line| !page.contains(*line)).collect();
    assert!(remarks.count() == 4 && missing.is_empty(), "{missing:?}");
    for wanted in [
        "./a.out",
        HEADING.occasion,
        "4.0 s, 1 thread, 2,000 bursts",
        "75.0 ± 2.0 %",
        "retiring 50.0 ± 1.0 %, bad speculation 10.0 ± 1.0 %, frontend bound 15.0 ± 1.0 %, backend bound 25.0 ± 1.0 %",
        "cannot be told from 3 bursts: record some 13 s or more",
    ] {
        assert!(page.contains(wanted), "{wanted}");
    }
    let (told, untold) = (page.find(">f(&quot;x&quot;, int)<").unwrap(), page.find(">no;name<").unwrap());
    assert!(told < untold);
}

#[test]
fn names_are_escaped() {
    const HOSTILE: &str = "a<b>&\"c\";</svg><script>alert(1)</script>\u{1b}\u{202e}";
    const ESCAPED: &str =
        "a&lt;b&gt;&amp;&quot;c&quot;;&lt;/svg&gt;&lt;script&gt;alert(1)&lt;/script&gt;\\u{1b}\\u{202e}";
    let mut profile = profile();
    profile.functions.push(function(HOSTILE, 1_000_000_000, Some([0.2, 0.2, 0.2, 0.4])));
    let function = (HOSTILE.into(), "a.out".into());
    let frame = StackFrame { function, line: None, inlined: false };
    profile.stacks.insert(CallStack { core: 0, frames: vec![frame] }, 1_000_000_000);
    let heading = Heading { command: HOSTILE, ..HEADING };
    for view in [View::Svg, View::Html] {
        let text = String::from_utf8(view.write(&profile, &heading)).unwrap();
        assert!(text.matches(ESCAPED).count() >= 3 && !text.contains("<script>alert"), "{text}");
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
        assert_eq!(text.matches("<script>").count(), 1, "{text}");
    }
}

/// In which nothing was sampled.
fn nothing() -> Profile {
    let (cores, functions, stacks) = (Vec::new(), Vec::new(), BTreeMap::new());
    Profile { cores, functions, stacks, samples: Vec::new(), by_thread: Vec::new(), ..profile() }
}

#[test]
fn nothing_is_a_picture_too() {
    assert!(
        svg(&nothing()).contains("Nothing was sampled") && page(&nothing()).contains("Nothing was sampled")
    );
}
