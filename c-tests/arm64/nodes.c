/* arm64, on the emulated machine: each node lies within its bound of what its published formula makes of the true rates of
 * events, in five mixes and in random ones, by this thread's handle, another thread's and a CPU's. Where the formula corrects
 * nothing (no mispredicts) that is the true mix; on hip08 it is so for all nodes of levels 1 and 2. By subtree: level 3 of hip08, level 2
 * of AmpereOne, and the cycles of Neoverse N3 and V3 that stall for memory.
 * needs: arguments */
#include "phases.h"

enum { RANDOM = 20, LENGTH = 2000000 };
static uint64_t seed;

static double share_of(const struct td_l1 *l1, uint32_t id)
{
    double share[4];
    l1_array(l1, share);
    return share[id - TD_NODE_RETIRING];
}

static void nodes_are(const struct td_sample *from, const struct td_sample *to, const double *truth)
{
    struct td_node nodes[MOST_NODES];
    struct td_l1 l1;
    double sum = 0;
    uint32_t count = 0;
    td_must(td_decode_tree(from, to, nodes, MOST_NODES, &count));
    td_must(td_decode_l1(from, to, &l1));
    CHECK_EQ(count, core_is("hip08") ? 11 : 4);
    CHECK(l1.running == 1.0);
    for (const struct td_node *node = nodes; node < nodes + count; node++) {
        CHECK(node->level <= info.level);
        if (!node->measured && node->parent == TD_NODE_BAD_SPECULATION && truth[TD_NODE_BAD_SPECULATION] == 0)
            continue; /* a ratio of nothing: no mispredicts and no machine clears */
        CHECK(node->measured);
        if (node->parent == TD_NODE_NONE) {
            sum += node->value;
            CHECK(share_of(&l1, node->id) == node->value);
        }
        if (!(node->low <= truth[node->id] && truth[node->id] <= node->high))
            FAIL("%s of %lu slots: %f, between %f and %f, is not %f", td_node_name(node->id), (unsigned long)l1.slots, node->value,
                 node->low, node->high, truth[node->id]);
        CHECK_NEAR(node->value, truth[node->id], 0.01);
    }
    CHECK_NEAR(sum, 1, 1e-9);
    CHECK(l1.error < 0.05);
}

static void region(td_t *td, struct vm_mix mix)
{
    struct td_sample before, after;
    double truth[SHARES];
    const uint64_t phase = phase_of(mix, truth);
    vm_phase_set(phase);
    td_must(td_read(td, &before));
    work(LENGTH);
    td_must(td_read(td, &after));
    vm_phase_set(0);
    nodes_are(&before, &after, truth);
}

/* Regions of five mixes of which no formula leaves a share below zero, and of random ones. */
static void regions(uint32_t flags, uint32_t target, int32_t id, int random)
{
    struct td_options options = options_of(flags, 0);
    td_t *td;
    options.target = target, options.id = id;
    td_must(td_open(&td, &options));
    for (int k = 0; k < 5; k++)
        region(td, one_of_five(k));
    for (int k = 0; k < random; k++)
        region(td, random_mix(&seed));
    td_close(td);
}

