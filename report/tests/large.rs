//! Reports of thousands of regions: each view ends after what takes the most, and says how much more there is.

mod made;
mod reported;

use made::TableContent;
use reported::report;
use serde_json::Value;
use topdown_report::{Format, render};

#[test]
fn views_of_many_regions_in_many_threads_end_after_what_takes_the_most() {
    let report = report("large", &[TableContent::large()]);
    assert_eq!((report.regions.len(), report.regions[0].threads.len()), (2000, 64));
    let html = render(&report, Format::Html);
    assert!(html.len() < 5_000_000, "{} bytes", html.len());
    assert!(html.contains("Regions: the 100 largest of 2,000") && html.contains(" places with less time"));
    let all = html.split("All figures").nth(1).unwrap();
    assert!(all.contains("_1999<") && all.matches("<tr class=\"r\">").count() == 2000);
    let text = render(&report, Format::Text);
    assert!(text.lines().count() < 1000, "{} lines", text.lines().count());
    assert!(text.contains("\n1,960 smaller regions: -o FILE.csv\n") && text.contains("60 smaller threads"));
    assert!(text.contains("_39:") && !text.contains("_40:"), "{text}");
    assert!(text.contains("\nwhat began in what, in 64 threads: "), "{text}");
    // all that there is of each thread
    assert_eq!(render(&report, Format::Csv).matches("_99,1000,").count(), 64);
}

/// What is left out is said where it would be, and is no more than what is there.
#[test]
fn json_of_many_regions_in_many_threads_is_small() {
    let report = report("large", &[TableContent::large()]);
    let json = render(&report, Format::Json);
    assert!(json.len() < 20_000_000, "{} bytes", json.len());
    let json: Value = serde_json::from_str(&json).unwrap();
    let ns = |one: &Value| one["inclusive"]["time_ns"].as_u64().unwrap();
    let regions = json["regions"].as_array().unwrap();
    let told = |all: &[Value], what: &str, left_out: &str| -> (usize, u64) {
        let told = all.iter().map(|one| one[what].as_array().unwrap().len()).sum();
        (told, all.iter().map(|one| one[left_out].as_u64().unwrap()).sum())
    };
    let (threads, left_out) = told(regions, "threads", "threads_left_out");
    // (of equal ones all are left out)
    assert!(threads > 900 && threads <= 1000 && threads as u64 + left_out == 2000 + 63 * 100, "{threads}");
    assert_eq!(regions.len(), 2000);
    let told_ns = |one: &Value| one["threads"].as_array().unwrap().iter().map(ns).min();
    let least = regions.iter().filter_map(told_ns).min().unwrap();
    for (region, told) in report.regions.iter().zip(regions) {
        let longer = region.threads.iter().filter(|one| one.item.inclusive.time_ns > least).count();
        assert!(told["threads"].as_array().unwrap().len() >= longer, "{}", region.name);
    }
    let threads = json["processes"][0]["threads"].as_array().unwrap();
    let (places, left_out) = told(threads, "tree", "places_left_out");
    assert!(places > 900 && places <= 1000 && places as u64 + left_out == 2000 + 63 * 100, "{places}");
    for thread in threads {
        let tree = thread["tree"].as_array().unwrap();
        for place in tree {
            let within = place["parent"].as_u64().map(|parent| &tree[parent as usize]);
            assert_eq!(place["depth"].as_u64().unwrap(), within.map_or(0, |_| 1));
            let number = |one: &Value| -> u64 {
                one["name"].as_str().unwrap().rsplit_once('_').unwrap().1.parse().unwrap()
            };
            assert!(within.is_none_or(|within| number(within) + 1 == number(place)), "{place}");
        }
    }
}
