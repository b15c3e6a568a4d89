use super::*;
use crate::bound::skid_of_counters;
use crate::decode::tests::pairs;
use crate::model;
use crate::sample::Base;
use crate::sample::Increments;

/// A sample whose registers hold so much of which so many 255ths retired, the rest backend bound.
fn sample(slots: u64, retiring: u64) -> Sample {
    let base = Base::of_handle(1, model::SIMULATED as u8, 2);
    let metrics = retiring | (255 - retiring) << 24;
    Sample { size: size_of::<Sample>() as u32, slots, raw_metrics: metrics, base, ..Sample::default() }
}

/// A thousand executions of 10,000 slots each, all retiring, with so many slots between them that do not, late in a
/// window.
fn chain(gap: u64) -> Sum {
    let mut sum = Sum::default();
    let (mut slots, mut retired) = (5_000_000, 5_000_000);
    let read = |slots: u64, retired: u64| sample(slots, retired * 255 / slots);
    for _ in 0..1000 {
        let from = read(slots, retired);
        (slots, retired) = (slots + 10_000, retired + 10_000);
        sum.add(&from, &read(slots, retired)).unwrap();
        slots += gap;
    }
    sum
}

#[test]
fn executions_that_follow_each_other_closely_are_as_exact_as_one() {
    for gap in [0, 60, 400] {
        let (sum, l1) = (chain(gap), chain(gap).l1().unwrap());
        assert_eq!((sum.executions, sum.measured, l1.slots), (1000, 1000, 10_000_000));
        // readings at 5 M and 15 M slots, and what came between; the edges, but those that are shared
        let slots = 20_000_000.0 / 255.0 + (999 * gap) as f64;
        let edges = if gap == 0 { 640.0 } else { 640_000.0 };
        let most = (slots + edges) / 1e7 + 1e-5 + (999 * gap) as f64 * 2.0 / 255.0 / 1e7;
        assert!(l1.error <= most, "{gap}: {} > {most}", l1.error);
        assert!((l1.retiring - 1.0).abs() <= l1.error, "{gap}: {} {}", l1.retiring, l1.error);
    }
    let far = chain(1_000_000).l1().unwrap();
    assert!(far.error > 0.5, "each by itself: {}", far.error);
}

#[test]
fn readings_that_close_their_windows_have_no_edges_to_share() {
    let mut sum = Sum::default();
    let mut own = 0.0;
    let read = |n: u64| Sample {
        slots: 10_000 * n,
        slots_before: 10_000 * n,
        base: Base { error: 400 * n, category: [10_000 * n as i64, 0, 0, 0, 0, 0, 0], ..sample(0, 0).base },
        ..sample(0, 0)
    };
    for turn in 0..100 {
        sum.add(&read(turn), &read(turn + 1)).unwrap();
        own += crate::decode_l1(Some(&read(turn)), &read(turn + 1)).unwrap().error / 100.0;
    }
    assert!((sum.l1().unwrap().error - own).abs() < 1e-6, "{} {own}", sum.l1().unwrap().error);
}

#[test]
fn what_was_not_measured_is_a_sample() {
    let mut sum = Sum::default();
    assert_eq!(sum.l1().unwrap_err().code(), TD_ENOTCOUNTING);
    assert_eq!(
        sum.ends(sum.begun(Increments::NONE), &sample(5, 5).slots_only()).unwrap_err().code(),
        -libc::EINVAL
    );
    assert_eq!(sum.unbalanced, 1);
    for turn in 0..1000_u64 {
        // one of two kinds of execution: 20 or 60 of 255 retire
        let retiring = if turn % 2 == 0 { 51 } else { 153 };
        let (from, to) = (sample(0, 0), sample(100_000, retiring));
        if turn % 5 == 0 {
            sum.begins_measured(from, true);
            sum.ends_measured(sum.begun(Increments::NONE), &to).unwrap();
        } else {
            sum.begins(from.slots_only());
            sum.ends(sum.begun(Increments::NONE), &to.slots_only()).unwrap();
        }
    }
    let l1 = sum.l1().unwrap();
    assert_eq!((sum.executions, sum.measured, l1.slots), (1000, 200, 100_000_000));
    assert!(l1.flags & TD_SAMPLE_SPARSE != 0);
    assert!((l1.retiring - 0.4).abs() < 1e-6, "{}", l1.retiring);
    // the standard deviation of 0.2 and 0.6 is 0.2
    let expected = 4.0 * 0.2 / 200f64.sqrt() * 0.8f64.sqrt() + (100_000.0 / 255.0 + 320.0) / 100_000.0;
    assert!((l1.error - expected).abs() < 0.001, "{} {expected}", l1.error);
}

