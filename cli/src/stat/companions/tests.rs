use super::*;
use topdown_seam::random::Random;

const FIRST: CountPlace = CountPlace::Counter(0);
const SECOND: CountPlace = CountPlace::Counter(1);

/// Programs of three phases, of whose two events a figure is the quotient: counted in one group, or each in its own, by turns that are as
/// likely or not.
#[test]
fn the_truth_is_in_the_interval() {
    let mut random = Random::new(23);
    let mut part = || random.below(1 << 20) as f64 / f64::from(1 << 20);
    let quotient = |counts: &[f64]| counts[0] / counts[1];
    let (mut wide, mut told) = ([0.0; 2], 0);
    for program in 0..400 {
        let rates: Vec<[f64; 2]> = (0..3).map(|_| [0.001 + 0.3 * part(), 0.1 + part()]).collect();
        let is_weighted = program % 2 == 1;
        let chance = if is_weighted { 0.2 } else { 0.5 };
        let (mut counted, mut totals) = (BTreeMap::<u32, TurnCounts>::new(), [0.0; 3]);
        for turn in 0..120 {
            let slots = (1e6 * (0.5 + part())) as u64;
            let counts = rates[turn / 40].map(|rate| (rate * (0.7 + 0.6 * part()) * slots as f64) as u64);
            let mut sum = Sum { slots, time_running_ns: slots, ..Sum::default() };
            sum.counted[..2].copy_from_slice(&counts);
            [slots, counts[0], counts[1]].iter().zip(&mut totals).for_each(|(one, all)| *all += *one as f64);
            let (group, odds) = if part() < chance { (1, chance) } else { (2, 1.0 - chance) };
            counted.entry(group).or_default().add(&sum, &[], if is_weighted { 1.0 / odds } else { 1.0 });
        }
        let whole = WholeCount {
            turns: 120,
            slots: totals[0],
            is_weighted,
            uncounted: 0.0,
            likely_uncounted: 0.0,
            slots_per_cycle: 4.0,
            wall: Duration::from_secs(1),
        };
        let truth = totals[1] / totals[2];
        for (k, places) in [[(1, FIRST), (1, SECOND)], [(1, FIRST), (2, SECOND)]].iter().enumerate() {
            let [value, low, high] =
                estimates(places, &counted, &whole).unwrap().value_and_bounds(quotient, false);
            let (low, high) = (low.unwrap(), high.unwrap_or(f64::INFINITY));
            assert!(low <= truth && truth <= high, "{program} {places:?}: {low} {truth} {high}");
            assert!(low <= value.unwrap() && value.unwrap() <= high);
            wide[k] += ((high - low) / truth).min(2.0);
        }
        told += 1;
    }
    // (and it is not everything)
    let mean = wide.map(|wide| wide / f64::from(told));
    assert!(mean[0] < 1.5 && mean[1] < 1.5, "{mean:?}");
}

/// Programs of an event at a steady rate, and of one whose rate changes and is much the same on average: the lesser of both, and one by the other
/// where there is more of it.
#[test]
fn the_truth_is_in_the_interval_of_what_bends() {
    let mut random = Random::new(41);
    let mut part = || random.below(1 << 20) as f64 / f64::from(1 << 20);
    let least = |counts: &[f64]| counts[0].min(counts[1]);
    let chosen = |counts: &[f64]| if counts[1] > counts[0] { counts[1] / counts[0] } else { 1.0 };
    let mut outside = [0, 0];
    for program in 0..400 {
        let (mut counted, mut totals) = (BTreeMap::<u32, TurnCounts>::new(), [0.0; 3]);
        let (size, middle) = (0.1 + 0.3 * part(), 0.49 + 0.02 * part());
        for turn in 0..120 {
            let slots = (1e6 * (0.5 + part())) as u64;
            let changing = middle + size * if turn / 20 % 2 == 0 { 1.0 } else { -1.0 };
            let counts = [0.5, changing].map(|rate| (rate * slots as f64) as u64);
            let mut sum = Sum { slots, time_running_ns: slots, ..Sum::default() };
            sum.counted[..2].copy_from_slice(&counts);
            [slots, counts[0], counts[1]].iter().zip(&mut totals).for_each(|(one, all)| *all += *one as f64);
            counted.entry(if part() < 0.4 { 1 } else { 2 }).or_default().add(&sum, &[], 1.0);
        }
        let whole = WholeCount { turns: 120, slots: totals[0], ..WHOLE };
        let estimates = estimates(&[(1, FIRST), (1, SECOND)], &counted, &whole).unwrap();
        for of in [&least as &dyn Fn(&[f64]) -> f64, &chosen] {
            let truth = of(&totals[1..]);
            for (bends, outside) in [true, false].into_iter().zip(&mut outside) {
                let [_, low, high] = estimates.value_and_bounds(of, bends).map(Option::unwrap);
                *outside += u32::from(truth < low * (1.0 - 1e-5) || truth > high * (1.0 + 1e-5));
            }
        }
        assert_eq!(outside[0], 0, "{program}");
    }
    // (its slopes where it is are not enough)
    assert!(outside[1] > 20, "{outside:?}");
}

