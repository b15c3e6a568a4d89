/* published.h: what Intel's published metrics are of a mix while the core drops slots (INT_MISC.UOP_DROPPING), and on Ice Lake has clears
 * (INT_MISC.CLEARS_COUNT), at rates that the test sets. */
#ifndef PUBLISHED_H
#define PUBLISHED_H
#include "pmu.h"

enum { DROPPED_16TH = 5, CLEARS_1024TH = 100 };

static int corrected, level_1_alone; /* what the core's published metrics are, and has */
static double dropped, cleared;      /* parts of all slots */

/* Of this core. */
static inline void published_by(const struct td_info *info)
{
    corrected = core_drops_slots(info->core);
    level_1_alone = strstr(info->core, "Sunny") != NULL;
    if (corrected) {
        dropped = DROPPED_16TH / 16.0 / info->slots_per_cycle;
        cleared = level_1_alone ? 5 * CLEARS_1024TH / 1024.0 / info->slots_per_cycle : 0;
    }
}

/* This thread, and each other one with the same mix. */
static inline void mix_and_rates(struct vm_mix mix)
{
    vm_mix_set(mix, 0, 0, 0);
    if (!corrected)
        return;
    CHECK(vm_rate_set(level_1_alone ? 0x100d : 0x10ad, 65536 / 16 * DROPPED_16TH, VM_PER_CYCLE));
    if (level_1_alone)
        CHECK(vm_rate_set(CLEARS_COUNT, 65536 / 1024 * CLEARS_1024TH, VM_PER_CYCLE));
}

/* What the node's share truly is: published, or bare. */
static inline double truth_of_node(struct vm_mix mix, uint32_t id, int bare)
{
    const struct truth t = truth_of(mix);
    const double d = bare ? 0 : dropped, c = bare ? 0 : cleared;
    switch (id) {
    case TD_NODE_RETIRING: return t.l1[0];
    case TD_NODE_BAD_SPECULATION: return t.l1[1] + d - c;
    case TD_NODE_FRONTEND_BOUND: return t.l1[2] - d;
    case TD_NODE_BACKEND_BOUND: return t.l1[3] + c;
    case TD_NODE_HEAVY_OPERATIONS: return t.l2[0];
    case TD_NODE_LIGHT_OPERATIONS: return t.l2[1];
    case TD_NODE_BRANCH_MISPREDICTS: return t.l2[2];
    case TD_NODE_MACHINE_CLEARS: return t.l2[3] + d;
    case TD_NODE_FETCH_LATENCY: return t.l2[4] - d;
    case TD_NODE_FETCH_BANDWIDTH: return t.l2[5];
    case TD_NODE_MEMORY_BOUND: return t.l2[6];
    case TD_NODE_CORE_BOUND: return t.l2[7];
    default: FAIL("node %u", id);
    }
    return 0;
}
#endif