/// A few executions are a thousand times as long as the rest, and of another mix. The bound holds the truth, whether the sample
/// has some of them or none.
#[test]
fn long_executions_among_short_ones_are_in_the_bound() {
    for (long, first_measured) in [(6, 0), (6, 1), (6, 3), (40, 2), (300, 9)] {
        let mut sum = Sum::default();
        let mut retired = 0.0;
        let mut add = |sum: &mut Sum, slots: u64, retiring: u64, measured: bool| {
            let (from, to) = (sample(0, 0), sample(slots, retiring));
            if measured {
                sum.begins_measured(from, true);
                sum.ends_measured(sum.begun(Increments::NONE), &to).unwrap();
            } else {
                sum.begins(from.slots_only());
                sum.ends(sum.begun(Increments::NONE), &to.slots_only()).unwrap();
            }
            retired += slots as f64 * retiring as f64 / 255.0;
        };
        for turn in 0..5000 {
            add(&mut sum, [48_000, 72_000][turn / 5 % 2], 51, turn % 5 == 0);
        }
        for turn in 0..long {
            // the last ones differ from those that are measured, too
            add(&mut sum, 60_000_000, if turn < long / 2 { 204 } else { 20 }, turn < first_measured);
        }
        let l1 = sum.l1().unwrap();
        let off = (l1.retiring - retired / sum.slots as f64).abs();
        assert!(off <= l1.error, "{long} {first_measured}: off by {off}, error {}", l1.error);
        assert!(off > 0.05, "{long} {first_measured}: {off} tells nothing");
    }
}

#[test]
fn garbage_is_no_sum() {
    let good = chain(60);
    assert!(good.l2().is_ok());
    let spoil: [fn(&mut Sum); 6] = [
        |sum| sum.size = 7,
        |sum| sum.measured = sum.executions + 1,
        |sum| sum.measured_slots = sum.slots + 1,
        |sum| sum.closed.category[4] = f64::NAN,
        |sum| sum.together.rounding = f64::NAN,
        |sum| sum.apart.edges = -1.0,
    ];
    for spoil in spoil {
        let mut bad = good;
        spoil(&mut bad);
        assert_eq!(bad.l1().unwrap_err().code(), -libc::EINVAL);
        assert_eq!(bad.l2().unwrap_err().code(), -libc::EINVAL);
    }
}

#[test]
fn numbers_that_are_full_stay_so() {
    let mut sum = Sum { executions: u64::MAX, unbalanced: u64::MAX, slots: u64::MAX - 1, ..Sum::default() };
    sum.add(&sample(0, 0), &sample(1000, 51)).unwrap();
    assert!(sum.ends(sum.begun(Increments::NONE), &sample(5, 5).slots_only()).is_err());
    assert_eq!((sum.executions, sum.unbalanced, sum.slots), (u64::MAX, u64::MAX, u64::MAX));
    assert!(sum.l1().is_ok());
}

#[test]
fn the_choice_is_fair() {
    let mut sum = Sum { executions: 1000, ..Sum::default() };
    for one_in in [1, 2, 7, 100] {
        let mut waited = [0; 2];
        for _ in 0..20_000 {
            sum.choose_next(one_in);
            assert!((0..2 * one_in - 1).contains(&sum.wait));
            waited = [waited[0] + 1 + sum.wait, waited[1] + sum.wait % 2];
        }
        let mean = waited[0] as f64 / 20_000.0;
        assert!((mean - one_in as f64).abs() < 0.02 * one_in as f64 + 0.02, "{one_in}: {mean}");
    }
}

#[test]
fn the_first_executions_tell_how_often_the_next_can_be_measured() {
    let mut sum = Sum::default();
    for executions in [0, 1, 2, 10] {
        sum.executions = executions;
        for _ in 0..100 {
            sum.choose_next(u64::MAX);
            assert!((0..2 * executions.max(1) - 1).contains(&sum.wait), "{executions}: {}", sum.wait);
        }
    }
}

