//! The made-up CPU needs a table and no code, and its intervals hold.

use super::*;

/// What each node of the made-up CPU has, whose counters stand so.
const TRUTH: [f64; 8] = [0.25, 0.05, 0.1, 0.6, 0.45, 0.15, 0.1, 0.2];
const COUNTED: [u64; 8] = [1_000_000, 1_000_000, 400_000, 2_400_000, 600_000, 450_000, 300_000, 200_000];

/// Of the made-up CPU, so much after another.
fn made_up_sample(counter: [u64; 8], last: &Sample) -> Sample {
    let mut sample = Sample {
        size: size_of::<Sample>() as u32,
        base: Base::of_handle(7, model::of_core("made-up core").unwrap(), 3),
        ..*last
    };
    sample.counter[..8].iter_mut().zip(counter).for_each(|(total, more)| *total += more);
    sample.slots = 4 * sample.counter[0];
    sample.slots_before = sample.slots;
    sample
}

fn tree() -> &'static Tree {
    of_core("made-up core")
}

fn made_up(level: u32, span: &Span, from: &Sample, to: &Sample) -> Vec<Node> {
    let mut counted = CountedInputs::new(to.base.model, span);
    count(&mut counted, tree(), span, Some(from), to);
    nodes(tree(), level, &counted, span, |nodes| nodes.collect())
}

#[test]
fn a_cpu_with_plain_counters_and_three_levels_takes_a_table_alone() {
    // before: another mix, which is not in the region
    let from = made_up_sample([1000, 4000, 0, 0, 0, 0, 0, 0], &Sample::default());
    let to = made_up_sample(COUNTED, &from);
    let span = span::span(Some(&from), &to, 1).unwrap();
    assert_eq!(span.rounding, 0.0, "general-purpose counters are exact");

    let nodes = made_up(3, &span, &from, &to);
    for (node, truth) in nodes.iter().zip(TRUTH) {
        assert!((node.value - truth).abs() < 1e-9, "{node:?}, {truth}");
        // all that is not exact is the skid of both readings; ratios of counters have that of each
        let skid = skid_of_counters(0, 8) as f64 / 4_000_000.0;
        let most = if node.level == 1 { 2.0 * skid + 1e-6 } else { 20.0 * skid };
        assert!(node.low <= truth && truth <= node.high && node.high - node.low < most, "{node:?}");
        let whole = if node.unit == TD_UNIT_CLOCKS { 1_000_000 } else { 4_000_000 };
        assert_eq!((node.measured, node.whole), (1, whole));
    }
    assert_eq!(nodes.len(), TRUTH.len());

    let two_levels = made_up(2, &span, &from, &to);
    assert!(two_levels.iter().all(|node| node.measured == u32::from(node.level <= 2)));
    assert_eq!(two_levels[4], nodes[4]);
}

/// Whatever passed at the edges, within what is assumed, each node's truth lies between its ends.
#[test]
fn intervals_hold_on_a_made_up_cpu_whatever_happened_at_the_edges() {
    let from = made_up_sample([0; 8], &Sample::default());
    let counts = COUNTED.map(|count| count / 100);
    let edges = 100;
    let mut widest = 0.0_f64;
    for pattern in 0..3_u32.pow(7) {
        // each counter but that of cycles has what it should, or is off by as much as the edges are, either way
        let mut off = pattern;
        let mut counted = counts;
        for count in &mut counted[1..] {
            *count = *count + u64::from(off % 3) * edges - edges;
            off /= 3;
        }
        // those of slots share what is off: no slot is of two categories
        let of_slots = |counts: [u64; 8]| counts[1..4].iter().sum::<u64>();
        if of_slots(counted).abs_diff(of_slots(counts)) > edges {
            continue;
        }
        let to = made_up_sample(counted, &from);
        let slots = to.slots;
        let span = Span {
            flags: TD_SAMPLE_COARSE_TIME,
            slots,
            category: [0.0; 8],
            rounding: 0.0,
            edges: edges as f64 + 0.5, // (not just at its own end)
            running: 1.0,
            uncounted: 0.0,
            level: to.base.level.into(),
        };
        for (node, truth) in made_up(3, &span, &from, &to).iter().zip(TRUTH) {
            assert!(node.low <= truth + 1e-9 && truth - 1e-9 <= node.high, "{counted:?}: {node:?}, {truth}");
            assert_eq!(node.flags, TD_SAMPLE_COARSE_TIME);
            widest = widest.max(node.high - node.low);
        }
    }
    assert!(widest < 0.1, "{widest}: an interval says something");
}

#[test]
fn what_passed_uncounted_widens_each_node() {
    let from = made_up_sample([0; 8], &Sample::default());
    let to = made_up_sample(COUNTED, &from);
    let span = Span { uncounted: 1e6, running: 0.8, edges: 0.0, ..span::span(Some(&from), &to, 1).unwrap() };
    for node in made_up(3, &span, &from, &to) {
        let whole = node.whole as f64;
        // all that was not counted may have been this, or nothing of it
        let (none, all) = (node.value * whole / (whole + 1e6), (node.value * whole + 1e6) / (whole + 1e6));
        if matches!(node.id, TD_NODE_MEMORY_BOUND | TD_NODE_CORE_BOUND) {
            // (a product and what it leaves: what is counted in it may have been any of it)
            assert!(node.low < none && all < node.high, "{node:?} {none} {all}");
        } else {
            assert!(
                (node.low - none).abs() < 1e-5 && (node.high - all).abs() < 1e-5,
                "{node:?} {none} {all}"
            );
        }
        assert_eq!(node.running, 0.8);
    }
}

#[test]
fn a_counter_that_went_back_or_stood_still_makes_no_number() {
    let from = made_up_sample([1_000_000; 8], &Sample::default());
    let mut to = made_up_sample(COUNTED, &from);
    let span = span::span(Some(&from), &to, 1).unwrap();
    to.counter[7] = 0; // the last two nodes'
    assert_eq!(span::span(Some(&from), &to, 1).err().unwrap().code(), -libc::EINVAL, "the wrong order");
    let measured: Vec<u32> = made_up(3, &span, &from, &to).iter().map(|node| node.measured).collect();
    assert_eq!(measured, [1, 1, 1, 1, 1, 1, 0, 0]);
    to.counter[2] = 0; // one of the roots, which divide all slots
    let measured: Vec<u32> = made_up(3, &span, &from, &to).iter().map(|node| node.measured).collect();
    assert_eq!(measured, [0; 8]);
    to.counter[0] = from.counter[0]; // no cycle passed
    let clocks = made_up(3, &span, &from, &to).into_iter().filter(|node| node.unit == TD_UNIT_CLOCKS);
    assert!(clocks.into_iter().all(|node| node.measured == 0 && node.whole == 0));
}
