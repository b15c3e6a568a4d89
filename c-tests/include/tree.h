/* tree.h: what the tests of the tree of metrics share. */
#ifndef TREE_H
#define TREE_H
#include "check.h"

/* The nodes of CPUs with PERF_METRICS; E-cores have the first four, and others. */
enum { NODES_IN_ALL = 12 };
static const struct {
    const char *name;
    uint32_t id, parent;
} NODES[NODES_IN_ALL] = {
    {"tma_retiring", TD_NODE_RETIRING, TD_NODE_NONE},
    {"tma_bad_speculation", TD_NODE_BAD_SPECULATION, TD_NODE_NONE},
    {"tma_frontend_bound", TD_NODE_FRONTEND_BOUND, TD_NODE_NONE},
    {"tma_backend_bound", TD_NODE_BACKEND_BOUND, TD_NODE_NONE},
    {"tma_heavy_operations", TD_NODE_HEAVY_OPERATIONS, TD_NODE_RETIRING},
    {"tma_light_operations", TD_NODE_LIGHT_OPERATIONS, TD_NODE_RETIRING},
    {"tma_branch_mispredicts", TD_NODE_BRANCH_MISPREDICTS, TD_NODE_BAD_SPECULATION},
    {"tma_machine_clears", TD_NODE_MACHINE_CLEARS, TD_NODE_BAD_SPECULATION},
    {"tma_fetch_latency", TD_NODE_FETCH_LATENCY, TD_NODE_FRONTEND_BOUND},
    {"tma_fetch_bandwidth", TD_NODE_FETCH_BANDWIDTH, TD_NODE_FRONTEND_BOUND},
    {"tma_memory_bound", TD_NODE_MEMORY_BOUND, TD_NODE_BACKEND_BOUND},
    {"tma_core_bound", TD_NODE_CORE_BOUND, TD_NODE_BACKEND_BOUND},
};

/* A node is the one of this place, measured or not. */
static inline void node_is(const struct td_node *node, uint32_t place, int measured)
{
    CHECK_EQ(node->size, sizeof *node);
    CHECK_EQ(node->id, NODES[place].id);
    CHECK_EQ(node->parent, NODES[place].parent);
    CHECK_EQ(node->level, place < 4 ? 1 : 2);
    CHECK_EQ(node->unit, TD_UNIT_SLOTS);
    CHECK_EQ(node->measured, measured);
    CHECK_EQ(strcmp(td_node_name(node->id), NODES[place].name), 0);
    CHECK_EQ(node->reserved0 | node->reserved[0] | node->reserved[1] | node->reserved[2], 0);
}

/* A handle lists its nodes; it measures those down to `level`. Returns how many there are. */
static inline uint32_t nodes_are_listed(td_t *td, uint32_t level)
{
    struct td_node nodes[NODES_IN_ALL];
    uint32_t count = 0, asked = 0;
    td_must(td_list_nodes(td, nodes, NODES_IN_ALL, &count));
    td_must(td_list_nodes(td, NULL, 0, &asked));
    CHECK_EQ(count, asked);
    CHECK(count == NODES_IN_ALL || count == 4); /* of a core with level 1 alone */
    for (uint32_t k = 0; k < count; k++) {
        node_is(&nodes[k], k, k < 4 || level == 2);
        CHECK(isnan(nodes[k].value) && isnan(nodes[k].low) && isnan(nodes[k].high));
    }
    return count;
}

/* Between two samples: the truth (twelve shares, in the order of the nodes) lies within each node's interval, and all is as
 * td_decode_l1 and td_decode_l2 say, to the last bit. */
static inline void tree_is(const struct td_sample *from, const struct td_sample *to, const double *truth, uint32_t level)
{
    struct td_node nodes[NODES_IN_ALL];
    struct td_l1 l1;
    struct td_l2 l2;
    double share[NODES_IN_ALL], error[2] = {0, 0}, parts[NODES_IN_ALL] = {0};
    uint32_t count = 0;
    td_must(td_decode_tree(from, to, nodes, NODES_IN_ALL, &count));
    td_must(td_decode_l1(from, to, &l1));
    l1_array(&l1, share);
    CHECK_EQ(td_decode_l2(from, to, &l2), level == 2 ? 0 : -ENOTSUP);
    if (level == 2)
        l2_array(&l2, share + 4);
    for (uint32_t k = 0; k < count; k++) {
        const struct td_node *node = &nodes[k];
        node_is(node, k, k < 4 || level == 2);
        CHECK_EQ(node->flags, l1.flags);
        CHECK_EQ(node->whole, l1.slots);
        CHECK(node->running == l1.running);
        if (!node->measured) {
            CHECK(isnan(node->value) && isnan(node->low) && isnan(node->high));
            continue;
        }
        CHECK(node->value == share[k]);
        CHECK(0 <= node->low && node->low <= node->value && node->value <= node->high && node->high <= 1);
        if (!(node->low <= truth[k] && truth[k] <= node->high))
            FAIL("%s: %.9g is not between %.9g and %.9g", NODES[k].name, truth[k], node->low, node->high);
        error[node->level - 1] = fmax(error[node->level - 1], fmax(node->high - node->value, node->value - node->low));
        if (node->parent != TD_NODE_NONE) {
            const uint32_t parent = node->parent - 1; /* ids are 1 and on, in the order of the nodes */
            CHECK(node->high <= nodes[parent].high + 1e-9);
            parts[parent] += node->value;
        }
    }
    CHECK_NEAR(error[0], l1.error, 3e-9);
    if (level == 2)
        CHECK_NEAR(error[1], l2.error, 3e-9);
    for (int k = 0; k < 4 && level == 2; k++)
        CHECK_NEAR(parts[k], nodes[k].value, 1e-9);
}
#endif