/// The nodes of a sum are what its levels are, within their bound, for whatever samples, measured all or as a random sample.
#[test]
fn the_tree_of_a_sum_is_its_levels() {
    let mut compared = [0; 2];
    let mut pairs = pairs();
    for turn in 0..2_000_u64 {
        let mut sum = Sum::default();
        for (from, to) in pairs.by_ref().take(12) {
            let (from, to) = (Sample { flags: 0, ..from }, Sample { flags: 0, ..to });
            if sum.add(&from, &to).is_ok() && turn % 2 == 0 {
                // another one, of which only the slots are known
                sum.executions += 1;
                sum.slots = sum.slots.saturating_add((to.slots - from.slots) / 2);
            }
        }
        let (Ok(l1), Ok(nodes)) = (sum.l1(), sum.decode_tree()) else { continue };
        let l2 = sum.l2().ok();
        let two = l2.map_or([0.0; 8], |l2| l2.shares());
        for (place, (node, share)) in nodes.iter().zip(l1.shares().into_iter().chain(two)).enumerate() {
            if place >= 4 && l2.is_none() {
                assert!(node.measured == 0 && node.value.is_nan());
                continue;
            }
            let error = if place < 4 { l1.error } else { l2.unwrap().error };
            assert_eq!((node.value.to_bits(), node.whole, node.flags), (share.to_bits(), l1.slots, l1.flags));
            assert!(node.high - node.value <= error + 1e-9, "{node:?} {error}");
            assert!(node.value - node.low <= error + 1e-9, "{node:?} {error}");
            compared[usize::from(l1.flags & TD_SAMPLE_SPARSE != 0)] += 1;
        }
        assert_eq!(nodes.len(), 12);
    }
    assert!(compared.iter().all(|count| *count > 5_000), "{compared:?}");
}

/// Executions on the made-up CPU of `model::made_up`, one after another, whose counters count so much each.
fn made_up(executions: u64, each: [u64; 8]) -> Sum {
    let model = model::of_core("made-up core").unwrap();
    let base = Base::of_handle(1, model, 3);
    let mut to = Sample { size: size_of::<Sample>() as u32, base, ..Sample::default() };
    let mut sum = Sum::default();
    for _ in 0..executions {
        // what runs between them has another mix
        let mut from = to;
        from.counter[..8].iter_mut().for_each(|count| *count += 7);
        from.slots += 28;
        to = from;
        to.counter[..8].iter_mut().zip(each).for_each(|(count, more)| *count += more);
        to.slots += 4 * each[0];
        (from.slots_before, to.slots_before) = (from.slots, to.slots);
        sum.add(&from, &to).unwrap();
    }
    sum
}

const EACH: [u64; 8] = [1_000_000, 1_000_000, 400_000, 2_400_000, 600_000, 450_000, 300_000, 200_000];
const TRUTH: [f64; 8] = [0.25, 0.05, 0.1, 0.6, 0.45, 0.15, 0.1, 0.2];

#[test]
fn plain_counters_add_up_exactly_in_a_tree_of_three_levels() {
    let sum = made_up(100, EACH);
    let nodes = sum.decode_tree().unwrap();
    for (node, truth) in nodes.iter().zip(TRUTH) {
        // all that is not exact is the skid of both readings; ratios of counters have that of each
        let skid = skid_of_counters(0, 8) as f64 / 4_000_000.0;
        let most = if node.level == 1 { 2.0 * skid + 1e-6 } else { 20.0 * skid };
        assert!((node.value - truth).abs() < 1e-9 && node.high - node.low < most, "{node:?} {truth}");
        assert!(node.low <= truth && truth <= node.high && node.measured == 1, "{node:?} {truth}");
        assert_eq!(node.whole, if node.level == 3 { 100_000_000 } else { 400_000_000 });
    }
    let l1 = sum.l1().unwrap();
    assert_eq!((nodes.len(), l1.slots), (8, 400_000_000));
    assert!(
        (l1.bad_speculation - 0.05).abs() < 1e-9 && l1.error < 4.0 * skid_of_counters(0, 8) as f64 / 4e6,
        "{l1:?}"
    );
    assert_eq!(sum.l2().unwrap_err().code(), -libc::ENOTSUP, "its tree has not all of td_l2");
}

#[test]
fn executions_that_plain_counters_did_not_measure_may_have_been_anything() {
    let mut sum = made_up(100, EACH);
    (sum.executions, sum.slots) = (125, 500_000_000);
    for (node, truth) in sum.decode_tree().unwrap().iter().zip(TRUTH) {
        assert!(node.flags & TD_SAMPLE_SPARSE != 0 && (node.value - truth).abs() < 1e-9);
        // a fifth of all slots, to either side; of quotients of counters nothing is known
        let (low, high) = match node.level {
            1 => ((truth - 0.2).max(0.0), truth + 0.2),
            _ if node.id == crate::TD_NODE_CORE_BOUND => (0.0, 0.8), // all of backend bound
            _ => (0.0, 1.0),
        };
        assert!(node.low <= low + 1e-6 && node.high >= high.min(1.0) - 1e-6, "{node:?} {low} {high}");
        let skid = skid_of_counters(0, 8) as f64 / 4_000_000.0;
        assert!(node.level > 1 || node.high - node.low < 0.400_01 + 2.0 * skid, "{node:?}");
    }
}

