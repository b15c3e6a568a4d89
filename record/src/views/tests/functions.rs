//! What sorts and filters functions on the page.
#![forbid(unsafe_code)]

use super::*;

/// The values of each function, by name, in the order of the page.
fn values(page: &str) -> Vec<(String, String)> {
    let row = |row: &str| {
        let name = row.split_once("class=\"name\"").unwrap().1.split_once('>').unwrap().1;
        (name.split('<').next().unwrap().into(), row.split('"').next().unwrap().into())
    };
    page.split("data-values=\"").skip(1).map(row).collect()
}

fn keys(page: &str) -> Vec<&str> {
    page.split("data-key=\"").skip(1).map(|key| key.split('"').next().unwrap()).collect()
}

#[test]
fn a_list_can_be_sorted_by_what_it_has_once_the_script_shows_how() {
    let page = page(&profile());
    assert_eq!(keys(&page), ["wasted", "time", "share0", "share1", "share2", "share3", "name"]);
    assert!(page.contains("data-order=\"wasted time share0 share1 share2 share3\""), "{page}");
    let tools = page.split("class=\"tools sorting").nth(1).unwrap();
    assert!(tools.split('>').next().unwrap().contains("hidden"), "nothing without the script");
    assert_eq!(tools.matches("aria-pressed=\"true\"").count(), 1);
    let [told, untold] = &values(&page)[..] else { panic!("{page}") };
    assert_eq!(told, &("f(&quot;x&quot;, int)".into(), "0.3750 0.7500 0.5000 0.1000 0.1500 0.2500".into()));
    assert_eq!(untold, &("no;name".into(), "0.0000 0.2500".into()));
    assert!(page.contains("2 functions</output>"), "{page}");
    let mut one = profile();
    one.functions.truncate(1);
    assert!(keys(&super::page(&one)).is_empty(), "one is sorted");
}

#[test]
fn where_slots_are_not_told_there_is_a_part_of_all_to_sort_by() {
    let page = page(&conditional());
    assert_eq!(keys(&page), ["time", "name"]);
    assert!(page.contains(">events</button>") && !page.contains(">CPU time</button>"), "{page}");
    assert!(values(&page).iter().map(|(_, values)| &**values).eq(["0.7500", "0.2500"]), "{page}");
}
