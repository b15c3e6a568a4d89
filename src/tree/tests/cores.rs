//! The levels of single cores: nodes derived by hand from the maker's or perf's formulas.

use super::*;

#[test]
fn level_1_of_zen_has_a_fifth_share_and_bad_speculation_the_errors_of_two_counters() {
    // of 600,000 slots: 250,000 operations of which 210,000 retired, 150,000 slots that the frontend left empty and 60,000 of the
    // other thread; so the backend has 600 - 250 - 150 - 60 = 140 thousand
    let to = counted_by_read(of_core("Zen 4"), 600_000, &[210_000, 250_000, 150_000, 60_000]);
    let l1 = decode_l1(None, &to).unwrap();
    let shares = [l1.retiring, l1.bad_speculation, l1.frontend_bound, l1.backend_bound, l1.smt_contention];
    for (share, thousands) in shares.into_iter().zip([210.0, 40.0, 150.0, 140.0, 60.0]) {
        assert!((share - thousands / 600.0).abs() < 1e-9, "{l1:?}");
    }
    // 3,000 slots of own work and 640 of skid, of either counter
    assert!((l1.error - 2.0 * 3_640.0 / 600_000.0).abs() < 1e-6, "{l1:?}");
    let nodes = decode_tree(None, &to).unwrap();
    assert_eq!(nodes.len(), 5);
    assert_eq!((nodes[4].name(), nodes[4].value), ("tma_smt_contention", l1.smt_contention));
    assert_eq!(decode_l2(None, &to).unwrap_err().code(), -libc::ENOTSUP);
    // more retired than were dispatched, by what was in flight when it began
    let to = counted_by_read(of_core("Zen 4"), 600_000, &[251_000, 250_000, 150_000, 60_000]);
    let l1 = decode_l1(None, &to).unwrap();
    assert!(l1.bad_speculation == 0.0 && l1.error > 0.012, "{l1:?}");
}

fn are_slots(found: impl Fn(u32) -> f64, expected: &[(u32, f64)]) {
    for (id, slots) in expected {
        let value = found(*id);
        assert!(
            slots.is_nan() && value.is_nan() || (value - slots).abs() < 1e-3,
            "{id}: {value} for {slots}"
        );
    }
}

