/* TD_FLAG_DROPPING: the slots that INT_MISC.UOP_DROPPING counts are in frontend bound and fetch latency by PERF_METRICS'
 * definition (td_decode_tree_as), and in bad speculation and machine clears as counted; all other nodes are the same.
 * needs: counters */
#include "perf.h"
#include "pmu.h"

enum { INSTRUCTIONS = 1000000, NODES = 16 };

static const struct vm_mix MIX = {20, 20, 12, 8, 8, 8, 8};

static void run(void)
{
    mix_is(MIX);
    work(INSTRUCTIONS);
}

static td_t *opened(uint32_t flags)
{
    const struct td_options options = options_of(flags, 0);
    td_t *td = NULL;
    const int code = td_open(&td, &options);
    if (code == -ENOTSUP || code == -ENODEV)
        SKIP("%s", last_error_with(""));
    td_must(code);
    return td;
}

/* Nodes of the work by a handle; fails with `code`. */
static uint32_t nodes_of(td_t *td, uint32_t definition, struct td_node *nodes, int code)
{
    struct td_sample before, after;
    uint32_t count = 0;
    mix_is(MIX);
    td_must(td_read(td, &before));
    run();
    td_must(td_read(td, &after));
    CHECK_EQ(td_decode_tree_as(&before, &after, definition, nodes, nodes ? NODES : 0, &count), code);
    return count;
}

/* What the event counts of the same work, as a part of its slots. */
static double dropped(struct td_info info)
{
    struct perf_group group = {{0}, 0};
    uint64_t n = 0;
    const uint64_t code = info.level == 1 ? 0x100d : 0x10ad;
    add_event(&group, in_user_mode(event_of(PERF_TYPE_RAW, code)), 0, -1, -1);
    group_runs(&group);
    run();
    CHECK_EQ(read(group.fd[0], &n, sizeof n), sizeof n);
    group_ends(&group);
    return (double)n / ((double)INSTRUCTIONS * info.slots_per_cycle);
}

int main(void)
{
    struct td_options wrong = options_of(TD_FLAG_DROPPING, 0);
    struct td_node counted[NODES], metrics[NODES];
    td_t *td = NULL;
    needs_known_mix();
    CHECK_EQ(td_open(&td, &wrong), -EINVAL);
    wrong.flags |= TD_FLAG_REGISTERS;
    CHECK_EQ(td_open(&td, &wrong), -EINVAL);

    td = opened(TD_FLAG_COUNTERS | TD_FLAG_DROPPING);
    const struct td_info info = info_of(td);
    CHECK_EQ(info.counters, info.level == 1 ? 4 : 8);
    const uint32_t count = nodes_of(td, TD_AS_COUNTED, counted, 0);
    CHECK_EQ(nodes_of(td, TD_AS_PERF_METRICS, metrics, 0), count);
    nodes_of(td, TD_AS_PERF_METRICS + 1, NULL, -EINVAL);
    td_close(td);
    const double part = dropped(info);
    CHECK(part > 0.01);
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t id = counted[k].id;
        const double more = id == TD_NODE_FRONTEND_BOUND || id == TD_NODE_FETCH_LATENCY       ? part
                            : id == TD_NODE_BAD_SPECULATION || id == TD_NODE_MACHINE_CLEARS ? -part
                                                                                             : 0;
        CHECK(metrics[k].id == id && metrics[k].measured == counted[k].measured);
        if (!counted[k].measured)
            continue;
        CHECK_NEAR(metrics[k].value, counted[k].value + more, 0.001);
        CHECK(metrics[k].low <= metrics[k].value && metrics[k].value <= metrics[k].high);
        CHECK(metrics[k].high - metrics[k].low < 0.01);
    }
    printf("dropped: %.2f %% of the slots\n", 100 * part);

    td = opened(TD_FLAG_COUNTERS);
    nodes_of(td, TD_AS_PERF_METRICS, metrics, -ENOTSUP);
    CHECK(last_error_with("TD_FLAG_DROPPING") != NULL);
    td_close(td);
    td = opened(TD_FLAG_REGISTERS);
    CHECK_EQ(nodes_of(td, TD_AS_PERF_METRICS, metrics, 0), 12);
    td_close(td);
    return 0;
}
