/* subtrees.h: level 3 of E-cores, which td_options.subtree counts in parts. */
#ifndef SUBTREES_H
#define SUBTREES_H
#include "pmu.h"

/* The group of a subtree of a core with so many general counters: how many of these it takes, how many nodes are below its own, and
 * for how many of them no counter is left. What is left of resource bound is counted with core bound, as far as that has room. */
struct subtree { uint32_t node; struct { uint32_t takes, parts, left; } of_six, of_eight; };
static const struct subtree SUBTREES[] = {
    {TD_NODE_IFETCH_LATENCY, {6, 4, 2}, {8, 4, 0}}, {TD_NODE_IFETCH_BANDWIDTH, {6, 4, 2}, {8, 4, 0}},
    {TD_NODE_MACHINE_CLEARS, {6, 2, 0}, {6, 2, 0}}, {TD_NODE_CORE_BOUND, {6, 3, 0}, {5, 2, 0}},
    {TD_NODE_RESOURCE_BOUND, {6, 5, 3}, {8, 5, 1}},
};

/* Levels 1 and 2 are true. Of the parts of frontend bound, bad speculation and backend bound that no node of level 2 is, the
 * machine counts each event as the whole (event_rate in vm/qemu-intel-pmu.patch), and no node has more than its parent: as
 * the formula says, each is all of it. */
static inline void subtree_is_true(td_t *td, const struct subtree *subtree, struct vm_mix mix, int six)
{
    struct td_sample before, after;
    struct td_node nodes[16];
    const struct truth truth = truth_of(mix);
    double share[TD_NODE_RESOURCE_BOUND + 1] = {0}, value[TD_NODE_RESOURCE_BOUND + 1] = {0};
    uint32_t count = 0, parts = 0, unmeasured = 0;
    const uint32_t all = six ? subtree->of_six.parts : subtree->of_eight.parts;
    memcpy(&share[TD_NODE_RETIRING], truth.l1, sizeof truth.l1);
    share[TD_NODE_MACHINE_CLEARS] = truth.l2[3];
    share[TD_NODE_IFETCH_LATENCY] = truth.l2[4], share[TD_NODE_IFETCH_BANDWIDTH] = truth.l2[5];
    share[TD_NODE_RESOURCE_BOUND] = truth.l2[6], share[TD_NODE_CORE_BOUND] = truth.l2[7];
    mix_is(mix);
    td_must(td_read(td, &before));
    work(1000000);
    td_must(td_read(td, &after));
    td_must(td_decode_tree(&before, &after, nodes, 16, &count));
    CHECK_EQ(count, 10 + all);
    for (const struct td_node *node = nodes; node < nodes + count; node++) {
        if (!node->measured) {
            CHECK(isnan(node->value) && node->level > 1 && node->id != subtree->node);
            unmeasured += node->level == 3;
            continue;
        }
        if (node->level == 3) {
            CHECK(node->value == value[node->parent] && node->low <= node->value && node->value <= node->high);
            parts++;
            continue;
        }
        if (!(node->low <= share[node->id] && share[node->id] <= node->high))
            FAIL("%s of %s: %f, between %f and %f, is not %f", td_node_name(node->id), td_node_name(subtree->node), node->value,
                 node->low, node->high, share[node->id]);
        CHECK_NEAR(node->value, share[node->id], 0.003);
        value[node->id] = node->value;
    }
    CHECK_EQ(unmeasured, six ? subtree->of_six.left : subtree->of_eight.left);
    CHECK_EQ(parts + unmeasured, all);
}

/* Each subtree of the E-core where this runs. The NMI watchdog leaves one counter less. */
static inline void subtrees_of_e_core(uint32_t flags, int six)
{
    for (size_t k = 0; k < sizeof SUBTREES / sizeof SUBTREES[0]; k++) {
        struct td_options options = options_of(flags, 0);
        const uint32_t takes = six ? SUBTREES[k].of_six.takes : SUBTREES[k].of_eight.takes;
        td_t *td = NULL;
        options.subtree = SUBTREES[k].node;
        if (takes == (six ? 6 : 8)) {
            CHECK_EQ(td_open(&td, &options), -ENOTSUP);
            CHECK(last_error_with("level 3") && last_error_with("nmi_watchdog"));
        } else {
            td_must(td_open(&td, &options));
            td_close(td);
        }
        watchdog_is(0);
        options.level = k % 2 == 0 ? 3 : 0;
        td_must(td_open(&td, &options));
        const struct td_info info = info_of(td);
        CHECK(info.path == TD_PATH_RDPMC && info.level == 3 && info.counters == takes);
        CHECK(strchr(info.core, ',') != NULL);
        for (int mix = 0; mix < 4; mix++)
            subtree_is_true(td, &SUBTREES[k], MIXES[mix], six);
        td_close(td);
        watchdog_is(1);
    }
}
#endif