#[test]
fn level_3_of_e_cores_is_slots_lost_to_one_cause_each() {
    // of 600,000 slots 240,000 retired, 120,000 were lost in the frontend and 200,000 in the backend: 40,000 by bad speculation
    const NAN: f64 = f64::NAN;
    let of = |tree, others: &[u64]| slots_of(tree, 600_000, &[&[240_000, 120_000, 200_000], others].concat());
    let level_1 = [(TD_NODE_RETIRING, 240_000.0), (TD_NODE_BAD_SPECULATION, 40_000.0)];
    let fetch = [(TD_NODE_IFETCH_LATENCY, 70_000.0), (TD_NODE_IFETCH_BANDWIDTH, 50_000.0)];
    let latency = of(of_core("Skymont, ifetch latency"), &[70_000, 30_000, 20_000, 13_000, 7_000]);
    are_slots(&latency, &level_1);
    are_slots(&latency, &fetch);
    let first = [(ICACHE_MISSES.id, 30_000.0), (ITLB_MISSES.id, 20_000.0)];
    are_slots(&latency, &first);
    are_slots(&latency, &[(BRANCH_DETECT.id, 13_000.0), (BRANCH_RESTEER.id, 7_000.0)]);
    are_slots(&latency, &[(TD_NODE_CORE_BOUND, NAN), (TD_NODE_MACHINE_CLEARS, NAN)]);
    let latency = of(of_core("Gracemont, ifetch latency"), &[70_000, 30_000, 20_000]);
    are_slots(&latency, &first);
    are_slots(&latency, &[(BRANCH_DETECT.id, NAN), (BRANCH_RESTEER.id, NAN)]);
    let bandwidth = of(of_core("Skymont, ifetch bandwidth"), &[70_000, 20_000, 15_000, 10_000, 5_000]);
    are_slots(&bandwidth, &fetch);
    let first = [(CISC.id, 20_000.0), (DECODE.id, 15_000.0)];
    are_slots(&bandwidth, &first);
    are_slots(&bandwidth, &[(PREDECODE.id, 10_000.0), (OTHER_FB.id, 5_000.0)]);
    are_slots(of(of_core("Gracemont, ifetch bandwidth"), &[70_000, 20_000, 15_000]), &first);
    let clears = of(of_core("Skymont, machine clears"), &[12_000, 9_000, 3_000]);
    are_slots(&clears, &[(TD_NODE_MACHINE_CLEARS, 12_000.0), (TD_NODE_BRANCH_MISPREDICTS, NAN)]);
    are_slots(&clears, &[(NUKE.id, 9_000.0), (FAST_NUKE.id, 3_000.0)]);
    let back = [(TD_NODE_CORE_BOUND, 60_000.0), (TD_NODE_RESOURCE_BOUND, 140_000.0)];
    let core = of(of_core("Gracemont, core bound"), &[60_000, 14_000, 25_000]);
    are_slots(&core, &back);
    are_slots(&core, &[(ALLOCATION_RESTRICTION.id, 60_000.0)]);
    are_slots(&core, &[(NON_MEM_SCHEDULER.id, 14_000.0), (REGISTER.id, 25_000.0)]);
    are_slots(of(of_core("Skymont, core bound"), &[60_000, 11_000]), &[(SERIALIZATION.id, 11_000.0)]);
    let resource = of(of_core("Skymont, resource bound"), &[60_000, 50_000, 40_000, 14_000, 25_000]);
    are_slots(&resource, &back);
    let first = [(MEM_SCHEDULER.id, 50_000.0), (REORDER_BUFFER.id, 40_000.0)];
    are_slots(&resource, &first);
    are_slots(&resource, &[(NON_MEM_SCHEDULER.id, 14_000.0), (REGISTER.id, 25_000.0)]);
    are_slots(&resource, &[(SERIALIZATION.id, NAN)]);
    are_slots(of(of_core("Gracemont, resource bound"), &[60_000, 50_000, 40_000]), &first);
    // a cause has no more slots than what it is a part of
    are_slots(of(of_core("Skymont, machine clears"), &[12_000, 13_000, 0]), &[(NUKE.id, 12_000.0)]);
}

#[test]
fn heavy_operations_of_skylake_are_slots_that_retired_besides_one_for_each_instruction() {
    // of 400,000 slots 210,000 retired; two of the 190,000 instructions shared a slot 30,000 times
    let counts = [210_000, 230_000, 80_000, 5_000, 30_000, 190_000];
    let retiring = slots_of(of_core("Skylake or Cascade Lake, retiring"), 400_000, &counts);
    are_slots(&retiring, &[(TD_NODE_RETIRING, 210_000.0), (TD_NODE_BAD_SPECULATION, 40_000.0)]);
    are_slots(&retiring, &[(TD_NODE_HEAVY_OPERATIONS, 50_000.0), (TD_NODE_LIGHT_OPERATIONS, 160_000.0)]);
    are_slots(&retiring, &[(TD_NODE_FETCH_LATENCY, f64::NAN), (TD_NODE_MEMORY_BOUND, f64::NAN)]);
    // more instructions than operations, by what was in flight at the edges
    let retiring = slots_of(
        of_core("Skylake or Cascade Lake, retiring"),
        400_000,
        &[210_000, 230_000, 80_000, 5_000, 0, 210_500],
    );
    are_slots(&retiring, &[(TD_NODE_HEAVY_OPERATIONS, 0.0), (TD_NODE_LIGHT_OPERATIONS, 210_000.0)]);
}

