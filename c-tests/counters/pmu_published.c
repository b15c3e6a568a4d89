/* Frontend bound, fetch latency and backend bound are Intel's published metrics: slots of INT_MISC.UOP_DROPPING are bad speculation
 * (machine clears), and on Ice Lake 5 for each INT_MISC.CLEARS_COUNT are backend bound. Exact while counters are free for these events;
 * else the truth is in the interval of each node, of levels 1 and 2 and of a sum. TD_FLAG_BARE and TD_AS_BARE: as registers and counters
 * have them.
 * needs: counters or general-counters */
#include "perf.h"
#include "published.h"

enum { INSTRUCTIONS = 1000000, NODES = 16 };

static const struct vm_mix MIX = {20, 8, 24, 8, 8, 8, 8};

/* Whether what corrects nodes was counted: then an interval is so narrow that the other definition's value is outside, which differs by
 * `dropped` or `cleared` slots. Else it contains both. */
enum how { TELLS_APART, HAS_BOTH };

static void are_true(const struct td_node *nodes, uint32_t count, int bare, enum how how, const char *what)
{
    int measured = 0, apart = 0;
    for (uint32_t k = 0; k < count; k++) {
        const double truth = truth_of_node(MIX, nodes[k].id, bare), other = truth_of_node(MIX, nodes[k].id, !bare);
        const int has_other = nodes[k].low <= other && other <= nodes[k].high;
        if (!nodes[k].measured)
            continue;
        measured++;
        apart += truth != other;
        if (!(nodes[k].low <= truth && truth <= nodes[k].high) || (truth != other && has_other != (how == HAS_BOTH)))
            FAIL("%s: %s is %.4f [%.4f, %.4f], truly %.4f, by the other definition %.4f", what, td_node_name(nodes[k].id), nodes[k].value,
                 nodes[k].low, nodes[k].high, truth, other);
    }
    CHECK(measured >= 4 && (apart > 0) == corrected);
}

static void runs_on(int first, int last)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    for (int cpu = first; cpu <= last; cpu++)
        CPU_SET(cpu, &cpus);
    CHECK_EQ(sched_setaffinity(0, sizeof cpus, &cpus), 0);
}

/* The work by a handle with these flags, on a P-core. */
static struct td_info by_level(uint32_t flags, uint32_t level, enum how how, const char *what)
{
    struct td_options options = options_of(flags, level);
    options.max_overhead_ppm = 1000000; /* each reading of registers begins with a fresh window, if it has to */
    const int bare = (flags & TD_FLAG_BARE) != 0;
    struct td_sample before, after;
    struct td_node nodes[NODES];
    struct td_l1 l1;
    struct td_l2 l2;
    struct td_sum sum;
    uint32_t count = 0;
    td_t *td = measured(&options);
    const struct td_info info = info_of(td);
    runs_on(0, 0);
    memset(&sum, 0, sizeof sum);
    mix_and_rates(MIX);
    td_must(td_read(td, &before));
    work(INSTRUCTIONS);
    td_must(td_read(td, &after));
    td_must(td_decode_tree(&before, &after, nodes, NODES, &count));
    are_true(nodes, count, bare, how, what);
    td_must(td_decode_l1(&before, &after, &l1));
    CHECK(fabs(l1.frontend_bound - truth_of_node(MIX, TD_NODE_FRONTEND_BOUND, bare)) <= l1.error);
    CHECK(fabs(l1.bad_speculation - truth_of_node(MIX, TD_NODE_BAD_SPECULATION, bare)) <= l1.error);
    CHECK(fabs(l1.backend_bound - truth_of_node(MIX, TD_NODE_BACKEND_BOUND, bare)) <= l1.error);
    if (has_l2(&info)) {
        td_must(td_decode_l2(&before, &after, &l2));
        CHECK(fabs(l2.fetch_latency - truth_of_node(MIX, TD_NODE_FETCH_LATENCY, bare)) <= l2.error);
        CHECK(fabs(l2.machine_clears - truth_of_node(MIX, TD_NODE_MACHINE_CLEARS, bare)) <= l2.error);
    }
    td_must(td_sum_add(&sum, &before, &after));
    td_must(td_sum_decode_tree(&sum, nodes, NODES, &count));
    are_true(nodes, count, bare, how, what);
    td_must(td_decode_tree_as(&before, &after, TD_AS_BARE, nodes, NODES, &count));
    /* (what the library executed between two windows of registers that are corrected may have dropped all that was dropped) */
    are_true(nodes, count, 1, info.counters == 0 && how == TELLS_APART && !bare ? HAS_BOTH : TELLS_APART, what);
    CHECK_EQ(td_decode_tree_as(&before, &after, TD_AS_BARE - 1, NULL, 0, &count), -EINVAL);
    CHECK_EQ(td_decode_tree_as(&before, &after, TD_AS_BARE + 1, NULL, 0, &count), -EINVAL);
    td_close(td);
    return info;
}

static struct td_info by(uint32_t flags, enum how how, const char *what) { return by_level(flags, 0, how, what); }

