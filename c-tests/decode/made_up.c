/* A core that there is not, with general-purpose counters and a tree of three levels, is simulated by its name: each node's truth lies
 * within its interval, whatever its counters count; sums of regions have the same nodes; td_decode_l1 has the roots. */
#include "check.h"

enum { NODES = 8, INPUTS = 8 };
static const char *const NAMES[NODES] = {"tma_retiring",     "tma_bad_speculation", "tma_frontend_bound",      "tma_backend_bound",
                                         "tma_memory_bound", "tma_core_bound",      "tma_made_up_cache_bound", "tma_made_up_dram_bound"};
static const uint32_t LEVELS[NODES] = {1, 1, 1, 1, 2, 2, 3, 3};

/* In a cycle of four slots: cycles, slots that retire, that stay empty, that are refused; cycles that wait, for loads, past L1,
 * past L2. */
static const double MIXES[][INPUTS] = {
    {1, 1, 0.4, 2.4, 0.6, 0.45, 0.3, 0.2},
    {1, 3.6, 0.2, 0.1, 0.05, 0.02, 0.01, 0},
    {1, 0.1, 3.2, 0.4, 0.5, 0.25, 0.2, 0.05},
    {1, 0.4, 0, 3.6, 0.9, 0.9, 0.9, 0.85},
};

static void truth_of(const double *counted, double *truth)
{
    truth[0] = counted[1] / 4, truth[2] = counted[2] / 4, truth[3] = counted[3] / 4;
    truth[1] = 1 - truth[0] - truth[2] - truth[3];
    truth[4] = truth[3] * counted[5] / counted[4], truth[5] = truth[3] - truth[4];
    truth[6] = counted[6] - counted[7], truth[7] = counted[7];
}

static void nodes_are(const struct td_node *nodes, uint32_t count, const double *truth, uint64_t slots)
{
    CHECK_EQ(count, NODES);
    for (uint32_t k = 0; k < count; k++) {
        const struct td_node *node = &nodes[k];
        CHECK_EQ(strcmp(td_node_name(node->id), NAMES[k]), 0);
        CHECK_EQ(node->level, LEVELS[k]);
        CHECK_EQ(node->unit, k < 6 ? TD_UNIT_SLOTS : TD_UNIT_CLOCKS);
        CHECK_EQ(node->measured, 1);
        CHECK(node->flags & TD_SAMPLE_SIMULATED);
        CHECK(k >= 6 ? node->whole / 2 <= slots / 8 : node->whole == slots);
        CHECK(0 <= node->low && node->low <= node->value && node->value <= node->high && node->high <= 1);
        if (!(node->low <= truth[k] && truth[k] <= node->high))
            FAIL("%s: %.9g is not between %.9g and %.9g", NAMES[k], truth[k], node->low, node->high);
    }
}

static td_t *made_up(uint32_t level)
{
    struct td_options options;
    td_t *td;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.level = level;
    td_must(td_simulate(&td, &options, "made-up core"));
    return td;
}

static void measure(td_t *td, const double *counted)
{
    struct td_sample before, after;
    struct td_node nodes[NODES];
    struct td_sum sum;
    struct td_l1 l1;
    struct td_l2 l2;
    double truth[NODES], share[4], widest = 0;
    uint32_t count;
    truth_of(counted, truth);
    td_must(td_simulate_counters(td, counted, INPUTS));
    td_must(td_reset(td));
    memset(&sum, 0, sizeof sum);
    for (int i = 0; i < 100; i++) {
        td_must(td_read(td, &before));
        work(20000u * (unsigned)(i + 1));
        td_must(td_read(td, &after));
        td_must(td_decode_tree(&before, &after, nodes, NODES, &count));
        nodes_are(nodes, count, truth, after.slots - before.slots);
        td_must(td_decode_l1(&before, &after, &l1));
        l1_array(&l1, share);
        for (int k = 0; k < 4; k++) {
            CHECK(share[k] == nodes[k].value);
            CHECK(nodes[k].high - nodes[k].value <= l1.error && nodes[k].value - nodes[k].low <= l1.error);
        }
        CHECK_EQ(td_decode_l2(&before, &after, &l2), -ENOTSUP);
        CHECK(last_error_with("td_decode_tree"));
        td_must(td_sum_add(&sum, &before, &after));
    }
    for (uint32_t k = 0; k < NODES; k++)
        widest = fmax(widest, nodes[k].high - nodes[k].low);
    CHECK(widest < 0.3); /* an interval says something */
    td_must(td_decode_tree(NULL, &after, nodes, NODES, &count));
    nodes_are(nodes, count, truth, after.slots);
    td_must(td_sum_decode_tree(&sum, nodes, NODES, &count));
    nodes_are(nodes, count, truth, sum.slots);

    memset(&sum, 0, sizeof sum);
    for (int i = 0; i < 200; i++) { /* each execution is measured */
        td_must(td_sum_begin(td, &sum));
        work(100000);
        td_must(td_sum_end(td, &sum));
    }
    CHECK_EQ(sum.executions, 200);
    CHECK_EQ(sum.measured, 200);
    td_must(td_sum_decode_tree(&sum, nodes, NODES, &count));
    nodes_are(nodes, count, truth, sum.slots);
    td_must(td_sum_l1(&sum, &l1));
    l1_array(&l1, share);
    for (int k = 0; k < 4; k++)
        CHECK(share[k] == nodes[k].value);
}