#[test]
fn level_3_of_hip08_is_what_the_makers_formulas_make_of_its_counts() {
    // of 4,000,000 slots, of 1,000,000 cycles, 1,600,000 instructions retired of 2,000,000, 800,000 were bubbles of the frontend: the
    // backend has 1,200,000
    let of = |tree, others: &[u64]| {
        slots_of(tree, 4_000_000, &[&[1_600_000, 2_000_000, 800_000], others].concat())
    };
    // 100,000 cycles of latency; 2,000 lookups of the TLB of which 300 missed, 4,000 of the cache of which 100 did: 55,500 and 68,500
    // cycles; 5 for each of 3,000 mispredicts, 1,000 machine clears and 400 of the static predictor
    let frontend = of(of_core("hip08, fetch latency"), &[100_000, 2_000, 300, 4_000, 100, 3_000, 1_000, 400]);
    are_slots(&frontend, &[(TD_NODE_FETCH_LATENCY, 400_000.0), (TD_NODE_FETCH_BANDWIDTH, 400_000.0)]);
    are_slots(&frontend, &[(IDLE_BY_ITLB_MISS.id, 222_000.0), (IDLE_BY_ICACHE_MISS.id, 274_000.0)]);
    are_slots(&frontend, &[(BP_MISP_FLUSH.id, 60_000.0), (OOO_FLUSH.id, 20_000.0)]);
    are_slots(&frontend, &[(SP_FLUSH.id, 8_000.0), (TD_NODE_MEMORY_BOUND, f64::NAN)]);
    // 400,000 slots of bad speculation: 30,000 mispredicts and 10,000 machine clears. Of the former 6,000 were indirect, 3,000 and 1,500
    // calls, 7,500 returns; of the latter 4,000 nukes
    let speculation =
        of(of_core("hip08, bad speculation"), &[30_000, 10_000, 6_000, 3_000, 1_500, 7_500, 4_000]);
    are_slots(&speculation, &[(TD_NODE_BRANCH_MISPREDICTS, 300_000.0), (TD_NODE_MACHINE_CLEARS, 100_000.0)]);
    are_slots(&speculation, &[(INDIRECT_BRANCH.id, 60_000.0), (PUSH_BRANCH.id, 45_000.0)]);
    are_slots(&speculation, &[(POP_BRANCH.id, 75_000.0), (OTHER_BRANCH.id, 120_000.0)]);
    are_slots(&speculation, &[(NUKE_FLUSH.id, 40_000.0), (OTHER_FLUSH.id, 60_000.0)]);
    // of 250,000 cycles of stalls loads had 120,000 and stores 40,000; the divider 20,000, the FSU 30,000; 70,000 of those of loads past the
    // first cache, 45,000 past the second
    let backend =
        of(of_core("hip08, backend bound"), &[250_000, 120_000, 40_000, 20_000, 30_000, 70_000, 45_000]);
    are_slots(&backend, &[(TD_NODE_MEMORY_BOUND, 640_000.0), (TD_NODE_CORE_BOUND, 360_000.0)]);
    are_slots(&backend, &[(L1_BOUND.id, 200_000.0), (L2_BOUND.id, 100_000.0)]);
    are_slots(&backend, &[(MEM_BOUND.id, 180_000.0), (STORE_BOUND.id, 160_000.0)]);
    are_slots(&backend, &[(DIVIDER.id, 80_000.0), (FSU_STALL.id, 120_000.0)]);
    are_slots(&backend, &[(EXE_PORTS_UTIL.id, 160_000.0), (TD_NODE_FETCH_LATENCY, f64::NAN)]);
    // the stalls are 1,000,000 slots of the backend's
    let resource =
        of(of_core("hip08, resource bound"), &[250_000, 5_000, 20_000, 1_000, 2_000, 4_000, 10_000, 3_000]);
    are_slots(&resource, &[(TD_NODE_RESOURCE_BOUND, 200_000.0), (TD_NODE_MEMORY_BOUND, f64::NAN)]);
    are_slots(&resource, &[(SYNC_STALL.id, 20_000.0), (ROB_STALL.id, 80_000.0)]);
    are_slots(&resource, &[(PTAG_STALL.id, 28_000.0), (SAVEOPQ_STALL.id, 40_000.0)]);
    are_slots(&resource, &[(PC_BUFFER_STALL.id, 12_000.0)]);
}

