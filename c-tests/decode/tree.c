/* The tree of metrics on the simulated PMU: its nodes are listed and decoded in the same order, have perf's names both ways, agree with
 * td_decode_l1 and td_decode_l2 and with the simulated truth; what is not measured is no number. */
#include "tree.h"

static const double TRUTH[] = {0.5, 0.1, 0.25, 0.15, 0.2, 0.3, 0.06, 0.04, 0.05, 0.2, 0.12, 0.03};

static void mix_is(td_t *td)
{
    struct td_mix mix;
    memset(&mix, 0, sizeof mix);
    mix.size = sizeof mix;
    mix.retiring = TRUTH[0], mix.bad_speculation = TRUTH[1], mix.frontend_bound = TRUTH[2], mix.backend_bound = TRUTH[3];
    mix.heavy_operations = TRUTH[4], mix.branch_mispredicts = TRUTH[6], mix.fetch_latency = TRUTH[8], mix.memory_bound = TRUTH[10];
    td_must(td_simulate_mix(td, &mix));
    td_must(td_reset(td));
}

/* So many nodes are written as there is room for, and how many there are is told. */
static void room_for(const struct td_sample *to, uint32_t capacity)
{
    struct td_node nodes[NODES_IN_ALL + 1], untouched[NODES_IN_ALL + 1];
    uint32_t count = 0, listed = capacity < NODES_IN_ALL ? capacity : NODES_IN_ALL;
    memset(nodes, 0x55, sizeof nodes);
    memcpy(untouched, nodes, sizeof nodes);
    td_must(td_decode_tree(NULL, to, capacity == 0 ? NULL : nodes, capacity, &count));
    CHECK_EQ(count, NODES_IN_ALL);
    for (uint32_t k = 0; k < listed; k++)
        CHECK_EQ(nodes[k].id, k + 1);
    CHECK_EQ(memcmp(nodes + listed, untouched + listed, sizeof nodes - listed * sizeof nodes[0]), 0);
}

int main(void)
{
    td_t *td = simulated(2), *level_1 = simulated(1);
    struct td_sample before, after;

    nodes_are_listed(td, 2);
    nodes_are_listed(level_1, 1);
    CHECK_EQ(strcmp(td_node_name(TD_NODE_MEMORY_BOUND), "tma_memory_bound"), 0);
    CHECK_EQ(strcmp(td_node_name(TD_NODE_NONE), ""), 0);
    CHECK_EQ(strcmp(td_node_name(UINT32_MAX), ""), 0);
    for (uint32_t id = 1; id <= TD_NODE_BACKEND_CORE_BOUND; id++) {
        CHECK_EQ(td_node_id(td_node_name(id)), id);
        CHECK_EQ(td_node_id(td_node_name(id) + strlen("tma_")), id);
    }
    CHECK_EQ(td_node_id("tma_l1_bound"), 55); /* for ever, as all of them */
    CHECK_EQ(td_node_id("retiring"), TD_NODE_RETIRING);
    static const char *const none[] = {NULL, "", "tma_", "tma_tma_retiring", "Retiring", "retiring ", "tma_\xff"};
    for (size_t k = 0; k < sizeof none / sizeof none[0]; k++)
        CHECK_EQ(td_node_id(none[k]), TD_NODE_NONE);

    mix_is(td);
    td_must(td_read(td, &before));
    for (int i = 0; i < 200; i++) { /* longer and longer regions, short ones with wide intervals */
        work(1000u * (unsigned)(i + 1));
        td_must(td_read(td, &after));
        tree_is(&before, &after, TRUTH, 2);
        tree_is(NULL, &after, TRUTH, 2);
    }
    for (uint32_t capacity = 0; capacity <= NODES_IN_ALL + 1; capacity++)
        room_for(&after, capacity);

    mix_is(level_1);
    work(2000000);
    td_must(td_read(level_1, &after));
    tree_is(NULL, &after, TRUTH, 1);

    /* samples are enough: the handles are closed */
    td_close(level_1);
    td_close(td);
    tree_is(NULL, &after, TRUTH, 1);
    return 0;
}
