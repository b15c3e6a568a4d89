/* TD_FLAG_DROPPING: the slots that INT_MISC.UOP_DROPPING counts, at a rate that the program sets, are in frontend bound and fetch latency as
 * both sources count them, and in bad speculation and machine clears as published (td_decode_tree_as); all other nodes are the same.
 * needs: counters */
#include "perf.h"
#include "pmu.h"

enum { INSTRUCTIONS = 1000000, NODES = 16, DROPPING = 0x10ad };

static const struct vm_mix MIX = {20, 20, 12, 8, 8, 8, 8};
/* of a slot, so many 65536ths: less than fetch latency has */
static const unsigned PARTS[] = {0, 1000, 5000};

static td_t *opened(uint32_t flags)
{
    const struct td_options options = options_of(flags, 0);
    td_t *td = NULL;
    const int code = td_open(&td, &options);
    if (code == -ENODEV)
        SKIP("%s", last_error_with(""));
    td_must(code);
    return td;
}

/* Nodes of the work, by a handle, under a definition; fails with `code`. */
static uint32_t nodes_of(td_t *td, unsigned part, uint32_t definition, struct td_node *nodes, int code)
{
    struct td_sample before, after;
    uint32_t count = 0;
    mix_is(MIX);
    vm_rate_set(DROPPING, (uint64_t)part * info_of(td).slots_per_cycle, VM_PER_CYCLE);
    td_must(td_read(td, &before));
    work(INSTRUCTIONS);
    td_must(td_read(td, &after));
    CHECK_EQ(td_decode_tree_as(&before, &after, definition, nodes, nodes ? NODES : 0, &count), code);
    return count;
}

/* Both definitions have the truth in each interval. */
static void both_are_true(td_t *td, unsigned part)
{
    struct td_node nodes[NODES];
    const struct truth truth = truth_of(MIX);
    for (uint32_t definition = TD_AS_COUNTED; definition <= TD_AS_PUBLISHED; definition++) {
        const double dropped = definition == TD_AS_PUBLISHED ? part / 65536.0 : 0;
        const uint32_t count = nodes_of(td, part, definition, nodes, 0);
        CHECK(count >= 12);
        for (uint32_t k = 0; k < count; k++) {
            const uint32_t id = nodes[k].id;
            if (!nodes[k].measured)
                continue;
            CHECK(id >= 1 && id <= 12);
            double is = id <= 4 ? truth.l1[id - 1] : truth.l2[id - 5];
            if (id == TD_NODE_FRONTEND_BOUND || id == TD_NODE_FETCH_LATENCY)
                is -= dropped;
            if (id == TD_NODE_BAD_SPECULATION || id == TD_NODE_MACHINE_CLEARS)
                is += dropped;
            printf("%u/65536 %s %s: %.5f [%.5f, %.5f], truth %.5f\n", part, dropped > 0 ? "published" : "counted", td_node_name(id),
                   nodes[k].value, nodes[k].low, nodes[k].high, is);
            CHECK(nodes[k].low - 1e-6 <= is && is <= nodes[k].high + 1e-6);
            CHECK(nodes[k].high - nodes[k].low < 0.02);
        }
    }
}

int main(void)
{
    struct td_options wrong = options_of(TD_FLAG_DROPPING, 0);
    td_t *td = NULL;
    needs_known_mix();
    CHECK_EQ(td_open(&td, &wrong), -EINVAL);
    wrong.flags |= TD_FLAG_REGISTERS;
    CHECK_EQ(td_open(&td, &wrong), -EINVAL);
    mix_is(MIX);
    if (!vm_rate_set(DROPPING, 0, VM_PER_CYCLE))
        SKIP("this machine's rates cannot be set");

    wrong = options_of(TD_FLAG_COUNTERS | TD_FLAG_DROPPING, 0);
    const int code = td_open(&td, &wrong);
    if (code == -ENOTSUP) { /* Ice Lake's published metrics take more; Lion Cove's are as they are counted */
        const int less = last_error_with("CLEARS_COUNT") != NULL;
        td = opened(TD_FLAG_COUNTERS);
        nodes_of(td, 0, TD_AS_PUBLISHED, NULL, less ? -ENOTSUP : 0);
        td_close(td);
        td = opened(TD_FLAG_REGISTERS);
        nodes_of(td, 0, TD_AS_PUBLISHED, NULL, less ? -ENOTSUP : 0);
        td_close(td);
        return 0;
    }
    td_must(code);
    CHECK_EQ(info_of(td).counters, 8);
    for (size_t k = 0; k < sizeof PARTS / sizeof *PARTS; k++)
        both_are_true(td, PARTS[k]);
    nodes_of(td, 0, TD_AS_PUBLISHED + 1, NULL, -EINVAL);
    td_close(td);

    static const uint32_t WITHOUT[] = {TD_FLAG_COUNTERS, TD_FLAG_REGISTERS};
    for (int k = 0; k < 2; k++) {
        td = opened(WITHOUT[k]);
        nodes_of(td, 0, TD_AS_PUBLISHED, NULL, -ENOTSUP);
        CHECK(last_error_with("TD_FLAG_DROPPING") != NULL);
        td_close(td);
    }
    return 0;
}