#[test]
fn a_sum_is_of_one_kind_of_core() {
    let mut sum = chain(60);
    let to = made_up(1, EACH).last;
    let from = Sample { slots: to.slots - 4, slots_before: to.slots - 4, ..to };
    assert!(crate::decode_tree(Some(&from), &to).is_ok());
    let before = sum;
    let refused = sum.add(&from, &to).unwrap_err();
    assert!(refused.code() == -libc::EINVAL && refused.to_string().contains("another kind of core"));
    assert_eq!(sum, before);
}

/// What a file keeps of a sum is all that its results follow from, on CPUs of either kind.
#[test]
fn a_sum_by_inputs_has_the_results_of_the_sum() {
    let mut sparse = chain(400);
    (sparse.executions, sparse.slots) = (3000, 40_000_000);
    let level_1 = Sum { level: 1, ..chain(60) };
    for (sum, core) in [
        (chain(0), "simulated core"),
        (sparse, "simulated core"),
        (level_1, "simulated core"),
        (made_up(100, EACH), "made-up core"),
        (Sum { level: 2, ..made_up(7, EACH) }, "made-up core"),
    ] {
        let of_inputs =
            |sum: &Sum, core| Sum::of_inputs(core, sum.level, sum.measured, sum.edges(), sum.inputs());
        let Sum { flags, executions, slots, measured, measured_slots, xx, .. } = sum;
        let kept =
            Sum { flags, executions, slots, measured, measured_slots, xx, ..of_inputs(&sum, core).unwrap() };
        let nodes = |sum: &Sum| format!("{:?}", sum.decode_tree().unwrap()); // (NaN is NaN)
        assert_eq!(nodes(&sum), nodes(&kept));
        assert_eq!((sum.l1(), sum.l2()), (kept.l1(), kept.l2()));
        assert!(of_inputs(&sum, "Tremont").is_none(), "that core's tree has other inputs");
        assert!(of_inputs(&sum, "of another version").is_none());
        let spoil = |input: Option<InputSum>| input.map(|input| InputSum { rounding: f64::NAN, ..input });
        assert!(Sum::of_inputs(core, sum.level, 0, sum.edges(), sum.inputs().map(spoil)).is_none());
    }
    assert!(Sum::default().inputs().all(|input| input.is_none()));
}

/// Executions that are counted steadily, each of 3,000 slots of the region's own and what the library adds: 600 slots of which none
/// retires, or of every second one all. Before one in eight an empty one has the same.
fn steady(executions: u64, mixed: bool) -> Sum {
    let model = model::of_core("Golden or Raptor Cove, by counters").unwrap();
    let base = Base::of_handle(1, model, 2);
    let mut sum = Sum { level: 2, last: Sample { base, ..Sample::default() }, ..Sum::default() };
    let mut random = 1_u64;
    for _ in 0..executions {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut edges = Increments { slots: 600, ns: 100, counter: [0; 15] };
        edges.counter[0] = if mixed && random >> 63 != 0 { 600 } else { 0 };
        edges.counter[1] = 600 - edges.counter[0];
        let mut one = edges;
        one.slots += 3000;
        one.counter[0] += 2400;
        one.counter[2] += 600;
        if random >> 40 & 7 == 0 {
            sum.add_empty(&[edges; 2]);
        }
        sum.add_one_counted(&one, 7);
    }
    sum
}

#[test]
fn the_librarys_own_slots_are_subtracted() {
    for mixed in [false, true] {
        let sum = steady(20_000, mixed);
        let l1 = sum.l1().unwrap();
        let least = if mixed { 0.005 } else { 0.0 };
        assert_eq!((l1.slots, sum.slots), (60_000_000, 72_000_000));
        assert!((l1.retiring - 0.8).abs() < l1.error, "{l1:?}");
        assert!((l1.frontend_bound - 0.2).abs() < l1.error && l1.backend_bound < l1.error, "{l1:?}");
        // of retiring, or of fetch latency, which counts six slots at once, and of the slots
        assert!(l1.error > least && l1.error < least + 0.02, "{mixed}: {l1:?}");
        assert_eq!(sum.l2().unwrap().slots, 60_000_000);
    }
}