#[test]
fn level_2_of_zen_is_a_pair_below_one_root_and_the_others_are_not_measured() {
    // the region of above, of 100,000 cycles; of the slots that retired 30,000 were microcode's, of those that the frontend left
    // empty all six of 15,000 cycles; 600 mispredicts and 200 restarts; of 50,000 cycles without retirement for want of results
    // 20,000 waited for a load. (Where the other thread's slots are not counted they are the backend's: 200,000.)
    let of = |tree, fourth: &[u64]| {
        let mut to = counted_by_read(tree, 600_000, &[&[210_000, 250_000, 150_000], fourth].concat());
        to.base.level = 2;
        let nodes = decode_tree(None, &to).unwrap();
        let unmeasured = nodes.iter().filter(|node| node.level == 2 && node.measured == 0);
        assert!(unmeasured.clone().all(|node| node.value.is_nan()) && unmeasured.count() == 6);
        assert_eq!(decode_l2(None, &to).unwrap_err().code(), -libc::ENOTSUP);
        move |id: u32| {
            let node = nodes.iter().find(|node| node.id == id).unwrap();
            assert!(node.measured == 1 && node.low <= node.value && node.value <= node.high, "{node:?}");
            node.value * 600_000.0
        }
    };
    let are = |found: [f64; 2], expected: [f64; 2]| {
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-3), "{found:?} {expected:?}");
    };
    let retiring = of(of_core("Zen 4, retiring"), &[60_000, 30_000]);
    are([TD_NODE_MICROCODE, TD_NODE_FASTPATH].map(retiring), [30_000.0, 180_000.0]);
    let frontend = of(of_core("Zen 4, frontend bound"), &[60_000, 15_000]);
    are([TD_NODE_FETCH_LATENCY, TD_NODE_FETCH_BANDWIDTH].map(frontend), [90_000.0, 60_000.0]);
    let frontend = of(of_core("Zen 5, frontend bound"), &[60_000, 15_000]);
    are([TD_NODE_FETCH_LATENCY, TD_NODE_FETCH_BANDWIDTH].map(frontend), [120_000.0, 30_000.0]);
    let speculation = of(of_core("Zen 4, bad speculation"), &[600, 200]);
    are([TD_NODE_BRANCH_MISPREDICTS, TD_NODE_PIPELINE_RESTARTS].map(speculation), [30_000.0, 10_000.0]);
    let backend = of(of_core("Zen 4, backend bound"), &[50_000, 20_000]);
    are([TD_NODE_MEMORY_BOUND, TD_NODE_CORE_BOUND].map(&backend), [80_000.0, 120_000.0]);
    are([TD_NODE_BACKEND_BOUND, TD_NODE_FRONTEND_BOUND].map(&backend), [200_000.0, 150_000.0]);
}

#[test]
fn bad_speculation_of_skylake_is_what_was_issued_for_nothing_and_the_recovery_from_it() {
    // of 400,000 slots: 180,000 operations issued, 150,000 of them retired, 5,000 cycles of recovery: 30 + 4 * 5 = 50 thousand;
    // 80,000 that the frontend left empty, so 120,000 are the backend's
    let to = counted_by_read(of_core("Skylake or Cascade Lake"), 400_000, &[150_000, 180_000, 80_000, 5_000]);
    let l1 = decode_l1(None, &to).unwrap();
    for (share, thousands) in l1.shares().into_iter().zip([150.0, 50.0, 80.0, 120.0]) {
        assert!((share - thousands / 400.0).abs() < 1e-9, "{l1:?}");
    }
    assert!((l1.error - 3.0 * 3_640.0 / 400_000.0).abs() < 1e-6, "three counters: {l1:?}");
    assert_eq!(l1.smt_contention, 0.0);
}

