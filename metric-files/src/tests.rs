//! Small files of all formats, and what is wrong with others.

use super::*;
use crate::formula::Formula;
use topdown::{DeepEvent, Expression, GivenMetric, Operator, PublishedNames};

fn published() -> PublishedNames {
    let event =
        |name: &str, config, fixed| DeepEvent { name: name.into(), config, fixed, ..DeepEvent::default() };
    PublishedNames {
        slots_per_cycle: 6,
        events: vec![
            event("INST_RETIRED.ANY", 0xc0, true),
            event("CPU_CLK_UNHALTED.THREAD", 0x3c, true),
            event("UOPS_RETIRED.MS", 0x04c2, false),
            DeepEvent { config1: 0x10, counters: 0xf, ..event("OCR.READS", 0x12a, false) },
        ],
        names: vec!["info_thread_clks".into(), "memory_bound".into()],
    }
}

fn resolved_in(texts: &[&str], layout: EventLayout, counts_kernel: bool) -> FileMetrics {
    let files: Vec<MetricFile> = texts.iter().map(|text| read(text.as_bytes()).unwrap()).collect();
    let kernel = |name: &str| match name {
        "cpu-cycles" => Some((0x3c, 0)),
        "topdown-retiring" => Some((0x8000, 0)),
        "mem-stores" => Some((0x2cd, 0)),
        _ => None,
    };
    let published = published();
    let machine = Machine { layout, has_pmem: false, counts_kernel, published: &published, kernel: &kernel };
    resolve(&files, &machine)
}

fn resolved(texts: &[&str]) -> FileMetrics {
    resolved_in(texts, EventLayout::Intel, false)
}

/// A metric of perf's format with this formula, beside these entries.
fn perf(formula: &str, others: &str) -> FileMetrics {
    let formula = formula.replace('\\', "\\\\");
    resolved(&[&format!("[{{\"MetricName\": \"m\", \"MetricExpr\": \"{formula}\"}}{others}]")])
}

fn of<'a>(all: &'a FileMetrics, name: &str) -> &'a GivenMetric {
    all.given.metrics.iter().find(|metric| metric.name == name).unwrap()
}

fn why(all: &FileMetrics, name: &str) -> String {
    of(all, name).value.clone().unwrap_err()
}

fn event<'a>(all: &'a FileMetrics, name: &str) -> &'a DeepEvent {
    all.given.events.iter().find(|event| event.name == name).unwrap_or_else(|| panic!("{name}: {all:?}"))
}

/// What an expression of numbers is worth, by perf's rules, which the core has for events.
fn worth(all: &Expression, name: &dyn Fn(&str) -> f64) -> f64 {
    match all {
        Expression::Number(number) => *number,
        Expression::Name(own) => name(own),
        Expression::If(all) => {
            let [condition, then, otherwise] = &**all;
            // (the core takes comparisons alone)
            let (is_less, a, b) = match condition {
                Expression::Of(operator @ (Operator::Less | Operator::NotLess), of) => {
                    (*operator == Operator::Less, worth(&of[0], name), worth(&of[1], name))
                }
                Expression::Name(own) if own == "smt_on" => (true, 0.0, name(own)),
                other => panic!("{other:?} is no condition"),
            };
            worth(if (a < b) == is_less { then } else { otherwise }, name)
        }
        Expression::Of(operator, of) => {
            let (a, b) = (worth(&of[0], name), worth(&of[1], name));
            match operator {
                Operator::Plus => a + b,
                Operator::Minus => a - b,
                Operator::Times => a * b,
                Operator::By => {
                    if b == 0.0 {
                        f64::NAN
                    } else {
                        a / b
                    }
                }
                Operator::Min => {
                    if a < b {
                        a
                    } else {
                        b
                    }
                }
                Operator::Max => {
                    if a > b {
                        a
                    } else {
                        b
                    }
                }
                Operator::Less => f64::from(u8::from(a < b)),
                Operator::NotLess => f64::from(u8::from(a >= b)),
            }
        }
    }
}