#[test]
fn few_empty_executions_and_spoiled_ones_subtract_nothing() {
    let skid = skid_of_counters(0, 8) as f64 / 3600.0;
    let counted = |sum: &Sum| (sum.without_edges() == *sum, sum.l1().unwrap());
    let (as_counted, l1) = counted(&steady(30, false));
    assert!(as_counted && l1.slots == 30 * 3600 && l1.error >= skid - 1e-6, "{l1:?}");
    let mut sum = Sum::default();
    (sum.level, sum.last) = (2, steady(1, false).last);
    (0..100).for_each(|_| sum.add_empty(&[Increments { slots: 1 << 17, ..Increments::default() }; 2]));
    assert_eq!(sum.empties(), Empties::default(), "a signal handler was in them");
    // they differ so much that the skid is less
    let mut wild = steady(2000, false);
    (0..4).for_each(|_| wild.add_empty(&[Increments { slots: 60_000, ..Increments::default() }; 2]));
    assert!(wild.empties().weight > 100.0 && counted(&wild).0);
    // and all that is counted is the library's
    let mut nothing = Sum { level: 2, last: sum.last, ..Sum::default() };
    let edges = Increments { slots: 600, ..Increments::default() };
    for _ in 0..1000 {
        nothing.add_empty(&[edges; 2]);
        nothing.add_one_counted(&edges, 7);
    }
    let l1 = nothing.l1().unwrap();
    assert!(l1.slots == 1 && (l1.error - 1.0).abs() < 1e-6, "{l1:?}");
}

#[test]
fn executions_measured_by_whole_readings_keep_their_edges() {
    let mut sum = steady(20_000, false);
    let from = Sample { size: size_of::<Sample>() as u32, ..sum.last };
    let to = Sample { slots: 10_000, slots_before: 10_000, ..from };
    sum.add(&from, &to).unwrap();
    assert_eq!(sum.l1().unwrap().slots, 60_010_000);
    let before = steady(20_000, false).without_edges().edges();
    assert!((sum.without_edges().edges() - before - skid_of_counters(0, 8) as f64).abs() < 1.0);
}

#[test]
fn one_in_many_steady_executions_has_an_empty_one_before_it() {
    for (weight, one_in) in [(0.0, 16), (64.0, 16), (68.0, 32), (1000.0, 256), (1e9, 512)] {
        let mut sum = steady(1, false);
        sum.set_empties(&Empties { weight, ..Empties::default() });
        let mut waited = 0;
        for _ in 0..2000 {
            sum.choose_next_empty();
            while !sum.is_empty_due() {
                assert!(sum.was_due() && !sum.begins_unmeasured());
                waited += 1;
            }
            // then the steady begin goes the other way, and nothing has happened
            assert!(sum.begins_unmeasured() && !sum.waits());
            assert!(!sum.has_begun_unmeasured(false) && sum.is_empty_due() && sum.waits());
            assert!(sum.is_due() && sum.is_empty_due(), "one that goes on by registers is measured");
        }
        let mean = f64::from(waited) / 2000.0;
        assert!((mean / f64::from(one_in) - 1.0).abs() < 0.07, "{weight}: {mean}");
    }
}

#[test]
fn pairs_of_empty_executions_that_differ_are_in_the_bound() {
    let edges = |slots: u64| {
        let mut one = Increments { slots, ..Increments::default() };
        one.counter[1] = 600;
        one
    };
    let (alike, apart) = ([edges(600); 2], [edges(690), edges(600)]);
    let error_with = |pair: &[Increments; 2]| {
        let mut sum = steady(20_000, false);
        sum.set_empties(&Empties::default());
        (0..4000).for_each(|_| sum.add_empty(pair));
        let l1 = sum.l1().unwrap();
        assert_eq!(l1.slots, 60_000_000, "the second is what is subtracted");
        l1.error
    };
    let more = error_with(&apart) - error_with(&alike);
    assert!((more - 90.0 / 3000.0).abs() < 1e-6, "{more}");
}

#[test]
fn later_empty_executions_have_the_weight_of_those_that_they_stand_for() {
    let mut sum = steady(1, false);
    sum.set_empties(&Empties::default());
    // so many as there are before so many executions, at 600 slots; and then as many executions again, at 1,200
    let mut executions = 0;
    while executions < 1 << 17 {
        let slots = if executions < 1 << 16 { 600 } else { 1200 };
        executions += sum.empties().one_in();
        sum.add_empty(&[Increments { slots, ..Increments::default() }; 2]);
    }
    let Empties { weight, slots, .. } = sum.empties();
    assert!((slots / weight - 900.0).abs() < 10.0, "{}", slots / weight);
    assert!((weight * 16.0 / executions as f64 - 1.0).abs() < 0.02);
}