#[test]
fn level_2_of_skylake_is_that_of_bad_speculation_and_frontend_bound() {
    // as above; of the slots that the frontend left empty all four of 12,500 cycles; 900 mispredicts and 100 machine clears
    let counts = [150_000, 180_000, 80_000, 5_000, 12_500, 900, 100];
    let mut to = counted_by_read(of_core("Skylake or Cascade Lake"), 400_000, &counts);
    to.base.level = 2;
    let nodes = decode_tree(None, &to).unwrap();
    let [r, s, f, b, heavy, light, mispredicts, clears, latency, bandwidth, memory, core] = &nodes[..] else {
        panic!("{nodes:?}")
    };
    for (node, thousands) in [r, s, f, b, mispredicts, clears, latency, bandwidth]
        .into_iter()
        .zip([150.0, 50.0, 80.0, 120.0, 45.0, 5.0, 50.0, 30.0])
    {
        assert!(node.measured == 1 && (node.value - thousands / 400.0).abs() < 1e-9, "{node:?}");
        assert!(node.low <= node.value && node.value <= node.high, "{node:?}");
    }
    assert!([heavy, light, memory, core].iter().all(|node| node.measured == 0 && node.value.is_nan()));
    assert_eq!(decode_l2(None, &to).unwrap_err().code(), -libc::ENOTSUP);
}

#[test]
fn level_1_of_e_cores_is_what_their_counters_say() {
    let of = |slots, counts: [u64; 3]| counted_by_read(of_core("Tremont"), slots, &counts);
    let l1 = decode_l1(None, &of(1_000_000, [400_000, 200_000, 300_000])).unwrap();
    let shares = [l1.retiring, l1.bad_speculation, l1.frontend_bound, l1.backend_bound];
    for (share, truth) in shares.into_iter().zip([0.4, 0.1, 0.2, 0.3]) {
        assert!((share - truth).abs() < 1e-9, "{l1:?}");
    }
    assert!((l1.error - 0.003_64).abs() < 1e-6, "the own work of a reading, and its skid: {l1:?}");
    assert_eq!(decode_l2(None, &of(1_000_000, [0; 3])).unwrap_err().code(), -libc::ENOTSUP);
    let too_many = decode_l1(None, &of(1_000_000, [800_000, 200_000, 1_000_000])).unwrap();
    assert!((too_many.retiring - 0.4).abs() < 1e-9 && too_many.error > 0.4, "they contradict: {too_many:?}");
}

#[test]
fn level_2_of_e_cores_is_what_their_counters_say_and_none_of_it_is_zero_for_want_of_a_counter() {
    // of a million slots: 400,000 retired, 200,000 were left empty by the frontend and 300,000 by the backend, so 100,000 are bad
    // speculation; of the frontend's 120,000 by latency, of the backend's 90,000 by restrictions of allocation; 70,000 went to
    // mispredicted branches and 20,000 to machine clears
    let counts = [400_000, 200_000, 300_000, 120_000, 90_000, 70_000, 20_000];
    let truth = [0.4, 0.1, 0.2, 0.3, 0.07, 0.02, 0.12, 0.08, 0.09, 0.21];
    for (tree, counts) in [(of_core("Skymont"), &counts[..]), (of_core("Gracemont"), &counts[..6])] {
        let mut to = counted_by_read(tree, 1_000_000, counts);
        to.base.level = 2;
        let nodes = decode_tree(None, &to).unwrap();
        assert_eq!(nodes.len(), truth.len());
        let listed = list(to.base.model, 2).unwrap();
        for ((node, truth), listed) in nodes.iter().zip(truth).zip(listed) {
            assert_eq!((node.id, node.measured), (listed.id, listed.measured));
            if counts.len() == 6 && node.name() == "tma_machine_clears" {
                assert!(node.measured == 0 && node.value.is_nan() && node.low.is_nan(), "{node:?}");
                continue;
            }
            assert!(node.measured == 1 && (node.value - truth).abs() < 1e-9, "{node:?}, {truth}");
            assert!(node.low <= truth && truth <= node.high && node.high - node.low < 0.015, "{node:?}");
        }
        let by_name = |name| nodes.iter().find(|node| node.name() == name).unwrap();
        assert_eq!(by_name("tma_resource_bound").parent, by_name("tma_backend_bound").id);
        assert_eq!(decode_l2(None, &to).unwrap_err().code(), -libc::ENOTSUP, "other nodes than td_l2 has");
        to.base.level = 1;
        let measured = decode_tree(None, &to).unwrap().iter().filter(|node| node.measured == 1).count();
        assert_eq!(measured, 4);
    }
}