fn formula(text: &str) -> Formula {
    formula::read(text).unwrap_or_else(|why| panic!("{text}: {why}"))
}

#[test]
fn formulas_are_worth_what_perf_says() {
    let name = |name: &str| match name {
        "zero" => 0.0,
        "two" => 2.0,
        "three" => 3.0,
        "nan" => f64::NAN,
        _ => panic!("{name}"),
    };
    let cases = [
        ("1 + 2 * three - 4 / two", 5.0),
        ("(1 + 2) * three", 9.0),
        ("10 - 3 - two", 5.0),
        ("-two + 5", 3.0),
        ("2 * -three", -6.0),
        ("1e-1 + .5 + 2.", 2.6),
        ("min(two, three) + max(two, 10 * three)", 32.0),
        ("min(two if zero else three, 7)", 3.0),
        ("d_ratio(three, two)", 1.5),
        ("d_ratio(three, zero)", 0.0),
        ("d_ratio(three, -two)", -1.5),
        ("two if three > 2 else 7", 2.0),
        ("two if three < 2 else 7", 7.0),
        ("two if three else 7", 2.0),
        ("two if zero else 7", 7.0),
        ("two if -three else 7", 2.0),
        ("1 if zero else 2 if zero else three", 3.0),
        ("two < three", 1.0),
        ("two <= 2", 1.0),
        ("three >= two + 2", 0.0),
        // (a comparison is weaker than a sum, `&` weaker than that, then `^`, then `|`)
        ("1 + 1 < three & two > 1", 1.0),
        ("zero & two | three", 1.0),
        ("two ^ three", 0.0),
        ("two ^ zero", 1.0),
        ("zero | zero", 0.0),
        ("1 | 0 & 0", 1.0),
        ("1 ^ 1 & 0", 1.0),
        ("5 if zero | two & three else 6", 5.0),
        // (no number is not 0, and less than nothing)
        ("1 if nan else 2", 1.0),
        ("max(nan, 3)", 3.0),
        ("min(two, 3) if three > nan else 8", 8.0),
    ];
    for (text, expected) in cases {
        let value = worth(&formula(text).expression, &name);
        assert!((value - expected).abs() < 1e-12, "{text}: {value}, not {expected}");
    }
    for text in ["three / zero", "1 / (three / zero)", "max(3, three / zero)", "nan + 1", "d_ratio(1, nan)"] {
        assert!(worth(&formula(text).expression, &name).is_nan(), "{text}");
    }
}

#[test]
fn what_is_wrong_with_a_formula_is_said() {
    let nested = |open: &str, close: &str| format!("{}a{}", open.repeat(101), close.repeat(101));
    let cases = [
        ("a +".to_string(), "ends too early"),
        ("".into(), "ends too early"),
        ("(a".into(), "its end stands where ')' should"),
        ("a b".into(), "'b' follows the end"),
        ("a * * b".into(), "'*' stands where a value should"),
        ("a if b".into(), "its end stands where 'else' should"),
        ("else".into(), "'else' stands where a value should"),
        ("a % b".into(), "%, which is not supported"),
        ("a $ b".into(), "'$', which is not supported"),
        ("source_count(a)".into(), "source_count(), which is not supported"),
        ("min(a)".into(), "')' stands where ',' should"),
        ("has_event(a + b)".into(), "has_event() of what is no name"),
        (nested("(", ")"), "more than 100 brackets"),
        (nested("-", ""), "more than 100 brackets"),
        (nested("b if c else ", ""), "more than 100 brackets"),
        (vec!["a"; 502].join(" + "), "more than 500 operators in one another"),
        ("a".repeat(MOST_NAME + 1), "a name of more than"),
        (" ".repeat(MOST_FORMULA + 1), "more than 32768 bytes"),
        ("a | b % c".into(), "%, which is not supported"),
    ];
    for (text, expected) in cases {
        let why = formula::read(&text).map(|_| ()).unwrap_err();
        assert!(why.contains(expected), "{text}: {why}");
    }
    assert!(formula::read(&format!("{}a{}", "(".repeat(100), ")".repeat(100))).is_ok());
}

