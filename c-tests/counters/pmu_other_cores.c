/* Cores without PERF_METRICS, by default: regions of random mix and length, with sleeps in them. The truth of each node lies
 * within its interval, by RDPMC and by read(2), of this thread, another and a CPU; slots are cycles times the core's width. AMD's
 * level 2 is counted root by root, where the NMI watchdog leaves the counters.
 * needs: other-core */
#include "cost.h"
#include "perf.h"

enum { SHARES = TD_NODE_PIPELINE_RESTARTS + 1 }; /* by the nodes' ids */
enum { REGIONS = 2000, EXECUTIONS = 20000, SLOTS_OF_A_POINT = 6000, MOST_NODES = 16 };
enum { WORK = TD_SAMPLE_WORK_AFTER | TD_SAMPLE_WORK_BEFORE }; /* of a reading on the slow path */
static uint64_t seed;
static td_t *td;
static struct td_info info;

static void nap(void)
{
    const struct timespec moment = {0, 1000 * (long)(1 + next_random(&seed) % 200)};
    nanosleep(&moment, NULL);
}

static int core_is(const char *name) { return strstr(info.core, name) != NULL; }

static double contention; /* the machine's property smt-contention, as a share */

/* Counted by perf events of the test's own, while the backend has slots enough. */
static double contention_here(void)
{
    struct perf_group group = {.count = 0};
    uint64_t slots, cycles;
    const int fd = add_event(&group, in_user_mode(event_of(PERF_TYPE_RAW, 0x1000060a0)), 0, -1, -1);
    const int clock = add_event(&group, in_user_mode(event_of(PERF_TYPE_RAW, 0x76)), 0, -1, -1);
    mix_is((struct vm_mix){.retiring = 1});
    group_runs(&group);
    work(1000000);
    group_stops(&group);
    CHECK(read(fd, &slots, sizeof slots) == sizeof slots && read(clock, &cycles, sizeof cycles) == sizeof cycles);
    group_ends(&group);
    return round(64.0 * (double)slots / (double)cycles / info.slots_per_cycle) / 64;
}

/* What an event that is none of the emulated machine's topdown events counts in a cycle of an instruction (event_rate in
 * vm/qemu-intel-pmu.patch). */
static double made_up(uint32_t event, uint32_t umask)
{
    return ((event * 2654435761u) ^ (umask * 40503u)) % 613 / 1024.0;
}

/* A mix of which this core's events leave no share below zero. */
static struct vm_mix mix_of_this_core(void)
{
    struct vm_mix mix = random_mix(&seed);
    if (core_is("Skylake")) /* bad speculation is what was issued, and recovery, less retiring: 27/64 in all */
        mix.retiring %= 27, mix.frontend %= 37;
    return mix;
}

/* The shares that this core's events have on the emulated machine: those of the mix, but of events that it does not know: then
 * what the published formula makes of them. */
static void truth_here(struct vm_mix mix, double *share)
{
    const struct truth truth = truth_of(mix);
    double *retiring = &share[TD_NODE_RETIRING], *bad = &share[TD_NODE_BAD_SPECULATION];
    double *frontend = &share[TD_NODE_FRONTEND_BOUND], *backend = &share[TD_NODE_BACKEND_BOUND];
    memset(share, 0, SHARES * sizeof *share);
    memcpy(retiring, truth.l1, sizeof truth.l1);
    share[TD_NODE_BRANCH_MISPREDICTS] = truth.l2[2], share[TD_NODE_MACHINE_CLEARS] = truth.l2[3];
    share[TD_NODE_IFETCH_LATENCY] = truth.l2[4], share[TD_NODE_IFETCH_BANDWIDTH] = truth.l2[5];
    share[TD_NODE_RESOURCE_BOUND] = truth.l2[6], share[TD_NODE_CORE_BOUND] = truth.l2[7];
    if (core_is("Skylake")) {
        *bad = made_up(0x0e, 1) / 4 + made_up(0x0d, 1) - *retiring;
        *backend = 1 - *retiring - *bad - *frontend;
        const double mispredicts = floor(mix.bad * mix.mispredicts / 8.0) / 1024, clears = made_up(0xc3, 1);
        share[TD_NODE_BRANCH_MISPREDICTS] = *bad * mispredicts / (mispredicts + clears);
        share[TD_NODE_MACHINE_CLEARS] = *bad - share[TD_NODE_BRANCH_MISPREDICTS];
        share[TD_NODE_FETCH_LATENCY] = truth.l2[4], share[TD_NODE_FETCH_BANDWIDTH] = truth.l2[5];
    } else if (core_is("Tremont")) {
        *retiring = made_up(0xc2, 0) / 4, *frontend = made_up(0x71, 0) / 4, *backend = made_up(0x74, 0) / 4;
        *bad = 1 - *retiring - *frontend - *backend;
    }
    share[TD_NODE_SMT_CONTENTION] = fmin(contention, *backend); /* from the backend's part */
    *backend -= share[TD_NODE_SMT_CONTENTION];
}

