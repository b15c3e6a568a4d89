//! What corrects the sources of level 1: counted, not counted, and counted by others of the same work.

use super::*;

/// Of 600,000 slots 300,000 retired, 60,000 had the backend, and 180,000 the frontend, of which 90,000 were latency and 30,000 dropped.
#[test]
fn frontend_bound_and_fetch_latency_are_without_what_the_core_dropped() {
    let counts = [300_000, 60_000, 180_000, 30_000, 100_000, 50_000, 15_000, 30_000];
    let published = slots_of(of_core("Golden or Raptor Cove, by counters"), 600_000, &counts);
    let near = |share: f64, slots: f64| assert!((share - slots).abs() < 1.0, "{share} {slots}");
    near(published(TD_NODE_FRONTEND_BOUND), 150_000.0);
    near(published(TD_NODE_FETCH_LATENCY), 60_000.0);
    near(published(TD_NODE_FETCH_BANDWIDTH), 90_000.0);
    near(published(TD_NODE_BAD_SPECULATION), 90_000.0);
    near(published(TD_NODE_MACHINE_CLEARS), 40_000.0);
    near(published(TD_NODE_BACKEND_BOUND), 60_000.0);
    let mut to = counted_by_read(of_core("Golden or Raptor Cove, by counters"), 600_000, &counts);
    to.base.level = 2;
    let bare = decode_tree_bare(None, &to).unwrap();
    let share = |id| bare.iter().find(|node| node.id == id).unwrap().value * 600_000.0;
    near(share(TD_NODE_FRONTEND_BOUND), 180_000.0);
    near(share(TD_NODE_BAD_SPECULATION), 60_000.0);
    near(share(TD_NODE_MACHINE_CLEARS), 10_000.0);
}

#[test]
fn intervals_have_what_nothing_counted() {
    let counts = [300_000, 60_000, 180_000, 100_000, 50_000, 15_000, 30_000];
    let nodes = |tree: &Tree| {
        let mut to = counted_by_read(tree, 600_000, &counts);
        to.base.level = 2;
        decode_tree(None, &to).unwrap()
    };
    let (fewer, bare) = (
        nodes(of_core("Golden or Raptor Cove, fewer counters")),
        nodes(of_core("Golden or Raptor Cove, bare counters")),
    );
    // (no more than fetch latency can have)
    let most = bare.iter().find(|node| node.id == TD_NODE_FETCH_LATENCY).unwrap().high;
    assert!(most > 0.15);
    for (fewer, bare) in fewer.iter().zip(&bare) {
        let [less, more] = match fewer.id {
            TD_NODE_FRONTEND_BOUND | TD_NODE_FETCH_LATENCY => [most, 0.0],
            TD_NODE_BAD_SPECULATION | TD_NODE_MACHINE_CLEARS => [0.0, most],
            _ => [0.0; 2],
        };
        let ends = [(bare.low - less).max(0.0), (bare.high + more).min(1.0)];
        let off = [fewer.low - ends[0], fewer.high - ends[1]].map(f64::abs); // (ends are rounded to whole slots)
        assert!(
            fewer.value == bare.value && off.iter().all(|off| off * 600_000.0 < 1.0),
            "{fewer:?} {bare:?}"
        );
    }
}