const INTEL: &str = r#"{
  "Header": {"Info": "x", "Version": "1.0"},
  "Metrics": [
    {"MetricName": "cpi", "LegacyName": "metric_CPI", "Level": 1, "UnitOfMeasure": "per instruction",
     "Events": [{"Name": "CPU_CLK_UNHALTED.THREAD", "Alias": "a"}, {"Name": "INST_RETIRED.ANY", "Alias": "b"}],
     "Constants": [], "Formula": "a / b"},
    {"MetricName": "busy", "UnitOfMeasure": "percent",
     "Events": [{"Name": "UOPS_RETIRED.MS:c1", "Alias": "a"}, {"Name": "TOPDOWN.SLOTS:perf_metrics", "Alias": "s"},
                {"Name": "OCR.WRITES:ocr_msr_val=0x20", "Alias": "o"}],
     "Constants": [{"Name": "20", "Alias": "weight"}, {"Name": "HYPERTHREADING_ON", "Alias": "smt_on"}],
     "Formula": "100 * ( a / ( s if smt_on else ( o ) ) * weight )"},
    {"MetricName": "frequency", "UnitOfMeasure": "GHz",
     "Events": [{"Name": "CPU_CLK_UNHALTED.THREAD", "Alias": "a"}],
     "Constants": [{"Name": "SYSTEM_TSC_FREQ", "Alias": "c"}, {"Name": "DURATIONTIMEINMILLISECONDS", "Alias": "d"}],
     "Formula": "a * c / 1000000000 / ( d / 1000 )"},
    {"MetricName": "uncore", "Events": [{"Name": "UNC_CHA_CLOCKTICKS", "Alias": "a"}], "Constants": [], "Formula": "a / 2"},
    {"MetricName": "split", "Events": [{"Name": "INST_RETIRED.ANY:SUP", "Alias": "a"}], "Formula": "a"},
    {"MetricName": "latency", "Events": [{"Name": "UOPS_RETIRED.MS:retire_latency", "Alias": "a"}], "Formula": "a"}
  ]
}"#;

#[test]
fn metrics_of_intel_are_read() {
    let all = resolved(&[INTEL]);
    let value = |name: &str| of(&all, name).value.clone().unwrap();
    let units: Vec<&str> = all.given.metrics.iter().map(|one| one.unit.as_str()).collect();
    assert_eq!(units, ["per instruction", "share", "GHz", "", "", ""]);
    let numbers = |name: &str| match name {
        "CPU_CLK_UNHALTED.THREAD" => 300.0,
        "INST_RETIRED.ANY" => 600.0,
        "UOPS_RETIRED.MS:c1" => 5.0,
        "TOPDOWN.SLOTS" => 1000.0,
        "OCR.WRITES:ocr_msr_val=0x20" => 50.0,
        "smt_on" => 0.0,
        "tsc_ghz" => 2.5,
        "duration_time" => 4.0,
        _ => panic!("{name}"),
    };
    assert_eq!(worth(&value("cpi"), &numbers), 0.5);
    // (percent is a share, of one)
    assert_eq!(worth(&value("busy"), &numbers), 5.0 / 50.0 * 20.0);
    assert!((worth(&value("frequency"), &numbers) - 300.0 * 2.5).abs() < 1e-9);
    let masked = event(&all, "UOPS_RETIRED.MS:c1");
    assert_eq!((masked.config, masked.fixed), (0x0100_04c2, false));
    let response = event(&all, "OCR.WRITES:ocr_msr_val=0x20");
    assert_eq!((response.config, response.config1, response.counters), (0x12a, 0x20, 0xf));
    assert!(event(&all, "INST_RETIRED.ANY").fixed);
    assert!(why(&all, "uncore").contains("UNC_CHA_CLOCKTICKS is an uncore event"), "{}", why(&all, "uncore"));
    assert!(why(&all, "split").contains("user and kernel mode are not counted apart"));
    assert!(why(&all, "latency").contains("retire latency of UOPS_RETIRED.MS is not measured"));
}

