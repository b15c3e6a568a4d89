//! The timeline of a report, as each format shows it.

mod made;

use made::{CORE, Scratch, ran};
use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use topdown_report::model::Machine;
use topdown_report::timeline::{Series, SeriesSubject, Timeline, TimelineInterval};
use topdown_report::{Format, OutsideCount, Report, encode, render, write_timeline};

const MS: u64 = 1_000_000;

fn counted(slots: u64, one: [u64; 4]) -> OutsideCount {
    let machine = Machine {
        cpu: "a CPU".into(),
        core: CORE.into(),
        pmu: "cpu".into(),
        path: topdown::Path::Read,
        level: 2,
        slots_per_cycle: 6,
        max_error: 0.0,
        max_overhead: 0.0,
        note: String::new(),
    };
    let sum = ran(slots, one, one.map(|part| part / 2), slots / 1000).sum();
    let parts = if slots > 0 { vec![(machine, sum)] } else { Vec::new() };
    OutsideCount { parts, ..OutsideCount::default() }
}

fn interval(number: u64, slots: u64, one: [u64; 4]) -> TimelineInterval {
    TimelineInterval::new(10 * MS * number, 10 * MS * (number + 1), &counted(slots, one)).unwrap()
}

/// Of 100,000 slots of one kind, then nothing, then twice as many of another.
fn timeline() -> Timeline {
    let intervals = |part: u64| {
        vec![
            interval(0, 100_000 / part, [50, 10, 10, 30]),
            interval(1, 0, [0; 4]),
            interval(2, 200_000 / part, [10, 10, 20, 60]),
        ]
    };
    let thread = SeriesSubject::Thread { tid: 7, name: "</svg><script>alert(1)</script>".into() };
    let series = vec![
        Series { of: SeriesSubject::Whole, intervals: intervals(1) },
        Series { of: thread, intervals: intervals(2) },
    ];
    Timeline { boottime_ns: 5 * MS, series }
}

fn report() -> Report {
    let whole = OutsideCount { timeline: Some(timeline()), ..counted(300_000, [23, 10, 17, 50]) };
    Report::new(&[], Some(whole))
}

#[test]
fn json_has_slots_of_each_category_and_the_bound() {
    let json: serde_json::Value = serde_json::from_str(&render(&report(), Format::Json)).unwrap();
    let series = &json["timeline"]["series"];
    assert_eq!((&series[0]["of"], &series[1]["of"]), (&"whole".into(), &"thread".into()));
    let [first, idle, last] = [0, 1, 2].map(|k| &series[0]["intervals"][k]);
    assert_eq!((&first["tma_retiring"], &first["tma_backend_bound"]), (&50_000.into(), &30_000.into()));
    assert_eq!((&last["tma_retiring"], &last["slots"]), (&20_000.into(), &200_000.into()));
    assert_eq!((&last["begin_ns"], &last["end_ns"]), (&(20 * MS).into(), &(30 * MS).into()));
    assert!((0.001..0.002).contains(&first["error_1"].as_f64().unwrap()), "{first}");
    assert_eq!(
        (&idle["slots"], &idle["error_1"], &idle["tma_retiring"]),
        (&0.into(), &None::<f64>.into(), &None::<f64>.into())
    );
}