/// What others have counted in more than was measured here: no node gives more than it has, and all nodes divide all slots.
#[test]
fn values_divide_all_slots_whatever_others_have_counted() {
    let mut fewer = Sum::default();
    let counts = [300_000, 60_000, 180_000, 100_000, 50_000, 15_000, 30_000];
    let mut to = counted_by_read(of_core("Golden or Raptor Cove, fewer counters"), 600_000, &counts);
    let mut from = counted_by_read(of_core("Golden or Raptor Cove, fewer counters"), 0, &[]);
    (from.base.level, to.base.level) = (2, 2);
    fewer.add(&from, &to).unwrap();
    for seen in [0.0, 50_000.0, 95_000.0, 500_000.0] {
        let moved = MovedSlots { counted: [seen, 0.0], off: 9_000.0, rest: 0.0 };
        let nodes = fewer.decode_tree_beside(&moved).unwrap();
        let share = |id| nodes.iter().find(|node| node.id == id).unwrap().value;
        let sum = |ids: [u32; 4]| ids.map(share).iter().sum::<f64>();
        let all = [TD_NODE_RETIRING, TD_NODE_BAD_SPECULATION, TD_NODE_FRONTEND_BOUND, TD_NODE_BACKEND_BOUND];
        assert!((sum(all) - 1.0).abs() < 1e-9, "{seen}: {nodes:?}");
        let children = share(TD_NODE_FETCH_LATENCY) + share(TD_NODE_FETCH_BANDWIDTH);
        assert!((children - share(TD_NODE_FRONTEND_BOUND)).abs() < 1e-9, "{seen}: {nodes:?}");
        assert!(nodes.iter().all(|node| node.low <= node.value && node.value <= node.high), "{nodes:?}");
    }
}

/// A stretch in which nothing corrected level 1 adds nothing to what corrects it, whatever the sample holds.
#[test]
fn what_was_not_counted_is_not_added() {
    let mut sum = Sum::default();
    let mut from = counted_by_read(of_core("Golden or Raptor Cove, by counters"), 0, &[]);
    let mut to =
        counted_by_read(of_core("Golden or Raptor Cove, by counters"), 600_000, &[300_000, 60_000, 180_000]);
    (from.counter[3], to.counter[3]) = (5, u64::MAX - 3);
    (from.base.level, to.base.level, to.flags) = (1, 1, TD_SAMPLE_UNCORRECTED);
    sum.add(&from, &to).unwrap();
    assert_eq!(sum.counted[..4], [300_000, 60_000, 180_000, 0]);
}

/// Of 600,000 slots others have seen 500,000, and counted 25,000 of these that the core dropped.
#[test]
fn what_others_have_counted_leaves_the_rest_in_the_intervals() {
    let sum = |tree: &'static Tree, slots: u64, counts: &[u64]| {
        let mut sum = Sum::default();
        sum.add(&counted_by_read(tree, 0, &[]), &counted_by_read(tree, slots, counts)).unwrap();
        sum
    };
    let fewer = sum(of_core("Golden or Raptor Cove, fewer counters"), 600_000, &[300_000, 60_000, 180_000]);
    let all =
        sum(of_core("Golden or Raptor Cove, by counters"), 500_000, &[250_000, 50_000, 150_000, 25_000]);
    assert!(fewer.moved().is_none());
    let (moved, seen) = all.moved().unwrap();
    assert!((moved.counted, seen) == ([25_000.0, 0.0], 500_000) && moved.off < 2_000.0, "{moved:?}");
    let mut own_work = Sum::default();
    let mut to = counted_by_read(
        of_core("Golden or Raptor Cove, by counters"),
        500_000,
        &[250_000, 50_000, 150_000, 25_000],
    );
    to.base.error += 3_000;
    own_work.add(&counted_by_read(of_core("Golden or Raptor Cove, by counters"), 0, &[]), &to).unwrap();
    assert_eq!(
        own_work.moved().unwrap().0.off,
        moved.off + 3_000.0,
        "the library's own work is as likely of these"
    );
    for rest in [100_000.0, 0.0] {
        let moved = MovedSlots { rest, ..moved };
        let nodes = fewer.decode_tree_beside(&moved).unwrap();
        let (l1, skid) = (fewer.l1_beside(&moved).unwrap(), 2.0 * skid_of_counters(0, 4) as f64);
        for (id, slots, less, more) in [
            (TD_NODE_RETIRING, 300_000.0, 0.0, 0.0),
            (TD_NODE_BAD_SPECULATION, 85_000.0, 0.0, rest),
            (TD_NODE_FRONTEND_BOUND, 155_000.0, rest, 0.0),
            (TD_NODE_BACKEND_BOUND, 60_000.0, 0.0, 0.0),
        ] {
            let node = nodes.iter().find(|node| node.id == id).unwrap();
            assert!((node.value * 600_000.0 - slots).abs() < 1.0, "{node:?}");
            let ends = [(slots - less - node.low * 600_000.0), (node.high * 600_000.0 - slots - more)];
            assert!(ends.iter().all(|end| (0.0..2.0 * skid).contains(end)), "{node:?} {ends:?}");
        }
        assert!((l1.frontend_bound * 600_000.0 - 155_000.0).abs() < 1.0, "{l1:?}");
        assert!((rest..rest + 2.0 * skid).contains(&(l1.error * 600_000.0)), "{l1:?}");
    }
}