#[test]
fn metrics_of_perf_are_read() {
    let all = resolved(&[r##"[
        {"BriefDescription": "x", "MetricExpr": "a_b / tma_info_thread_clks", "MetricName": "tma_x", "ScaleUnit": "100%",
         "MetricGroup": "A;B", "MetricThreshold": "tma_x > 0.1"},
        {"MetricExpr": "cpu@UOPS_RETIRED.MS\\,cmask\\=1@ * 3", "MetricName": "a_b", "ScaleUnit": "1per_branch"},
        {"MetricExpr": "64 * INST_RETIRED.ANY / duration_time", "MetricName": "bw", "ScaleUnit": "1e-6MB/s"},
        {"MetricExpr": "tma_x + a_b", "MetricName": "sum", "ScaleUnit": "1"},
        {"MetricExpr": "INST_RETIRED.ANY / 0 if #core_wide < 1 else UNC_X", "MetricName": "wide"},
        {"MetricExpr": "UNC_X if #has_pmem > 0 else 1 if has_event(UNC_X) else slots / #slots", "MetricName": "cycles"},
        {"MetricExpr": "A", "MetricName": "of_e_core", "Unit": "cpu_atom"}
    ]"##]);
    assert_eq!(all.given.metrics.len(), 6);
    assert_eq!(of(&all, "tma_x").unit, "share");
    assert_eq!(of(&all, "a_b").unit, "per branch");
    let numbers = |name: &str| match name {
        "cpu@UOPS_RETIRED.MS,cmask=1@" => 7.0,
        "info_thread_clks" => 42.0,
        "INST_RETIRED.ANY" => 2e6,
        "duration_time" => 4.0,
        "TOPDOWN.SLOTS" => 60.0,
        _ => panic!("{name}"),
    };
    let value = |name: &str| worth(of(&all, name).value.as_ref().unwrap(), &numbers);
    assert_eq!((value("tma_x"), value("a_b"), value("sum")), (0.5, 21.0, 21.5));
    assert!((value("bw") - 32.0).abs() < 1e-9 && of(&all, "bw").unit == "MB/s");
    assert!(value("wide").is_nan());
    assert_eq!(value("cycles"), 10.0);
    assert_eq!(event(&all, "cpu@UOPS_RETIRED.MS,cmask=1@").config, 0x0100_04c2);
}

#[test]
fn events_come_from_files_then_from_this_cpus_text_then_from_its_kernel_then_raw() {
    let all = resolved(&[
        r#"[{"MetricName": "m", "MetricExpr": "uops_retired.ms + cycles + mem\\-stores + r1234 + r500012a + inst_retired.any + NEW.ONE"},
            {"MetricName": "n", "MetricExpr": "cpu@event\\=0x12\\,umask\\=0x34\\,edge\\,inv\\,cmask\\=2@"}]"#,
        r#"{"Header": {}, "Events": [
            {"EventName": "UOPS_RETIRED.MS", "EventCode": "0xc2", "UMask": "0x08", "CounterMask": "0", "Invert": "0", "EdgeDetect": "0",
             "MSRIndex": "0x00", "MSRValue": "0x00", "Counter": "0,1,2,3"},
            {"EventName": "NEW.ONE", "EventCode": "0xB7,0xBB", "UMask": "0x01", "MSRIndex": "0x1a6,0x1a7", "MSRValue": "0x3F",
             "CounterMask": "3", "Invert": "1", "EdgeDetect": "1", "AnyThread": "1", "Counter": "0,1,2,3,4,5,6,7"}]}"#,
    ]);
    let numbers = |name: &str| {
        let event = event(&all, name);
        (event.config, event.config1, event.counters, event.fixed)
    };
    assert_eq!(numbers("uops_retired.ms"), (0x08c2, 0, 0xf, false));
    assert_eq!(numbers("cycles"), (0x3c, 0, 0, true));
    assert_eq!(numbers("mem-stores"), (0x2cd, 0, 0, false));
    assert_eq!(numbers("r1234"), (0x1234, 0, 0, false));
    // (of a raw one this CPU's text knows which counters count it)
    assert_eq!(numbers("r500012a"), (0x500_012a, 0, 0xf, false));
    assert_eq!(numbers("INST_RETIRED.ANY"), (0xc0, 0, 0, true));
    assert_eq!(numbers("NEW.ONE"), (0x03a4_01b7, 0x3f, 0xff, false));
    assert_eq!(numbers("cpu@event=0x12,umask=0x34,edge,inv,cmask=2@"), (0x0284_3412, 0, 0, false));
    assert!(all.given.metrics.iter().all(|metric| metric.value.is_ok()), "{all:?}");
}