/* A name chooses the core, and what there is not is told. */
static void names(void)
{
    const double too_much[] = {65}, not_a_number[] = {NAN}, many[16] = {0};
    struct td_options options;
    struct td_info info;
    td_t *td, *other = simulated(0);
    memset(&options, 0, sizeof options);
    CHECK_EQ(td_simulate(NULL, NULL, "made-up core"), -EINVAL);
    CHECK_EQ(td_simulate(&td, NULL, NULL), -EINVAL);
    CHECK_EQ(td_simulate(&td, NULL, "no such core"), -EINVAL);
    CHECK(last_error_with("no such core") && last_error_with("Zen 4, 5, 6") && last_error_with("Skylake"));
    CHECK_EQ(td_simulate(&td, NULL, ""), -EINVAL);
    options.level = 4;
    CHECK_EQ(td_simulate(&td, &options, "made-up core"), -EINVAL);
    options.level = 3;
    CHECK_EQ(td_simulate(&td, &options, "Gracemont"), -ENOTSUP);
    options.level = 2;
    CHECK_EQ(td_simulate(&td, &options, "Tremont"), -ENOTSUP);

    td_must(td_simulate(&td, NULL, "made-up core"));
    td_must(td_get_info(td, &info));
    CHECK_EQ(strcmp(info.core, "made-up core"), 0);
    CHECK_EQ(info.level, 3);
    CHECK_EQ(info.path, TD_PATH_SIMULATED);
    CHECK_EQ(td_simulate_counters(NULL, MIXES[0], INPUTS), -EINVAL);
    CHECK_EQ(td_simulate_counters(td, NULL, INPUTS), -EINVAL);
    CHECK_EQ(td_simulate_counters(td, many, 16), -EINVAL);
    CHECK_EQ(td_simulate_counters(td, too_much, 1), -EINVAL);
    CHECK_EQ(td_simulate_counters(td, not_a_number, 1), -EINVAL);
    CHECK_EQ(td_simulate_counters(other, MIXES[0], INPUTS), -ENOTSUP);
    CHECK(last_error_with("td_simulate_mix"));
    struct td_mix mix = {.size = sizeof mix, .retiring = 1};
    CHECK_EQ(td_simulate_mix(td, &mix), -ENOTSUP);
    CHECK(last_error_with("td_simulate_counters"));
    td_close(td);
    td_close(other);

    td_must(td_simulate(&td, NULL, "Golden or Raptor Cove"));
    mix.retiring = 1, mix.heavy_operations = 0.5;
    td_must(td_simulate_mix(td, &mix));
    td_close(td);
}

int main(void)
{
    double truth[NODES];
    struct td_node nodes[NODES];
    struct td_sample after;
    uint32_t count;
    td_t *td = made_up(0);
    truth_of(MIXES[0], truth); /* as its table says */
    work(1000000);
    td_must(td_read(td, &after));
    td_must(td_decode_tree(NULL, &after, nodes, NODES, &count));
    nodes_are(nodes, count, truth, after.slots);
    for (size_t k = 0; k < sizeof MIXES / sizeof MIXES[0]; k++)
        measure(td, MIXES[k]);
    td_close(td);

    for (uint32_t level = 1; level <= 3; level++) {
        td = made_up(level);
        td_must(td_list_nodes(td, nodes, NODES, &count));
        for (uint32_t k = 0; k < count; k++)
            CHECK_EQ(nodes[k].measured, LEVELS[k] <= level);
        td_close(td);
    }
    names();
    return 0;
}
