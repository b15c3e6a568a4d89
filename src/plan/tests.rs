//! Each core, whatever is wanted and whatever is left: what is chosen fits, tells what it says, and says why it tells no more.

use super::*;
use crate::model::{Counting, cores, named};

/// Every row by counters of a CPU that there is.
fn rows() -> impl Iterator<Item = (&'static Model, &'static Counters)> {
    cores().filter_map(|core| {
        let (_, row) = named(core.core)?;
        let Counting::Counters(counters) = row.counting else { return None };
        Some((row, counters))
    })
}

#[test]
fn what_is_chosen_fits_and_holds_the_level_that_it_says_whatever_is_left() {
    let mut chosen = 0;
    for (row, counters) in rows() {
        for shown in (0..counters.leaders.len()).map(Some).chain([None]) {
            let leader = leader(counters, shown);
            assert_eq!(leader, shown.map_or(*counters.leaders.last().unwrap(), |k| counters.leaders[k]));
            for taken in 0..=counters.general.saturating_sub(1 + usize::from(leader.general)) {
                let all = choose(counters, leader, taken, 0);
                let most = counters.tree.depth();
                assert!((1..=most).contains(&all.deepest), "{} {taken}", row.core);
                for level in 1..=most + 1 {
                    let choice = choose(counters, leader, taken, level);
                    let told = level.min(all.deepest);
                    assert_eq!(choice.deepest, all.deepest, "{} {taken}", row.core);
                    assert_eq!(choice.members.len(), counters.tree.inputs_of(told), "{} {level}", row.core);
                    assert!(counters.events.starts_with(choice.members));
                    let in_all = choice.members.len() + usize::from(leader.general) + taken;
                    let fits = counters.general == 0 || told == 1 || in_all <= counters.general;
                    assert!(fits, "{} {taken} {level}: {in_all}", row.core);
                    chosen += 1;
                }
                // one level more would not fit, or is not there; what tells less than the row says whose fault that is
                let more = counters.tree.inputs_of(all.deepest + 1) + usize::from(leader.general) + taken;
                assert!(all.deepest == most || more > counters.general, "{} {taken}", row.core);
                assert_eq!(all.deepest < most, all.no_deeper == WATCHDOG, "{} {taken}", row.core);
                assert!(taken > 0 || all.deepest == most, "{}", row.core);
            }
        }
    }
    assert!(chosen > 1000, "{chosen}");
}

#[test]
fn level_1_of_each_core_has_room_beside_the_watchdog() {
    for (row, counters) in rows().filter(|(_, counters)| counters.general > 0) {
        let last = counters.leaders.last().unwrap();
        let watchdog = usize::from(meets_watchdog(row, last));
        let taken = counters.tree.inputs_of(1) + usize::from(last.general) + watchdog;
        assert!(taken <= counters.general, "{}: {taken} of {}", row.core, counters.general);
    }
}

#[test]
fn each_core_is_counted_in_some_way_and_the_first_tells_most() {
    use Corrections::{Bare, Bounded, Counted};
    let names = crate::model::names_of_cores();
    for core in names {
        let (_, own) = named(core).unwrap();
        let has = |variant| model::another(own, variant).is_some();
        let by_counters = matches!(own.counting, Counting::Counters(_)) || has(Variant::Counters);
        for corrections in [Counted, Bounded, Bare] {
            for one_thread in [false, true] {
                let ways = variants(has, corrections, one_thread);
                assert!(!ways.is_empty(), "{core} {corrections:?}");
                for way in ways.iter().flatten() {
                    assert!(has(*way), "{core}: there is no {way:?}");
                    assert!(one_thread || *way != Variant::OneThread, "{core}");
                }
                let counters = |way: &Option<Variant>| {
                    let row = match way {
                        Some(variant) => model::another(own, *variant)?.1,
                        None if own.variant == Variant::Own && has(Variant::Counters) => {
                            model::another(own, Variant::Counters)?.1
                        }
                        None => own,
                    };
                    let Counting::Counters(counters) = row.counting else { return None };
                    Some(counters.events.len())
                };
                let sizes: Vec<usize> = ways.iter().filter_map(counters).collect();
                assert!(sizes.is_sorted_by(|a, b| a > b), "{core} {corrections:?}: {sizes:?}");
                assert_eq!(by_counters, sizes.len() == ways.len(), "{core}");
            }
        }
    }
}