/// Four shares of level 1, each of whose intervals is checked to hold it.
fn level_1_counted(core: &str, slots: u64, counts: &[u64]) -> [f64; 4] {
    let place = model::of_core(core).unwrap();
    let to = counted_by_read(model::tree_of(place).unwrap(), slots, counts);
    let nodes = decode_tree(None, &to).unwrap();
    for node in &nodes[..4] {
        assert!(node.measured == 1 && node.low <= node.value && node.value <= node.high, "{core} {node:?}");
    }
    let roots = [0, 1, 2, 3].map(|k| nodes[k].value);
    assert!((roots.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{core} {roots:?}");
    roots
}

/// Vectors derived by hand from perf's formulas, for 100 million cycles.
#[test]
fn level_1_of_arm64_is_what_perfs_formulas_make_of_the_counts() {
    const M: u64 = 1_000_000;
    let is = |core: &str, slots: u64, counts: &[u64], shares: [f64; 4]| {
        let found = level_1_counted(core, slots, counts);
        for (found, share) in found.iter().zip(shares) {
            assert!((found - share).abs() < 1e-9, "{core}: {found} is not {share} of {shares:?}");
        }
    };
    // SSF, SSB, OP_RETIRED, OP_SPEC, and mispredicts or flush cycles
    // 160/800 - 4 x 1/100; 240/800; 3/4 of the 400 slots without a stall; the rest, with 4 x 1/100
    is("Neoverse V1", 800 * M, &[160 * M, 240 * M, 300 * M, 400 * M, M], [0.375, 0.165, 0.16, 0.3]);
    // 100/500 - 1/100; 150/500 - 3/100; 3/4 of 250
    is("Neoverse N2", 500 * M, &[100 * M, 150 * M, 300 * M, 400 * M, M], [0.375, 0.165, 0.19, 0.27]);
    // the same, with 100 stalled slots too many: one in each cycle
    let early = [200 * M, 150 * M, 300 * M, 400 * M, M, 100 * M];
    is("Neoverse N2 before r0p3", 500 * M, &early, [0.375, 0.165, 0.19, 0.27]);
    is("Neoverse V2", 800 * M, &[160 * M, 240 * M, 300 * M, 400 * M, M], [0.375, 0.165, 0.19, 0.27]);
    // 100/500 - 5/100
    is("Neoverse N3", 500 * M, &[100 * M, 150 * M, 300 * M, 400 * M, 5 * M], [0.375, 0.175, 0.15, 0.3]);
    is("Neoverse V3", 1000 * M, &[200 * M, 300 * M, 300 * M, 400 * M, 5 * M], [0.375, 0.175, 0.15, 0.3]);
    // nothing was dispatched
    is("Neoverse N3", 500 * M, &[300 * M, 200 * M, 0, 0, 0], [0.0, 0.0, 0.6, 0.4]);
    // OP_RETIRED, OP_SPEC, SSB
    is("AmpereOne", 800 * M, &[320 * M, 400 * M, 240 * M], [0.4, 0.1, 0.2, 0.3]);
    // of 800 million CPU_SLOT: SSF without mispredicts, SSB, all stalls, OP_RETIRED, OP_SPEC
    is("T410", 800 * M, &[120 * M, 240 * M, 400 * M, 300 * M, 400 * M], [0.375, 0.175, 0.15, 0.3]);
}

/// The pair of nodes of level 2 that begins with this one, of a row whose level 1 is `level_1` and which tells no other pair.
fn pair_counted(core: &str, slots: u64, counts: &[u64], level_1: [f64; 4], first: &str) -> [Node; 2] {
    let to = counted_by_read(model::tree_of(model::of_core(core).unwrap()).unwrap(), slots, counts);
    let nodes = decode_tree(None, &Sample { base: Base { level: 2, ..to.base }, ..to }).unwrap();
    let pair = nodes.iter().position(|node| node.name() == first).unwrap();
    let is_told = |(place, node): &(usize, &Node)| !(pair..pair + 2).contains(place) && node.measured == 1;
    assert_eq!(nodes.iter().enumerate().skip(4).filter(is_told).count(), 0, "{core} {nodes:?}");
    for (node, share) in nodes.iter().zip(level_1) {
        assert!((node.value - share).abs() < 1e-9, "{core}: {share} {node:?}");
    }
    for node in nodes[4..].iter().filter(|node| node.measured == 1) {
        assert!(node.low <= node.value && node.value <= node.high && node.high - node.low < 0.01, "{node:?}");
    }
    [nodes[pair], nodes[pair + 1]]
}

/// Vectors derived by hand, for 100 million cycles of eight slots.
#[test]
fn level_2_of_ampere_one_is_what_perfs_formulas_make_of_the_counts() {
    const M: u64 = 1_000_000;
    let is = |part: &str, below: &[u64], names: [&str; 2], shares: [f64; 2]| {
        for core in ["AmpereOne", "AmpereOneX"] {
            // OP_RETIRED, OP_SPEC, STALL_SLOT_BACKEND
            let counts = [&[320 * M, 400 * M, 240 * M], below].concat();
            let pair =
                pair_counted(&format!("{core}, {part}"), 800 * M, &counts, [0.4, 0.1, 0.2, 0.3], names[0]);
            for ((node, name), share) in pair.iter().zip(names).zip(shares) {
                assert_eq!((node.name(), node.unit, node.whole), (name, TD_UNIT_SLOTS, 800 * M));
                let found = node.value;
                assert!((found - share).abs() < 1e-9, "{core} {below:?}: {found} is not {share}");
            }
        }
    };
    let mispredicts = ["tma_branch_mispredicts", "tma_machine_clears"];
    // 3 of 4 flushes; more mispredicts than flushes
    is("bad speculation", &[3 * M, 4 * M], mispredicts, [0.075, 0.025]);
    is("bad speculation", &[5 * M, 4 * M], mispredicts, [0.1, 0.0]);
    let latency = ["tma_fetch_latency", "tma_fetch_bandwidth"];
    // of 200 stalled slots 40 are too many, and so are 5 of 15 stalled cycles; all of it by latency
    is("frontend bound", &[15 * M, 200 * M, 100 * M], latency, [0.1, 0.1]);
    is("frontend bound", &[30 * M, 160 * M, 100 * M], latency, [0.2, 0.0]);
    is("frontend bound", &[5 * M, 240 * M, 100 * M], latency, [0.0, 0.2]);
    let memory = ["tma_memory_bound", "tma_core_bound"];
    // (5 + 15) of 100 cycles; more cycles than backend bound has slots
    is("backend bound", &[5 * M, 15 * M, 100 * M], memory, [0.2, 0.1]);
    is("backend bound", &[15 * M, 25 * M, 100 * M], memory, [0.3, 0.0]);

    // no flush at all: nothing tells how bad speculation divides
    let counts = [320 * M, 400 * M, 240 * M, 0, 0];
    let level_1 = [0.4, 0.1, 0.2, 0.3];
    let pair =
        pair_counted("AmpereOne, bad speculation", 800 * M, &counts, level_1, "tma_branch_mispredicts");
    assert_eq!(pair.map(|node| node.measured), [0, 0]);
}

#[test]
fn level_2_of_n3_and_v3_is_of_stalled_cycles_and_says_so() {
    const M: u64 = 1_000_000;
    for (core, width) in [("Neoverse N3", 5), ("Neoverse V3", 10)] {
        for (part, name) in [("frontend", "tma_frontend_mem_bound"), ("backend", "tma_backend_mem_bound")] {
            // SSF, SSB, OP_RETIRED, OP_SPEC, flush cycles, of 100 million cycles, 12 million of which wait for memory
            let counts = [20 * width * M, 30 * width * M, 300 * M, 400 * M, 5 * M, 12 * M];
            let level_1 = [0.375, 0.175, 0.15, 0.3];
            let [memory, rest] =
                pair_counted(&format!("{core}, {part} bound"), 100 * width * M, &counts, level_1, name);
            assert_eq!((memory.name(), memory.unit, memory.whole), (name, TD_UNIT_CLOCKS, 100 * M));
            assert!(memory.measured == 1 && (memory.value - 0.12).abs() < 1e-9, "{memory:?}");
            assert!(rest.measured == 0 && rest.unit == TD_UNIT_CLOCKS && rest.value.is_nan(), "{rest:?}");
        }
    }
}

#[test]
fn level_2_of_t410_is_of_cycles_that_are_counted_however_many_slots_a_thread_has_in_one() {
    const M: u64 = 1_000_000;
    for cycles in [80, 160] {
        for (part, name) in [("frontend", "tma_frontend_mem_bound"), ("backend", "tma_backend_mem_bound")] {
            // SSF without mispredicts, SSB, all stalls, OP_RETIRED, OP_SPEC, cycles that wait, all cycles
            let counts = [120 * M, 240 * M, 400 * M, 300 * M, 400 * M, 8 * M, cycles * M];
            let level_1 = [0.375, 0.175, 0.15, 0.3];
            let [memory, rest] =
                pair_counted(&format!("T410, {part} bound"), 800 * M, &counts, level_1, name);
            assert_eq!((memory.name(), memory.unit, memory.whole), (name, TD_UNIT_CLOCKS, cycles * M));
            assert!((memory.value - 8.0 / cycles as f64).abs() < 1e-9 && rest.measured == 0, "{memory:?}");
        }
    }
}

#[test]
fn both_levels_of_hip08_are_perfs_formulas() {
    const M: u64 = 1_000_000;
    let tree = model::tree_of(model::of_core("hip08").unwrap()).unwrap();
    // of 100 million cycles: INST_RETIRED, INST_SPEC, FETCH_BUBBLE, 201d, BR_MIS_PRED, 2013, 7001, 7004, 7005
    let counts = [160 * M, 200 * M, 80 * M, 12 * M, 3 * M, M, 25 * M, 14 * M, 6 * M];
    let level_1 = counted_by_read(tree, 400 * M, &counts);
    let both = Sample { base: Base { level: 2, ..level_1.base }, ..level_1 };
    let nodes = decode_tree(None, &both).unwrap();
    // 160/400; 40/400; 80/400; the rest; 0.1 x 3/4; the rest; 12/100; 0.2 less that; 20/100; 5/100; the rest
    let shares = [0.4, 0.1, 0.2, 0.3, 0.075, 0.025, 0.12, 0.08, 0.2, 0.05, 0.05];
    assert_eq!(nodes.len(), shares.len());
    for (node, share) in nodes.iter().zip(shares) {
        assert!(node.measured == 1 && (node.value - share).abs() < 1e-9, "{share} {node:?}");
        assert!(node.low <= share && share <= node.high && node.high - node.low < 0.01, "{share} {node:?}");
    }
}

#[test]
fn intervals_of_arm64_hold_whatever_was_missed_at_the_edges() {
    // 1,000 slots that were missed or counted too often, of each kind, in a region of 100,000
    let truth = level_1_counted("Neoverse N3", 100_000, &[20_000, 30_000, 10_000, 40_000, 1_000]);
    let place = model::of_core("Neoverse N3").unwrap();
    let tree = model::tree_of(place).unwrap();
    for off in 0..81u64 {
        let of = |n: u64, place: u32| (n + off / 3u64.pow(place) % 3 * 1_000) - 1_000;
        let counts = [of(20_000, 0), of(30_000, 1), of(10_000, 2), of(40_000, 3), 1_000];
        let to = counted_by_read(tree, 100_000, &counts);
        let span = Span { edges: 1_000.5, rounding: 0.0, ..span::span(None, &to, 1).unwrap() };
        for (node, truth) in nodes_between(&span, None, &to).iter().zip(truth) {
            assert!(node.low <= truth && truth <= node.high, "{counts:?}: {truth} {node:?}");
            assert!(node.high - node.low < 0.25, "{node:?}");
        }
    }
}
