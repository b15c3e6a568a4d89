//! A recording of which a part was changed is refused, or its profile is one that can be: nothing of it panics.

use super::*;
use crate::journal::JournalContents;
use crate::symbols::tests::Scratch;
use std::fmt::Write;

/// Of numbers that look random (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, all: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % all
    }
}

/// By counters and by registers, in files and in what is no file's, with returns and without.
fn recording(file: &str) -> String {
    let events = ["Golden or Raptor Cove, bare counters", "Golden or Raptor Cove"].map(|core| {
        let events = SampledEvents::of_core(core).unwrap();
        let names: Vec<&str> = events.events.iter().map(|(name, _)| *name).collect();
        let fingerprint = topdown::fingerprint(core).unwrap();
        format!(r#"{{"core":"{core}","fingerprint":{fingerprint},"level":2,"slots_each":1,"events":{names:?},"note":"why"}}"#)
    });
    let mut text = format!(
        r#"{{"recording":{{"version":3,"command":"a b","occasion":"today","settings":{{"frequency":500,"gap":1000,"budget":0.01,"kernel":false,"callers":"frame_pointers"}},"cores":[{}]}}}}"#,
        events.join(",")
    );
    let file = serde_json::to_string(&crate::spaces::Module::at(file)).unwrap();
    let _ = write!(text, "\n{{\"module\":{file}}}");
    text += r#"
{"module":{"anonymous":{"pid":7,"user":1000,"version":0,"memfd":""}}}
{"module":"vdso"}
{"module":{"file":{"path":"/nowhere/b","proof":"unseen"}}}
{"module":{"process":"name"}}
"#;
    for stack in 0..6 {
        let address = 4096 + 64 * stack;
        let _ = writeln!(
            text,
            r#"{{"stack":[{{"module":{},"address":{address}}},{{"module":null,"address":77}},{{"module":4,"address":0}}]}}"#,
            stack % 4
        );
    }
    let of_kinds = [
        vec![6000, 3000, 1200, 600, 300, 900, 50, 600],
        vec![6000, 1000, 3000, 1200, 600, 1200, 300, 900, 300, 600],
    ];
    for burst in 0..96_u64 {
        let (kind, long, stack) = (burst as usize % 2, burst / 2 % 2 == 1, burst / 4 % 3);
        let by = if long { 4 } else { 1 };
        let counts: Vec<u64> = of_kinds[kind].iter().map(|n| by * (n + burst % 7)).collect();
        let second = if burst % 5 == 0 { "null".into() } else { format!("{counts:?}") };
        let other = if burst % 11 == 0 { stack + 1 } else { stack };
        let returns = if burst % 5 == 0 { "null" } else { "0" };
        let calls = format!(r#","calls":{{"returns":[0,{returns}],"stack":[0,-16,16]}}"#);
        let calls = if kind == 0 { calls } else { String::new() };
        let _ = writeln!(
            text,
            r#"{{"burst":{{"kind":{kind},"long":{long},"weight_ns":{},"stacks":[{stack},{other},{stack}],"windows":[{counts:?},{second}]{calls}}}}}"#,
            2_000_000 + burst
        );
        let _ = writeln!(
            text,
            r#"{{"burst":{{"kind":{kind},"long":false,"weight_ns":1000000,"stacks":[{}],"windows":[]}}}}"#,
            burst % 6
        );
    }
    text + r#"{"totals":{"elapsed":{"secs":1,"nanos":500000000},"threads":2,"refused":[1,"why"],"unseen":{"threads":1,"ns":2000000},"unclocked":1,"by_timer":1,"lost":3,"throttled":4,"parted":5,"impossible":6,"pace":{"asked":500,"frequency":450.0,"burst_ns":20000.0,"budget":0.01,"limit":"cost"},"cpus":{"cpus":2,"changed":[1],"switched":3,"hidden":1,"by_timer":true}}}
"#
}

/// Where numbers begin and end.
fn numbers(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let is_part = |byte: u8| byte.is_ascii_digit() || byte == b'.' || byte == b'-';
    let begins = |place: &usize| is_part(bytes[*place]) && !is_part(bytes[place - 1]);
    let end = |from: usize| (from..bytes.len()).find(|place| !is_part(bytes[*place])).unwrap_or(bytes.len());
    (1..bytes.len()).filter(begins).map(|from| (from, end(from))).collect()
}

const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "-1",
    "2",
    "10",
    "255",
    "65536",
    "4294967295",
    "4294967296",
    "1099511627775",
    "9223372036854775807",
    "18446744073709551615",
    "1e300",
    "0.5",
    "null",
    "[]",
];

/// Changes a byte, a number, or the order of lines.
fn damage(text: &mut String, random: &mut Random) {
    match random.below(8) {
        0 => {
            let place = random.below(text.len());
            let byte = char::from(b' ' + random.below(95) as u8).to_string();
            text.replace_range(place..=place, &byte);
        }
        1 => {
            let mut lines: Vec<&str> = text.lines().collect();
            let [one, other] = [random.below(lines.len()), random.below(lines.len())];
            match random.below(3) {
                0 => lines.swap(one, other),
                1 => lines[one] = lines[other],
                _ => _ = lines.remove(one),
            }
            *text = lines.join("\n") + "\n";
        }
        kind => {
            let all = numbers(text);
            let (from, to) = all[random.below(all.len())];
            let old = &text[from..to];
            let new = match kind {
                2 => format!("{old}0"),
                3 => format!("-{old}"),
                4 => format!("{}{}", 1 + random.below(9), &old[1..]),
                _ => NUMBERS[random.below(NUMBERS.len())].into(),
            };
            text.replace_range(from..to, &new);
        }
    }
}

/// Figures are parts with their intervals around them.
fn is_sane(figures: &FunctionFigures) -> bool {
    let shares = figures.shares.iter().flat_map(|told| &told.shares);
    let near = |a: f64, b: f64| a <= b + 1e-9;
    [&figures.time].into_iter().chain(shares).all(|part| {
        near(0.0, part.low)
            && near(part.low, part.value)
            && near(part.value, part.high)
            && near(part.high, 1.0)
    })
}

const VIEWS: [View; 8] =
    [View::Text, View::Lines, View::Csv, View::Json, View::Html, View::Svg, View::Folded, View::Firefox];

/// Whether it is taken for a recording; its profile is looked at in these views.
fn look_at(text: &str, views: &[View]) -> bool {
    let Ok(kept) = JournalContents::of(text.as_bytes()) else { return false };
    let profile = Profile::new(&kept.recording);
    for core in &profile.cores {
        assert!(is_sane(&core.all), "{:?}", core.all);
    }
    for function in &profile.functions {
        assert!(is_sane(&function.own) && is_sane(&function.inclusive), "{function:?}");
    }
    for view in views {
        let written = view.write(&profile, &HEADING);
        if matches!(view, View::Html) {
            continue; // (its script has these words)
        }
        let written = String::from_utf8(written).unwrap();
        let word = ["NaN", "inf "].into_iter().find(|word| written.contains(word));
        assert!(word.is_none(), "{word:?} in {view:?}: {written}");
        if matches!(view, View::Json | View::Firefox) {
            let json: serde_json::Value = serde_json::from_str(&written).unwrap();
            assert!(json.is_object() && !written.contains("\"value\": null"), "{written}");
        }
    }
    true
}

/// (TOPDOWN_DAMAGE=20000 takes some minutes.)
#[test]
fn a_damaged_recording_is_refused_or_has_a_profile_that_can_be() {
    let scratch = Scratch::new("damaged");
    let whole = recording(&scratch.compiled("with", &["-g"]));
    assert!(look_at(&whole, &VIEWS));
    let rounds = std::env::var("TOPDOWN_DAMAGE").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let (mut random, mut taken) = (Random(88_172_645_463_325_252), 0);
    for round in 0..rounds {
        let mut text = whole.clone();
        (0..=random.below(3)).for_each(|_| damage(&mut text, &mut random));
        // (each costs more than all that is before it)
        let views = &VIEWS[round % VIEWS.len()..][..1];
        let looked = std::panic::catch_unwind(|| look_at(&text, views));
        taken += usize::from(looked.unwrap_or_else(|_| panic!("round {round}: {text}")));
    }
    // (a number may be another one that can be)
    assert!(taken > rounds / 20 && taken < rounds * 9 / 10, "{taken} of {rounds} were taken");
}