/* A virtual machine without SLOTS: both levels take all eight counters, and level 1 alone leaves one for what corrects it; or of four none. */
static void in_guest(void)
{
    const uint32_t all = by(0, HAS_BOTH, "guest").counters;
    CHECK(all == 4 || all == 8);
    CHECK_EQ(by_level(0, 1, all == 4 ? HAS_BOTH : TELLS_APART, "level 1 in a guest").counters, all == 4 ? 4 : 5);
    CHECK_EQ(by(TD_FLAG_BARE, TELLS_APART, "bare in a guest").counters, all);
}

/* Takes so many general counters for good. */
static void take(struct perf_group *group, int counters)
{
    for (int k = 0; k < counters; k++) {
        struct perf_event_attr attr = in_user_mode(event_of(PERF_TYPE_RAW, 0x00c5));
        attr.pinned = 1;
        add_event(group, attr, 0, -1, -1);
    }
    group_runs(group);
}

/* A handle that goes over to fewer counters while others hold some. */
static void relieved(uint32_t counters)
{
    const struct td_options options = options_of(0, 0);
    struct perf_group group = {{0}, 0};
    struct td_sample before, after;
    struct td_l1 l1;
    td_t *td = measured(&options);
    runs_on(0, 0);
    mix_and_rates(MIX);
    td_must(td_read(td, &before));
    take(&group, 4);
    td_must(td_read(td, &before)); /* which finds that it does not count */
    CHECK(info_of(td).level == 1 && info_of(td).counters == counters);
    td_must(td_read(td, &before));
    work(INSTRUCTIONS);
    td_must(td_read(td, &after));
    td_must(td_decode_l1(&before, &after, &l1));
    CHECK_NEAR(l1.frontend_bound, truth_of_node(MIX, TD_NODE_FRONTEND_BOUND, 0), l1.error);
    CHECK_NEAR(l1.bad_speculation, truth_of_node(MIX, TD_NODE_BAD_SPECULATION, 0), l1.error);
    CHECK_EQ(l1.flags & TD_SAMPLE_UNCORRECTED, corrected ? TD_SAMPLE_UNCORRECTED : 0);
    struct td_node nodes[NODES];
    struct td_sum sum;
    uint32_t count = 0;
    td_must(td_decode_tree(&before, &after, nodes, NODES, &count));
    are_true(nodes, count, 0, HAS_BOTH, "relieved");
    CHECK(nodes[0].id == TD_NODE_RETIRING && nodes[0].high - nodes[0].low < 0.02);
    memset(&sum, 0, sizeof sum);
    for (int k = 0; k < 50; k++) {
        td_must(td_sum_begin(td, &sum));
        work(INSTRUCTIONS / 50);
        td_must(td_sum_end(td, &sum));
    }
    td_must(td_sum_decode_tree(&sum, nodes, NODES, &count));
    are_true(nodes, count, 0, HAS_BOTH, "relieved, a sum");
    td_close(td);
    group_ends(&group);
}

int main(void)
{
    struct perf_group group = {{0}, 0};
    if (getenv("MACHINE") == NULL)
        needs_known_mix();
    runs_on(0, 0); /* of a hybrid CPU a P-core */
    td_t *td = counted();
    const struct td_info info = info_of(td);
    td_close(td);
    if (strstr(info.core, "Cove") == NULL)
        SKIP("no P-core with PERF_METRICS: %s", info.core);
    published_by(&info);
    if (!pmu_there()) {
        in_guest();
        return 0;
    }
    if (exists("/sys/bus/event_source/devices/cpu_atom")) { /* on both kinds of core, with an event more for the P-cores */
        runs_on(0, 63);
        CHECK_EQ(by(0, TELLS_APART, "hybrid").counters, corrected ? 5 : 4);
        runs_on(0, 63);
        CHECK_EQ(strstr(by(TD_FLAG_BARE, TELLS_APART, "bare hybrid").pmu, "cpu_atom") != NULL, !corrected);
    }
    const uint32_t bare = level_1_alone ? 3 : 7, all = bare + (uint32_t)(!corrected ? 0 : level_1_alone ? 2 : 1);

    CHECK_EQ(by(0, TELLS_APART, "all free").counters, all);
    CHECK_EQ(by(TD_FLAG_COUNTERS, TELLS_APART, "counters").counters, all);
    CHECK_EQ(by(TD_FLAG_COUNTERS | TD_FLAG_BARE, TELLS_APART, "bare counters").counters, bare);
    CHECK_EQ(by(TD_FLAG_BARE, TELLS_APART, "bare").counters, bare);
    CHECK_EQ(by(TD_FLAG_REGISTERS, TELLS_APART, "registers").counters, 0);
    by(TD_FLAG_REGISTERS | TD_FLAG_NO_RDPMC, TELLS_APART, "registers by read(2)");
    by(TD_FLAG_REGISTERS | TD_FLAG_BARE, TELLS_APART, "bare registers");
    if (!level_1_alone)
        relieved(4);
    take(&group, corrected ? 8 - (int)all + 1 : 1);
    CHECK_EQ(by(TD_FLAG_COUNTERS, HAS_BOTH, "one taken").counters, bare);
    group_ends(&group);
    const int moved = !corrected ? 0 : level_1_alone ? 2 : 1;
    take(&group, 8 - moved);
    CHECK_EQ(by(0, TELLS_APART, "one left").counters, 0);
    group_ends(&group);
    take(&group, 8);
    CHECK_EQ(by(0, HAS_BOTH, "none left").counters, 0);
    group_ends(&group);
    return 0;
}