static double share_of(const struct td_l1 *l1, uint32_t id)
{
    double share[4];
    l1_array(l1, share);
    return id == TD_NODE_SMT_CONTENTION ? l1->smt_contention : share[id - TD_NODE_RETIRING];
}

/* What Skylake's counters do not hold. */
static int takes_too_many(const struct td_node *node)
{
    return core_is("Skylake") && node->level == 2 &&
           (node->parent == TD_NODE_RETIRING || node->parent == TD_NODE_BACKEND_BOUND);
}

/* Whose share is a ratio of two rare events. */
static int is_ratio(const struct td_node *node)
{
    return core_is("Skylake") && node->parent == TD_NODE_BAD_SPECULATION;
}

/* All nodes between two samples contain the truth, roots add up to 1, and td_l1 is the same; no node is left out. */
static void nodes_are(const struct td_sample *from, const struct td_sample *to, const double *truth, const char *what)
{
    struct td_node nodes[MOST_NODES];
    struct td_l1 l1;
    double sum = 0;
    uint32_t count = 0;
    td_must(td_decode_tree(from, to, nodes, MOST_NODES, &count));
    td_must(td_decode_l1(from, to, &l1));
    CHECK(count >= 4 && count <= MOST_NODES);
    for (const struct td_node *node = nodes; node < nodes + count; node++) {
        if (takes_too_many(node)) {
            CHECK(!node->measured && isnan(node->value) && isnan(node->low) && isnan(node->high));
            continue;
        }
        CHECK(node->measured && node->level <= info.level);
        const double true_share = truth[node->id], off = fabs(node->value - true_share);
        if (node->parent == TD_NODE_NONE) {
            sum += node->value;
            CHECK(share_of(&l1, node->id) == node->value);
        }
        if (!(node->low <= true_share && true_share <= node->high) || (l1.slots >= (is_ratio(node) ? 100 : 1) * SLOTS_OF_A_POINT && off > 0.01 && what[0] == 'R'))
            FAIL("%s: %s of %lu slots: %f is not %f, between %f and %f", what, td_node_name(node->id),
                 (unsigned long)l1.slots, node->value, true_share, node->low, node->high);
    }
    CHECK_NEAR(sum, 1, 1e-9);
    CHECK_EQ(l1.slots % info.slots_per_cycle, 0);
}

static void one_region(void)
{
    struct td_sample before, after;
    struct td_l1 l1;
    double truth[SHARES];
    const struct vm_mix mix = mix_of_this_core();
    const long length = 1000L << next_random(&seed) % 8;
    int naps = next_random(&seed) % 8 == 0;
    if (naps)
        nap(); /* the next reading takes the slow path */
    truth_here(mix, truth);
    mix_is(mix);
    td_must(td_read(td, &before));
    work(length / 2);
    if (next_random(&seed) % 8 == 0)
        naps++, nap();
    work(length / 2);
    td_must(td_read(td, &after));
    nodes_are(&before, &after, truth, "RDPMC");
    td_must(td_decode_l1(&before, &after, &l1));
    CHECK(l1.running == 1.0);
    if (naps == 0 && !(before.flags & WORK) && !(after.flags & WORK)) {
        CHECK_NEAR((double)l1.slots, (double)length * info.slots_per_cycle, 1000.0 * info.slots_per_cycle);
        CHECK_NEAR(l1.error, 0, (core_is("Skylake") ? 5500 : 4000) / (double)l1.slots + 0.001); /* skid alone, there of three */
    }
    if (l1.slots > 1000000) /* and what the library does after a switch */
        CHECK(l1.error < 0.05);
}