/* perf's formulas of level 3 (tools/perf/pmu-events/arch/arm64/hisilicon/hip08); of bad speculation in parts of all slots. */
static void level_3_of_hip08(uint64_t phase, double *share)
{
    const double mispredicts = share[TD_NODE_BRANCH_MISPREDICTS] / rate(phase, EVENT_MISPREDICTS);
    const double calls = rate(phase, 0x1013) + rate(phase, 0x1016);
    share[td_node_id("tma_idle_by_itlb_miss")] = (rate(phase, 0x30) - rate(phase, 0x2e)) * 15 + rate(phase, 0x2e) * 100;
    share[td_node_id("tma_idle_by_icache_miss")] = (rate(phase, 0x27) - rate(phase, 0x28)) * 15 + rate(phase, 0x28) * 100;
    share[td_node_id("tma_bp_misp_flush")] = 5 * rate(phase, EVENT_MISPREDICTS);
    share[td_node_id("tma_ooo_flush")] = 5 * rate(phase, 0x2013);
    share[td_node_id("tma_sp_flush")] = 5 * rate(phase, 0x1001);
    share[td_node_id("tma_indirect_branch")] = mispredicts * rate(phase, 0x1010);
    share[td_node_id("tma_push_branch")] = mispredicts * calls;
    share[td_node_id("tma_pop_branch")] = mispredicts * rate(phase, 0x100d);
    share[td_node_id("tma_other_branch")] = mispredicts * (rate(phase, EVENT_MISPREDICTS) - rate(phase, 0x1010) - calls - rate(phase, 0x100d));
    share[td_node_id("tma_nuke_flush")] = share[TD_NODE_MACHINE_CLEARS] * rate(phase, 0x2012) / rate(phase, 0x2013);
    share[td_node_id("tma_other_flush")] = share[TD_NODE_MACHINE_CLEARS] - share[td_node_id("tma_nuke_flush")];
    share[td_node_id("tma_l1_bound")] = rate(phase, 0x7004) - rate(phase, 0x7006);
    share[td_node_id("tma_l2_bound")] = rate(phase, 0x7006) - rate(phase, 0x7007);
    share[td_node_id("tma_mem_bound")] = rate(phase, 0x7007);
    share[td_node_id("tma_store_bound")] = rate(phase, 0x7005);
    share[td_node_id("tma_divider")] = rate(phase, 0x7002);
    share[td_node_id("tma_fsu_stall")] = rate(phase, 0x7003);
    share[td_node_id("tma_exe_ports_util")] = share[TD_NODE_CORE_BOUND] - share[td_node_id("tma_divider")] - share[td_node_id("tma_fsu_stall")];
    share[TD_NODE_RESOURCE_BOUND] = share[TD_NODE_BACKEND_BOUND] - rate(phase, 0x7001);
    share[td_node_id("tma_sync_stall")] = rate(phase, 0x2010);
    share[td_node_id("tma_rob_stall")] = rate(phase, 0x2004);
    share[td_node_id("tma_ptag_stall")] = rate(phase, 0x2006) + rate(phase, 0x2007) + rate(phase, 0x2008);
    share[td_node_id("tma_saveopq_stall")] = rate(phase, 0x201e);
    share[td_node_id("tma_pc_buffer_stall")] = rate(phase, 0x2005);
}

/* What is below level 1 in a subtree, and not as the mix says. */
static void deeper(uint64_t phase, double *share)
{
    if (core_is("hip08"))
        level_3_of_hip08(phase, share);
    if (is_by_flushes(&info)) {
        share[TD_NODE_FRONTEND_MEM_BOUND] = rate(phase, 0x8158);
        share[TD_NODE_BACKEND_MEM_BOUND] = rate(phase, 0x8164);
    }
}

/* The nodes of a subtree in a region: how many are measured below level 1. */
static uint32_t subtree_is(td_t *td, struct vm_mix mix)
{
    struct td_sample before, after;
    struct td_node nodes[MOST_NODES];
    double truth[SHARES];
    uint32_t count = 0, measured = 0;
    const uint64_t phase = phase_of(mix, truth);
    deeper(phase, truth);
    vm_phase_set(phase);
    td_must(td_read(td, &before));
    work(LENGTH);
    td_must(td_read(td, &after));
    vm_phase_set(0);
    td_must(td_decode_tree(&before, &after, nodes, MOST_NODES, &count));
    CHECK(count <= MOST_NODES);
    for (const struct td_node *node = nodes; node < nodes + count; node++) {
        CHECK(node->measured || (node->level > 1 && isnan(node->value)));
        if (!node->measured)
            continue;
        measured += node->level > 1;
        const double share = fmin(truth[node->id], 1); /* estimates may be more */
        if (!(node->low <= share && share <= node->high))
            FAIL("%s: %f, between %f and %f, is not %f", td_node_name(node->id), node->value, node->low, node->high, share);
        CHECK_NEAR(node->value, share, 0.01);
    }
    return measured;
}