/// Ice Lake: of 500,000 slots the core dropped 25,000, and there were 4,000 clears.
#[test]
fn ice_lakes_backend_bound_has_five_slots_for_each_clear() {
    let published = slots_of(
        of_core("Sunny, Willow or Cypress Cove, by counters"),
        500_000,
        &[200_000, 100_000, 100_000, 25_000, 4_000],
    );
    let near = |share: f64, slots: f64| assert!((share - slots).abs() < 1.0, "{share} {slots}");
    near(published(TD_NODE_BACKEND_BOUND), 120_000.0);
    near(published(TD_NODE_FRONTEND_BOUND), 75_000.0);
    near(published(TD_NODE_BAD_SPECULATION), 105_000.0);
    let to = counted_by_read(
        of_core("Sunny, Willow or Cypress Cove, fewer counters"),
        500_000,
        &[200_000, 100_000, 100_000],
    );
    let nodes = decode_tree(None, &to).unwrap();
    let holds = |id, share: f64| {
        let node = nodes.iter().find(|node| node.id == id).unwrap();
        assert!(node.low <= share && share <= node.high, "{node:?} {share}");
    };
    holds(TD_NODE_BACKEND_BOUND, 0.24);
    holds(TD_NODE_FRONTEND_BOUND, 0.15);
    holds(TD_NODE_BAD_SPECULATION, 0.21);
}

/// By registers, with the counter beside them.
#[test]
fn registers_with_a_counter_beside_them_are_the_published_metrics() {
    let row = model::of_core("Golden or Raptor Cove").unwrap();
    let base = Base::of_handle(1 << 32, row, 2);
    let category = Base::keep(&[300_000, 60_000, 180_000, 60_000, 100_000, 50_000, 90_000, 30_000]);
    let base = Base { window: base.first_window().wrapping_add(1), error: 100, category, ..base };
    let (size, slots) = (size_of::<Sample>() as u32, 600_000);
    let mut to = Sample { size, slots, slots_before: slots, base, ..Sample::default() };
    to.counter[0] = 30_000;
    let share = |nodes: &[Node], id| nodes.iter().find(|node| node.id == id).unwrap().value * 600_000.0;
    let published = decode_tree(None, &to).unwrap();
    let bare = decode_tree_bare(None, &to).unwrap();
    for (id, slots, dropped) in [
        (TD_NODE_FRONTEND_BOUND, 180_000.0, -30_000.0),
        (TD_NODE_FETCH_LATENCY, 90_000.0, -30_000.0),
        (TD_NODE_FETCH_BANDWIDTH, 90_000.0, 0.0),
        (TD_NODE_BAD_SPECULATION, 60_000.0, 30_000.0),
        (TD_NODE_MACHINE_CLEARS, 10_000.0, 30_000.0),
        (TD_NODE_BRANCH_MISPREDICTS, 50_000.0, 0.0),
        (TD_NODE_BACKEND_BOUND, 60_000.0, 0.0),
    ] {
        assert!((share(&published, id) - slots - dropped).abs() < 1.0, "{}", share(&published, id));
        assert!((share(&bare, id) - slots).abs() < 1.0, "{}", share(&bare, id));
    }
}
