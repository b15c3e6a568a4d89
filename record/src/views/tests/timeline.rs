//! CPU time over time.
#![forbid(unsafe_code)]

use super::*;
use crate::views::timeline::{Lane, lanes};

const MS: f64 = 1e6;

/// The samples of each column, and milliseconds that retire most, and of which it cannot be told.
fn columns(lane: &Lane) -> Vec<(usize, [f64; 2])> {
    let both = |parts: &[f64]| [parts[0] / MS, parts[4] / MS].map(f64::round);
    assert!(lane.columns.iter().all(|column| column.parts[1..4] == [0.0; 3]));
    lane.columns.iter().map(|column| (column.samples, both(&column.parts))).collect()
}

#[test]
fn columns_have_the_time_of_their_samples_by_the_category_of_what_ran() {
    let profile = profile();
    let timeline = lanes(&profile).unwrap();
    assert_eq!(timeline.length_ns, 3e9);
    let [all, thread] = &timeline.lanes[..] else { panic!("{:?}", timeline.lanes) };
    // (from the end of the first second on there is another thread, which waits for half of the time)
    assert_eq!(
        columns(all),
        [
            (5, [600.0, 0.0]),
            (7, [600.0, 100.0]),
            (9, [600.0, 300.0]),
            (9, [600.0, 300.0]),
            (10, [600.0, 300.0])
        ]
    );
    // (a sample is counted where it was taken, and its time is before it) the other one's ten samples are too few for two columns
    assert_eq!(thread.thread.unwrap().tid, 7);
    assert_eq!(columns(thread), [9, 10, 11].map(|samples| (samples, [1000.0, 0.0])));
}

#[test]
fn the_page_has_lanes_that_say_what_is_in_use() {
    let text = section(&profile(), "timeline");
    for said in [
        "CPU time over time",
        "Up to 1.50 CPUs in use, by the times of 40 samples, some 8 in a column.",
        "each up to 1.00 CPUs in use",
        "thread 7 a.out",
        "0 ns to 600 ms\n1.00 CPUs in use, 5 samples\nretiring 100.0 %<",
        "9 samples\nretiring 66.7 %\ncannot be told 33.3 %<",
        "data-end=\"3000000000\"",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert_eq!((text.matches("class=\"time\"").count(), text.matches("<button").count()), (2, 5));
    assert!(text.contains("<path class=\"a0\"") && text.contains("<path class=\"rest\""), "{text}");
    assert!(!text.contains("SIMULATED"));
    assert!(section(&Profile { simulated: Some("timer"), ..profile() }, "timeline").contains("SIMULATED"));
}

#[test]
fn samples_of_an_event_are_events_a_second() {
    let text = section(&conditional(), "timeline");
    assert!(text.contains("cycles in stretches where ipc &lt; 0.5 over time"), "{text}");
    assert!(text.contains("Up to 1,666,666,666 cycles a second"), "{text}");
    let others = ["CPU", "Colours", "retiring", "cannot be told", "\"a0\""];
    assert!(others.iter().all(|other| !text.contains(other)), "{text}");
}

#[test]
fn few_samples_or_such_of_no_time_have_no_timeline() {
    let with = |samples: Vec<ProfiledSample>| section(&Profile { samples, ..profile() }, "timeline");
    assert_eq!(with(Vec::new()), "");
    assert_eq!(with(samples()[..15].to_vec()), "");
    assert_ne!(with(samples()[..16].to_vec()), "");
    // all at once
    let at_once = |sample: ProfiledSample| ProfiledSample { at_ns: 0, ..sample };
    assert_ne!(with(samples().into_iter().map(at_once).collect()), "");
}

/// Where samples come late they stand for more, and columns without one for as much as the next one says.
#[test]
fn time_is_where_it_passed() {
    let at = |at_ns: u64, weight_ns: u64| ProfiledSample { at_ns, thread: 7, weight_ns, stack: 1 };
    let rare = (1..=8).map(|k| at(k * 1_000_000_000, 1_000_000_000));
    let often = (1..=8).map(|k| at(8_000_000_000 + k * 1_000_000, 1_000_000));
    let slept = [at(16_000_000_000, 8_000_000)];
    let samples = rare.chain(often).chain(slept).collect();
    let profile = Profile { samples, ..profile() };
    let timeline = lanes(&profile).unwrap();
    let [all] = &timeline.lanes[..] else { panic!("{:?}", timeline.lanes) };
    assert_eq!(columns(all), [(7, [8000.0, 0.0]), (10, [16.0, 0.0])]);
}

#[test]
fn each_column_that_is_drawn_says_what_it_has() {
    let at = |at_ns: u64, weight_ns: u64| ProfiledSample { at_ns, thread: 7, weight_ns, stack: 1 };
    let late = [at(9_000_000_000, 5_900_000_000)];
    let often = (1..=23).map(|k| at(9_000_000_000 + k * 1_000_000, 1_000_000));
    let text =
        section(&Profile { samples: late.into_iter().chain(often).collect(), ..profile() }, "timeline");
    assert!(text.contains("3.01 s to 6.02 s\n0.97 CPUs in use, 0 samples\nretiring 100.0 %<"), "{text}");
    assert!(!text.contains("0 ns to 3.01 s"), "nothing ran: {text}");
}