#[test]
fn fixed_counters_and_those_of_perf_metrics_are_known_by_their_codes() {
    let entry = |name: &str, umask: &str, counter: &str| {
        format!(
            r#", {{"EventName": "{name}", "EventCode": "0x00", "UMask": "{umask}", "Counter": "{counter}"}}"#
        )
    };
    let events = entry("THREAD", "0x02", "Fixed counter 1")
        + &entry("REF", "0x03", "Fixed counter 2")
        + &entry("ALL", "0x04", "Fixed counter 3")
        + &entry("SIXTH", "0x06", "Fixed counter 5")
        + &entry("BAD", "0x81", "")
        + &entry("ZERO", "0x00", "0,1");
    let all = perf("THREAD + REF + ALL + thread:c1", &events);
    assert_eq!((event(&all, "THREAD").config, event(&all, "THREAD").fixed), (0x3c, true));
    assert_eq!(event(&all, "REF").config, 0x300);
    assert_eq!((event(&all, "thread:c1").config, event(&all, "thread:c1").fixed), (0x0100_003c, false));
    assert!(of(&all, "m").value.as_ref().unwrap().names().contains(&"TOPDOWN.SLOTS"));
    for (name, expected) in [
        ("SIXTH", "by a fixed counter alone"),
        ("BAD", "in PERF_METRICS alone"),
        ("ZERO", "code 0"),
        ("PERF_METRICS.RETIRING", "in PERF_METRICS alone"),
        (r"topdown\-retiring", "in PERF_METRICS alone"),
    ] {
        let why = why(&perf(name, &events), "m");
        assert!(why.contains(expected), "{name}: {why}");
    }
}

#[test]
fn events_of_amd_and_arm_have_their_own_places() {
    let text = r#"[{"MetricName": "m", "MetricExpr": "wide + masked"},
        {"EventName": "wide", "EventCode": "0x1a0", "UMask": "0x01"},
        {"EventName": "masked", "EventCode": "0x10", "CounterMask": "6"}]"#;
    let all = resolved_in(&[text], EventLayout::Amd, false);
    assert_eq!((event(&all, "wide").config, event(&all, "masked").config), (0x1_0000_01a0, 0x0600_0010));
    let all = resolved_in(&[text], EventLayout::Arm, false);
    assert!(why(&all, "m").contains("count mask"));
    let all = resolved(&[text]);
    assert!(why(&all, "m").contains("wide is no event of the core's PMU"));
}