#[test]
fn csv_has_a_line_for_each_interval() {
    let scratch = Scratch::new("timeline");
    let path = scratch.0.join("t.csv");
    write_timeline(&report(), &path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines = text.lines();
    assert!(
        lines.next().unwrap().starts_with("of,begin_ns,end_ns,slots,time_ns,running,tma_retiring,"),
        "{text}"
    );
    assert!(
        lines.next().unwrap().starts_with(",0,10000000,100000,10000,1,50000,10000,10000,30000,"),
        "{text}"
    );
    assert!(lines.next().unwrap().starts_with(",10000000,20000000,0,0,,,,,"), "{text}");
    assert_eq!(lines.filter(|line| line.contains("thread 7")).count(), 3, "{text}");
    for wrong in ["t.html", "t.txt", "t"] {
        assert!(write_timeline(&report(), &scratch.0.join(wrong)).is_err(), "{wrong}");
    }
}

#[test]
fn the_page_has_areas_of_slots_and_of_shares_for_the_whole_and_each_part() {
    let page = render(&report(), Format::Html);
    assert!(page.contains("id=\"timeline\"") && !page.contains("<script>alert"), "{page}");
    let charts: Vec<&str> = page.split("class=\"time\"").skip(1).collect();
    assert_eq!(charts.len(), 3);
    let path = |chart: &str, class: &str| {
        let path = chart.split("<path").find(|path| path.contains(&format!("class=\"{class}\""))).unwrap();
        path.split("d=\"").nth(1).unwrap().split('"').next().unwrap().to_string()
    };
    // of slots: half as high in the first third as in the last; 50 % of that retire, then 10
    let area = |chart| {
        let path = path(chart, "a0");
        let numbers: Vec<f64> = path
            .split(|c: char| !(c.is_ascii_digit() || c == '.'))
            .filter_map(|number| number.parse().ok())
            .collect();
        numbers[2..14].chunks(2).map(|pair| (pair[0], 100.0 - pair[1])).collect::<Vec<_>>()
    };
    let rounded =
        |points: Vec<(f64, f64)>| points.iter().map(|(x, y)| (x.round(), y.round())).collect::<Vec<_>>();
    assert_eq!(
        rounded(area(charts[0])),
        [(0.0, 25.0), (333.0, 25.0), (333.0, 0.0), (667.0, 0.0), (667.0, 10.0), (1000.0, 10.0)]
    );
    assert_eq!(
        rounded(area(charts[1])),
        [(0.0, 50.0), (333.0, 50.0), (333.0, 0.0), (667.0, 0.0), (667.0, 10.0), (1000.0, 10.0)]
    );
    assert!(
        charts[0].contains("10.0 ms to 20.0 ms\n0 slots") && charts[0].contains("backend bound 60.0 %"),
        "{}",
        charts[0]
    );
}

#[test]
fn intervals_whose_bound_says_little_are_hatched() {
    let mut report = report();
    assert!(!render(&report, Format::Html).contains("<rect class=\"doubt\""));
    let series = &mut report.timeline.as_mut().unwrap().series[0];
    for node in &mut series.intervals[0].nodes {
        node.share.high = 1.0;
    }
    let page = render(&report, Format::Html);
    assert_eq!(page.matches("<rect class=\"doubt\"").count(), 2, "{page}");
}

/// The fields of a message: tag, number, bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u32, u64, &[u8])> {
    let mut fields = Vec::new();
    while bytes.has_remaining() {
        let (tag, kind) = decode_key(&mut bytes).unwrap();
        fields.push(match kind {
            WireType::Varint => (tag, decode_varint(&mut bytes).unwrap(), &[][..]),
            WireType::SixtyFourBit => (tag, bytes.get_u64_le(), &[][..]),
            WireType::LengthDelimited => {
                let length = decode_varint(&mut bytes).unwrap() as usize;
                let (own, rest) = bytes.split_at(length);
                bytes = rest;
                (tag, 0, own)
            }
            kind => {
                skip_field(kind, tag, &mut bytes, DecodeContext::default()).unwrap();
                continue;
            }
        });
    }
    fields
}

#[test]
fn a_trace_has_a_track_for_each_node_in_slots_per_second() {
    let trace = encode(&report(), Format::Trace).unwrap();
    let find = |message: &[(u32, u64, &[u8])], tag: u32| {
        message.iter().find(|field| field.0 == tag).map(|field| field.1)
    };
    let mut retiring = Vec::new();
    let mut values = Vec::new();
    for (tag, _, packet) in fields(&trace) {
        assert_eq!(tag, 1);
        let packet = fields(packet);
        for (tag, _, message) in &packet {
            let message = fields(message);
            match tag {
                60 if message.iter().any(|field| field.2 == b"tma_retiring") => {
                    retiring.push(find(&message, 1).unwrap())
                }
                11 => {
                    let at = find(&packet, 8).unwrap();
                    values.push((
                        find(&message, 11).unwrap(),
                        at,
                        f64::from_bits(find(&message, 44).unwrap()),
                    ));
                }
                _ => {}
            }
        }
    }
    // of the whole, and of the thread
    assert_eq!(retiring.len(), 2);
    let of =
        |track: u64| values.iter().filter(move |value| value.0 == track).map(|(_, at, value)| (*at, *value));
    assert_eq!(
        of(retiring[0]).collect::<Vec<_>>(),
        [(5 * MS, 5e6), (15 * MS, 0.0), (25 * MS, 2e6), (35 * MS, 0.0)]
    );
    assert_eq!(of(retiring[1]).collect::<Vec<_>>()[0], (5 * MS, 2.5e6));
}

#[test]
fn without_intervals_a_trace_says_so_of_a_run_and_is_refused_else() {
    let report = Report::new(&[], Some(counted(1000, [25; 4])));
    let why = "nothing was counted from outside";
    let trace = encode(&report, Format::Trace).unwrap();
    assert!(String::from_utf8_lossy(&trace).contains(why));
    let of_files = Report { run: None, ..report.clone() };
    assert!(encode(&of_files, Format::Trace).unwrap_err().to_string().contains(why));
    assert!(!render(&report, Format::Html).contains("id=\"timeline\""));
}

#[test]
fn a_format_has_a_timeline_if_it_shows_one() {
    let (with, without) = (report(), Report { timeline: None, ..report() });
    for format in [Format::Text, Format::Csv, Format::Json, Format::Html, Format::Trace] {
        let shows = render(&with, format) != render(&without, format);
        assert_eq!(format.has_timeline(), shows, "{format:?}");
    }
}