/* The deepest level below each of these nodes, with so many counters and nodes below level 1, in mixes that have something of
 * everything. */
struct below { uint32_t node, counters, measured; };
static const struct below HIP08[] = {
    {TD_NODE_FRONTEND_BOUND, 11, 7}, {TD_NODE_BAD_SPECULATION, 10, 8}, {TD_NODE_BACKEND_BOUND, 10, 10}, {TD_NODE_RESOURCE_BOUND, 11, 6}, {0},
};
static const struct below AMPERE[] = {
    {TD_NODE_BAD_SPECULATION, 5, 2}, {TD_NODE_FRONTEND_BOUND, 6, 2}, {TD_NODE_BACKEND_BOUND, 6, 2}, {0},
};
static const struct below BY_FLUSHES[] = {{TD_NODE_FRONTEND_BOUND, 6, 1}, {TD_NODE_BACKEND_BOUND, 6, 1}, {0}};

static void subtrees(const struct below *below, uint32_t level)
{
    static const struct vm_mix mixes[3] = {{40, 8, 8, 4, 12, 8, 8}, {8, 32, 8, 8, 4, 12, 4}, {16, 8, 20, 8, 6, 10, 5}};
    for (int k = 0; below[k].node != TD_NODE_NONE; k++) {
        struct td_options options = options_of(0, k % 2 == 0 ? level : 0);
        td_t *td;
        options.subtree = below[k].node;
        td_must(td_open(&td, &options));
        CHECK(info_of(td).level == level && info_of(td).counters == below[k].counters);
        for (int mix = 0; mix < 3; mix++)
            CHECK_EQ(subtree_is(td, mixes[mix]), below[k].measured);
        td_close(td);
    }
    struct td_options none = options_of(0, level);
    td_t *td = NULL;
    CHECK_EQ(td_open(&td, &none), -ENOTSUP);
    CHECK(last_error_with("td_options.subtree"));
}

static void *at_a_mix(void *unused)
{
    mix_is((struct vm_mix){.retiring = 40, .bad = 8, .frontend = 8});
    work(20000000);
    return unused;
}

/* For `topdown stat`: two threads, and a child. */
static int works_at_a_mix(void)
{
    const pid_t child = fork();
    const pthread_t thread = start_thread(at_a_mix, NULL);
    at_a_mix(NULL);
    join_thread(thread);
    if (child == 0)
        _exit(0);
    child_is_well(child);
    return 0;
}

int main(int argc, char **argv)
{
    td_t *td;
    if (argc > 1 && strcmp(argv[1], "at-a-mix") == 0)
        return works_at_a_mix();
    seed = seed_of(argc, argv);
    td_must(td_open(&td, NULL));
    info = info_of(td);
    printf("%s, %s, PMU %s, level %u, %u counters, path %u%s%s; seed %lu\n", info.cpu, info.core, info.pmu, info.level,
           info.counters, info.path, info.note[0] ? ": " : "", info.note, (unsigned long)seed);
    td_close(td);
    CHECK_EQ(info.slots_per_cycle, core_is("Neoverse V3") ? 10 : core_is("Neoverse V") ? 8 : core_is("Neoverse") ? 5 : 4);
    CHECK_EQ(info.path, has_word("/proc/sys/kernel/perf_user_access", "1") ? TD_PATH_RDPMC : TD_PATH_READ);
    regions(0, TD_TARGET_SELF, 0, RANDOM);
    regions(TD_FLAG_NO_RDPMC, TD_TARGET_SELF, 0, 0);
    regions(0, TD_TARGET_TASK, (int32_t)syscall(SYS_gettid), 0);
    regions(TD_FLAG_INHERIT, TD_TARGET_SELF, 0, 0);
    if (core_is("hip08"))
        subtrees(HIP08, 3);
    if (is_ampere(&info))
        subtrees(AMPERE, 2);
    if (is_by_flushes(&info))
        subtrees(BY_FLUSHES, 2);
    return 0;
}