#[test]
fn files_of_arm_are_read() {
    let text = r#"{
        "_type": "PMU_Specification", "document": {"license": "x"},
        "product_configuration": {"product_name": "Some Core", "part_num": "0xd0c", "implementer": "0x41", "num_slots": 5},
        "events": {"INST_RETIRED": {"code": "0x0008", "title": "x", "accesses": ["PMU"]}, "CPU_CYCLES": {"code": "0x0011"}},
        "metrics": {"ipc": {"title": "x", "formula": "INST_RETIRED / CPU_CYCLES", "units": "per cycle", "events": ["INST_RETIRED"]},
                    "busy": {"formula": "INST_RETIRED / CPU_CYCLES * 100", "units": "percent of cycles"}},
        "groups": {"metrics": {"a": {"metrics": ["ipc"]}}}}"#;
    let product = read(text.as_bytes()).unwrap().product.unwrap();
    assert_eq!(product, Product { name: "Some Core".into(), implementer: 0x41, part: 0xd0c });
    let all = resolved_in(&[text], EventLayout::Arm, false);
    let numbers = |name: &str| if name == "INST_RETIRED" { 6.0 } else { 4.0 };
    let value = |name: &str| worth(of(&all, name).value.as_ref().unwrap(), &numbers);
    assert_eq!((value("ipc"), value("busy")), (1.5, 150.0));
    assert_eq!(of(&all, "busy").unit, "percent of cycles");
    assert_eq!((event(&all, "INST_RETIRED").config, event(&all, "CPU_CYCLES").config), (8, 0x11));
}