/// Of a million and a quarter events a million has samples, which say five cycles, and fifty thousand are in periods that had not ended.
#[test]
fn events_without_a_sample_may_have_had_any_latency() {
    let told = TimedSamples {
        samples: 100,
        events: 1e6,
        counted: 1.25e6,
        cut: 3e4,
        unended: 2e4,
        latencies: 5e6,
        ..TimedSamples::default()
    };
    let mut counts = TurnCounts::default();
    counts.add(&Sum { slots: 1_000_000, ..Sum::default() }, &[told], 1.0);
    let (latencies, events) = (CountPlace::Latencies(0), CountPlace::Timed(0));
    // (twice as many in the whole)
    assert!((counts.unsampled_at(events, 2e6) - 4e5).abs() < 1e-6);
    assert!((counts.unsampled_at(latencies, 1e7) - 4e5 * 65_535.0).abs() < 1.0);
    assert_eq!(counts.unsampled_at(SECOND, 1e7), 0.0);
    (1..10).for_each(|_| counts.add(&Sum { slots: 1_000_000, ..Sum::default() }, &[told], 1.0));
    let counted = BTreeMap::from([(1, counts)]);
    let whole = WholeCount { slots: 2e7, ..WHOLE };
    let told = estimates(&[(1, latencies), (1, events)], &counted, &whole).unwrap();
    assert_eq!(told.counts, [1e8, 2e7]);
}

/// Programs with an event that happens in a few turns of all, together, and at other times never, or hardly: then one of the few is to be seen.
#[test]
fn what_is_seldom_and_much_is_in_the_interval() {
    let (mut random, mut unseen, mut bounded) = (Random::new(31), 0, 0.0);
    let mut part = || random.below(1 << 20) as f64 / f64::from(1 << 20);
    for program in 0..400 {
        let chance = 0.1 + 0.5 * part();
        let (begin, length, rate) =
            ((240.0 * part()) as usize, 1 + (12.0 * part()) as usize, 0.05 + 0.2 * part());
        let hardly = if program % 2 == 0 { 0.0 } else { 1e-4 };
        let (mut counted, mut totals, mut seen) = (BTreeMap::<u32, TurnCounts>::new(), [0.0; 2], false);
        for turn in 0..250 {
            let slots = (1e6 * (0.5 + part())) as u64;
            let is_burst = (begin..begin + length).contains(&turn);
            let count = (if is_burst { rate } else { hardly } * slots as f64) as u64;
            let mut sum = Sum { slots, time_running_ns: slots, ..Sum::default() };
            sum.counted[0] = count;
            let is_own = part() < chance;
            seen |= is_own && is_burst;
            totals = [totals[0] + slots as f64, totals[1] + count as f64];
            counted.entry(if is_own { 1 } else { 2 }).or_default().add(&sum, &[], 1.0);
        }
        if hardly > 0.0 && !seen {
            continue;
        }
        let whole = WholeCount { turns: 250, slots: totals[0], ..WHOLE };
        let estimates = estimates(&[(1, FIRST)], &counted, &whole).unwrap();
        let [value, low, high] = estimates.value_and_bounds(|counts| counts[0], false).map(Option::unwrap);
        assert!(low <= totals[1] && totals[1] <= high, "{program}: {low} {} {high} {value}", totals[1]);
        unseen += u32::from(value == 0.0 && totals[1] > 0.0);
        bounded += high / totals[0];
    }
    // (some were not seen at all, and the interval is not everything)
    assert!(unseen > 3 && bounded / 400.0 < 0.1, "{unseen} {bounded}");
}