/* Many short executions of one region, of four mixes: each is measured, and the sum is their mean. */
static void executions(void)
{
    struct td_sum sum;
    struct td_node nodes[MOST_NODES];
    struct vm_mix mixes[4];
    double truth[SHARES], mean[SHARES] = {0};
    uint32_t count = 0;
    memset(&sum, 0, sizeof sum);
    for (int k = 0; k < 4; k++) {
        mixes[k] = mix_of_this_core();
        truth_here(mixes[k], truth);
        for (int n = 0; n < SHARES; n++)
            mean[n] += truth[n] / 4;
    }
    for (int i = 0; i < EXECUTIONS; i++) {
        if (i % 500 == 0)
            nap();
        mix_is(mixes[i % 4]);
        td_must(td_sum_begin(td, &sum));
        work(500);
        td_must(td_sum_end(td, &sum));
    }
    CHECK_EQ(sum.executions, EXECUTIONS);
    CHECK_EQ(sum.measured, EXECUTIONS);
    td_must(td_sum_decode_tree(&sum, nodes, MOST_NODES, &count));
    for (const struct td_node *node = nodes; node < nodes + count; node++) {
        if (takes_too_many(node) || is_ratio(node)) /* (a mean of ratios is no ratio) */
            continue;
        CHECK(node->measured && node->low <= mean[node->id] && mean[node->id] <= node->high);
        CHECK_NEAR(node->value, mean[node->id], 0.01);
    }
}

static struct td_sample any;
static __attribute__((noinline)) void reading(void) { td_read(td, &any); }

/* A region of each of five mixes, as a handle with these options reads it by read(2). */
static void by_read(uint32_t flags, uint32_t target, int32_t id)
{
    struct td_options options = options_of(flags, 0);
    struct td_sample before, after;
    double truth[SHARES];
    td_t *other;
    options.target = target;
    options.id = id;
    td_must(td_open(&other, &options));
    CHECK_EQ(info_of(other).path, TD_PATH_READ);
    CHECK(info_of(other).note[0] != 0);
    for (int k = 0; k < 5; k++) {
        const struct vm_mix mix = mix_of_this_core();
        truth_here(mix, truth);
        mix_is(mix);
        td_must(td_read(other, &before));
        work(300000);
        td_must(td_read(other, &after));
        nodes_are(&before, &after, truth, "read(2)");
    }
    td_close(other);
}

/* Level 2 of each root of Zen, in a handle of its own: five mixes, in regions so long that a few mispredicts more or less do not
 * tell. Other nodes of level 2 are not measured. */
static void subtrees(void)
{
    struct td_options options = options_of(0, 0);
    struct td_node nodes[MOST_NODES];
    struct td_sample before, after;
    double truth[SHARES];
    for (options.subtree = TD_NODE_RETIRING; options.subtree <= TD_NODE_BACKEND_BOUND; options.subtree++) {
        td_must(td_open(&td, &options));
        CHECK_EQ(info_of(td).path, TD_PATH_RDPMC);
        CHECK_EQ(info_of(td).level, 2);
        CHECK_EQ(info_of(td).counters, 6);
        const int all = options.subtree == TD_NODE_RETIRING || options.subtree == TD_NODE_FRONTEND_BOUND;
        for (int k = 0; k < 5; k++) {
            const struct vm_mix mix = mix_of_this_core();
            const struct truth parts = truth_of(mix);
            uint32_t count = 0;
            truth_here(mix, truth);
            truth[TD_NODE_MICROCODE] = parts.l2[0], truth[TD_NODE_FASTPATH] = parts.l2[1];
            truth[TD_NODE_BRANCH_MISPREDICTS] = parts.l2[2], truth[TD_NODE_PIPELINE_RESTARTS] = parts.l2[3];
            truth[TD_NODE_FETCH_LATENCY] = parts.l2[4], truth[TD_NODE_FETCH_BANDWIDTH] = parts.l2[5];
            if (!all) /* the machine says that no other thread runs, so what goes there is the backend's */
                truth[TD_NODE_BACKEND_BOUND] += truth[TD_NODE_SMT_CONTENTION];
            truth[TD_NODE_MEMORY_BOUND] = truth[TD_NODE_BACKEND_BOUND] * mix.memory / 16.0;
            truth[TD_NODE_CORE_BOUND] = truth[TD_NODE_BACKEND_BOUND] - truth[TD_NODE_MEMORY_BOUND];
            mix_is(mix);
            td_must(td_read(td, &before));
            work(3000000);
            td_must(td_read(td, &after));
            td_must(td_decode_tree(&before, &after, nodes, MOST_NODES, &count));
            CHECK_EQ(count, all ? 13 : 12);
            for (const struct td_node *node = nodes; node < nodes + count; node++) {
                if (node->level == 2 && node->parent != options.subtree) {
                    CHECK(!node->measured && isnan(node->value) && isnan(node->low) && isnan(node->high));
                } else if (node->measured) {
                    if (!(node->low <= truth[node->id] && truth[node->id] <= node->high))
                        FAIL("%s: %f, between %f and %f, is not %f", td_node_name(node->id), node->value, node->low, node->high,
                             truth[node->id]);
                    CHECK_NEAR(node->value, truth[node->id], 0.01);
                } else { /* a ratio of nothing: no mispredicts and no restarts; no cycle that waits */
                    const double alone = truth[TD_NODE_BACKEND_BOUND] - truth[TD_NODE_SMT_CONTENTION];
                    CHECK(options.subtree == TD_NODE_BAD_SPECULATION ? mix.bad == 0
                                                                     : options.subtree == TD_NODE_BACKEND_BOUND && alone <= 0);
                }
            }
        }
        td_close(td);
    }
}