#[test]
fn modes_are_counted_as_all_else_is() {
    let text = |mode: &str| {
        format!(r#"[{{"MetricName": "m", "MetricExpr": "INST_RETIRED.ANY:{mode} / cpu@UOPS_RETIRED.MS@"}}]"#)
    };
    let is_told =
        |mode: &str, kernel| of(&resolved_in(&[&text(mode)], EventLayout::Intel, kernel), "m").value.is_ok();
    assert!(is_told("u", false) && !is_told("u", true) && !is_told("k", false) && !is_told("k", true));
    assert!(is_told("uk", true) && !is_told("uk", false) && !is_told("p", false) && !is_told("x1", false));
    let other = why(&perf("arb@event\\=0x1@", ""), "m");
    assert!(other.contains("another PMU (arb)"), "{other}");
}

#[test]
fn metrics_that_follow_from_one_another_are_told_unless_in_a_circle_or_too_far() {
    let metric =
        |name: &str, formula: &str| format!(r#"{{"MetricName": "{name}", "MetricExpr": "{formula}"}}"#);
    let all = |metrics: &[String]| resolved(&[&format!("[{}]", metrics.join(","))]);
    let circle = all(&[
        metric("a", "b + 1"),
        metric("b", "c"),
        metric("c", "a * 2"),
        metric("d", "INST_RETIRED.ANY"),
        metric("e", "e / 2"),
        metric("f", "b"),
    ]);
    for name in ["a", "b", "c", "e", "f"] {
        assert!(why(&circle, name).contains("follows from itself"), "{}", why(&circle, name));
    }
    assert!(of(&circle, "d").value.is_ok());
    // (whichever stands first)
    let mut chain: Vec<String> =
        (1..60).map(|k| metric(&format!("m{k}"), &format!("m{} + 1", k - 1))).collect();
    chain.push(metric("m0", "INST_RETIRED.ANY"));
    for reversed in [false, true] {
        if reversed {
            chain.reverse();
        }
        let all = all(&chain);
        assert!(of(&all, "m40").value.is_ok());
        assert!(why(&all, "m41").contains("more than 40 metrics follow"), "{}", why(&all, "m41"));
        assert!(why(&all, "m59").contains("m41"), "{}", why(&all, "m59"));
    }
    let mut doubled: Vec<String> =
        (1..40).map(|k| metric(&format!("m{k}"), &format!("m{0} + m{0}", k - 1))).collect();
    doubled.push(metric("m0", "INST_RETIRED.ANY"));
    let long = why(&all(&doubled), "m39");
    assert!(long.contains("with the metrics that it takes its formula has more than 20000 words"), "{long}");
    let many: Vec<String> =
        (0..200).map(|k| metric(&format!("n{k}"), "m13")).chain(doubled.iter().cloned()).collect();
    let many = all(&many);
    assert!(of(&many, "n0").value.is_ok());
    assert!(why(&many, "n199").contains("300000 words: name fewer"), "{}", why(&many, "n199"));
    let events = (0..101).map(|k| format!("r{k:03x}")).collect::<Vec<_>>();
    assert!(why(&perf(&events.join(" + "), ""), "m").contains("101 events"));
    assert!(of(&perf(&events[1..].join(" + "), ""), "m").value.is_ok());
}

#[test]
fn the_first_of_a_name_is_meant_and_no_event_takes_the_name_of_another_value() {
    let all = resolved(&[
        r#"[{"MetricName": "m", "MetricExpr": "A"}, {"EventName": "A", "EventCode": "0x10"}]"#,
        r#"[{"MetricName": "M", "MetricExpr": "B"}, {"MetricName": "n", "MetricExpr": "a + smt_on + tma_info_thread_clks"},
            {"EventName": "a", "EventCode": "0x20"}, {"EventName": "smt_on", "EventCode": "0x30"}]"#,
    ]);
    assert_eq!((all.given.metrics.len(), &all.files[..]), (2, &[0, 1][..]));
    assert_eq!(event(&all, "A").config, 0x10);
    assert_eq!(event(&all, "smt_on'").config, 0x30);
    assert_eq!(of(&all, "n").value.as_ref().unwrap().names(), ["A", "smt_on'", "info_thread_clks"]);
    let unknown = why(&perf("NO.SUCH / 2", ""), "m");
    assert_eq!(unknown, "NO.SUCH is no event of the files, of this CPU or of its kernel");
    let of_other = why(&perf("x", ", {\"MetricName\": \"x\", \"MetricExpr\": \"NO.SUCH\"}"), "m");
    assert!(of_other.starts_with("it takes x: NO.SUCH is no event"), "{of_other}");
}

#[test]
fn files_that_are_none_are_refused() {
    let why = |text: &str| read(text.as_bytes()).unwrap_err();
    assert!(why("").contains("it is not JSON") && why("[{},").contains("not JSON"));
    assert!(why("{}").contains("neither metrics nor events") && why("[]").contains("neither"));
    assert!(why("[\n{\"MetricName\": 1},\n7]").contains("line 3"), "{}", why("[\n{\"MetricName\": 1},\n7]"));
    assert!(why("\"metrics\"").contains("expected an array, or an object"), "{}", why("\"metrics\""));
    assert!(why("{\"Metrics\": 1}").contains("expected an array of metrics or events"));
    assert!(
        why("[{\"MetricName\": \"a\", \"MetricExpr\": \"b\", \"Unit\": \"cpu_atom\"}]")
            .contains("E-cores alone")
    );
    assert!(why(&" ".repeat(MOST_BYTES as usize + 1)).contains("more than 4 MiB"));
    let many = |entry: &str, count: usize| format!("[{}]", vec![entry; count].join(","));
    let metric = "{\"MetricName\":\"a\",\"MetricExpr\":\"b\"}";
    assert!(why(&many(metric, MOST_METRICS + 1)).contains("more than 1000 metrics"));
    assert_eq!(read(many(metric, MOST_METRICS).as_bytes()).unwrap().metrics(), MOST_METRICS);
    assert!(
        why(&many("{\"EventName\":\"a\",\"EventCode\":1}", MOST_EVENTS + 1))
            .contains("more than 10000 events")
    );
    // (deeper than the reader goes)
    assert!(why(&("{\"x\":".to_string() + &"[".repeat(100_000))).contains("not JSON"));
    assert!(read(b"\xef\xbb\xbf[{\"MetricName\":\"a\xff\",\"MetricExpr\":\"b\"}]").is_ok());
}