fn steady(turns: usize, [slots, first]: [u64; 2]) -> BTreeMap<u32, TurnCounts> {
    let mut sum = Sum { slots, time_running_ns: 1_000, ..Sum::default() };
    sum.counted[0] = first;
    let mut counted = BTreeMap::<u32, TurnCounts>::new();
    (0..turns).for_each(|_| counted.entry(1).or_default().add(&sum, &[], 1.0));
    counted
}

const WHOLE: WholeCount = WholeCount {
    turns: 20,
    slots: 20_000.0,
    is_weighted: false,
    uncounted: 0.0,
    likely_uncounted: 0.0,
    slots_per_cycle: 4.0,
    wall: Duration::ZERO,
};

#[test]
fn few_turns_tell_nothing() {
    assert!(estimates(&[(1, FIRST)], &steady(7, [1_000, 50]), &WHOLE).is_err());
    assert!(estimates(&[(2, FIRST)], &steady(10, [1_000, 50]), &WHOLE).is_err());
    assert!(estimates(&[(1, FIRST)], &steady(10, [1_000, 50]), &WHOLE).is_ok());
}

#[test]
fn what_was_not_counted_may_have_been_of_the_most_there_was() {
    let per_slot = |counts: &[f64]| counts[0] / 20_000.0;
    let ends = |uncounted| {
        let whole = WholeCount { uncounted, ..WHOLE };
        let [value, low, high] = estimates(&[(1, FIRST)], &steady(20, [1_000, 50]), &whole)
            .unwrap()
            .value_and_bounds(per_slot, false);
        [value.unwrap(), low.unwrap(), high.unwrap()]
    };
    assert_eq!(ends(0.0), [0.05; 3], "all was counted");
    let [value, low, high] = ends(2_000.0);
    assert!(value == 0.05 && low == 0.05 && (high - 0.055).abs() < 1e-12, "{low} {high}");
}

#[test]
fn what_was_never_seen_has_an_upper_end_and_what_it_divides_none() {
    let estimates = estimates(&[(1, FIRST)], &steady(10, [1_000, 0]), &WHOLE).unwrap();
    let [value, low, high] = estimates.value_and_bounds(|counts| counts[0], false);
    // (one in a cycle of all that half of the turns leave)
    assert!(value == Some(0.0) && low == Some(0.0) && high.unwrap() >= 2_500.0, "{high:?}");
    assert_eq!(estimates.value_and_bounds(|counts| 5.0 / counts[0], false)[0], None);
}

#[test]
fn what_came_since_is_what_came_since() {
    let then = steady(10, [1_000, 50]).remove(&1).unwrap();
    let mut now = then.clone();
    let more = steady(9, [2_000, 10]).remove(&1).unwrap();
    let sum = |slots, first| {
        let mut sum = Sum { slots, time_running_ns: 1_000, ..Sum::default() };
        sum.counted[0] = first;
        sum
    };
    (0..9).for_each(|_| now.add(&sum(2_000, 10), &[], 1.0));
    let since = now.since(Some(&then));
    assert_eq!((since.turns, since.slots), (9, more.slots));
    assert_eq!((&since.sums, &since.products), (&more.sums, &more.products));

    let told = |samples| TimedSamples { samples, events: 1e3, latencies: 5e3, ..TimedSamples::default() };
    let mut sampled = TurnCounts::default();
    sampled.add(&sum(2_000, 10), &[told(40)], 1.0);
    let then = sampled.clone();
    assert_eq!(sampled.since(Some(&then)).timed_at(0), TimedSamples::default());
    sampled.add(&sum(2_000, 10), &[told(3)], 1.0);
    assert_eq!(sampled.since(Some(&then)).timed_at(0), told(3));
}