static int refused(uint32_t flags, uint32_t level)
{
    const struct td_options options = options_of(flags, level);
    td_t *none = NULL;
    const int code = td_open(&none, &options);
    CHECK(none == NULL);
    return code;
}

int main(int argc, char **argv)
{
    needs_known_mix();
    seed = seed_of(argc, argv);
    td_must(td_open(&td, NULL));
    info = info_of(td);
    printf("%s, level %u, %u counters, path %u%s%s; seed %lu\n", info.core, info.level, info.counters, info.path,
           info.note[0] ? ": " : "", info.note, (unsigned long)seed);
    CHECK_EQ(info.path, TD_PATH_RDPMC);
    CHECK(info.counters >= 3 && info.slots_per_cycle >= 4);
    if (core_is("Zen")) { /* which has no counters for both */
        td_close(td);
        contention = contention_here();
        td_must(td_open(&td, NULL));
    }
    for (int i = 0; i < REGIONS; i++)
        one_region();
    executions();
    costs("td_read", reading, 100);
    td_close(td);
    td_must(td_open(&td, &(struct td_options){.size = sizeof(struct td_options), .flags = TD_FLAG_COUNTERS}));
    CHECK(strcmp(info_of(td).core, info.core) == 0 && info_of(td).level == info.level);
    td_close(td);

    if (info.level > 1) { /* E-cores have other nodes than td_l2 */
        struct td_sample sample;
        struct td_l2 l2;
        td_must(td_open(&td, NULL));
        work(1000);
        td_must(td_read(td, &sample));
        CHECK_EQ(td_decode_l2(NULL, &sample, &l2), -ENOTSUP);
        td_close(td);
    }
    by_read(TD_FLAG_NO_RDPMC, TD_TARGET_SELF, 0);
    by_read(0, TD_TARGET_TASK, (int32_t)syscall(SYS_gettid));
    struct td_options options = options_of(0, 0);
    options.subtree = TD_NODE_FRONTEND_BOUND;
    CHECK_EQ(td_open(&td, &options), -ENOTSUP);
    if (core_is("Zen")) {
        CHECK(last_error_with("nmi_watchdog"));
        watchdog_is(0);
        subtrees();
        watchdog_is(1);
    } else {
        CHECK(last_error_with("subtree") && last_error_with(info.core));
    }
    CHECK_EQ(refused(0, info.level + 1), info.level == 1 ? -ENOTSUP : -EINVAL); /* 3 is no level of any CPU */
    CHECK_EQ(refused(TD_FLAG_REGISTERS, 0), -ENODEV);
    CHECK(last_error_with("TD_FLAG_REGISTERS") && last_error_with(info.core));
    CHECK_EQ(refused(TD_FLAG_E_CORES, 0), -ENOTSUP);
    return 0;
}
