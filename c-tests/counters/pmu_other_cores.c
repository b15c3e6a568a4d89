/* Cores without PERF_METRICS, by default: regions of random mix and length, with sleeps in them. The truth of each node lies
 * within its interval, by RDPMC and by read(2), of this thread, another and a CPU; slots are cycles times the core's width. AMD's
 * level 2 and Skylake's retiring are counted root by root, level 3 of E-cores by the nodes of level 2, where the NMI watchdog leaves
 * the counters.
 * needs: other-core */
#include "cost.h"
#include "internals.h"
#include "perf.h"
#include "subtrees.h"
#include "truth.h"

enum { REGIONS = 2000, EXECUTIONS = 20000, SLOTS_OF_A_POINT = 6000 };
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
        if (!(node->low <= true_share && true_share <= node->high) || (l1.slots >= (is_ratio(node, &info) ? 100 : 1) * SLOTS_OF_A_POINT && off > 0.01 && what[0] == 'R'))
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
    const struct known_mix mix = random_known_mix(&seed, &info);
    const long length = 1000L << next_random(&seed) % 8;
    int naps = next_random(&seed) % 8 == 0;
    if (naps)
        nap(); /* the next reading takes the slow path */
    shares_of_known(&mix, &info, truth);
    runs_at(&mix);
    td_must(td_read(td, &before));
    work(length / 2);
    if (next_random(&seed) % 8 == 0)
        naps++, nap();
    work(length / 2);
    td_must(td_read(td, &after));
    nodes_are(&before, &after, truth, "RDPMC");
    td_must(td_decode_l1(&before, &after, &l1));
    CHECK(l1.running == 1.0);
    if (naps == 0 && !(before.flags & WORK) && !(after.flags & WORK) && own(&before)->base.error == own(&after)->base.error) {
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
    struct known_mix mixes[4];
    struct node_truth truth = {0};
    double mean[SHARES];
    uint32_t count = 0;
    memset(&sum, 0, sizeof sum);
    for (int k = 0; k < 4; k++) {
        mixes[k] = random_known_mix(&seed, &info);
        add_stretch(&truth, &mixes[k], 1);
    }
    node_shares(&truth, &info, mean);
    for (int i = 0; i < EXECUTIONS; i++) {
        if (i % 500 == 0)
            nap();
        runs_at(&mixes[i % 4]);
        td_must(td_sum_begin(td, &sum));
        work(500);
        td_must(td_sum_end(td, &sum));
    }
    CHECK_EQ(sum.executions, EXECUTIONS);
    CHECK_EQ(sum.measured, EXECUTIONS);
    /* (skid_of_counters, docs/error-bound.md) */
    const double skid = EXECUTIONS * 2.0 * (320 + 80 * info.counters) / (double)sum.slots;
    td_must(td_sum_decode_tree(&sum, nodes, MOST_NODES, &count));
    for (const struct td_node *node = nodes; node < nodes + count; node++) {
        if (takes_too_many(node))
            continue;
        CHECK(node->measured && node->low <= mean[node->id] && mean[node->id] <= node->high);
        /* what the library executes itself is measured: less is in doubt than the skid of the readings of each, either way */
        CHECK(node->high - node->low < 2 * skid);
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
        const struct known_mix mix = random_known_mix(&seed, &info);
        shares_of_known(&mix, &info, truth);
        runs_at(&mix);
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
        const int all = options.subtree == TD_NODE_RETIRING || options.subtree == TD_NODE_FRONTEND_BOUND;
        if (!all && smt_is_on()) {
            CHECK_EQ(td_open(&td, &options), -ENODEV);
            CHECK(last_error_with("SMT is on") && last_error_with("smt/control"));
            continue;
        }
        td_must(td_open(&td, &options));
        const struct td_info part = info_of(td);
        CHECK_EQ(part.path, TD_PATH_RDPMC);
        CHECK_EQ(part.level, 2);
        CHECK_EQ(part.counters, 6);
        for (int k = 0; k < 5; k++) {
            const struct known_mix mix = random_known_mix(&seed, &part);
            uint32_t count = 0;
            shares_of_known(&mix, &part, truth);
            runs_at(&mix);
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
                } else { /* no mispredicts and no restarts; no cycle that waits */
                    CHECK(may_be_unmeasured(node, &part, truth, (double)node->whole));
                }
            }
        }
        td_close(td);
    }
}

/* Heavy operations of Skylake, by counts that the machine makes up: each instruction is one of a cycle, and some were fused. */
static void retiring_of_skylake(void)
{
    struct td_options options = options_of(0, 0);
    struct td_node nodes[MOST_NODES];
    struct td_sample before, after;
    double truth[SHARES];
    uint32_t count = 0;
    options.subtree = TD_NODE_RETIRING;
    td_must(td_open(&td, &options));
    CHECK(info_of(td).level == 2 && info_of(td).counters == 6 && info_of(td).path == TD_PATH_RDPMC);
    for (unsigned retiring = 10; retiring < 27; retiring += 4) {
        const struct vm_mix mix = {.retiring = retiring, .bad = 4, .frontend = 10};
        const struct known_mix known = known_mix(mix, &info, -1);
        shares_of_known(&known, &info, truth);
        truth[TD_NODE_HEAVY_OPERATIONS] = fmax(0, fmin(truth[TD_NODE_RETIRING], truth[TD_NODE_RETIRING] + (made_up(0xc2, 4) - 1) / 4));
        truth[TD_NODE_LIGHT_OPERATIONS] = truth[TD_NODE_RETIRING] - truth[TD_NODE_HEAVY_OPERATIONS];
        mix_is(known.mix);
        td_must(td_read(td, &before));
        work(300000);
        td_must(td_read(td, &after));
        td_must(td_decode_tree(&before, &after, nodes, MOST_NODES, &count));
        CHECK_EQ(count, 12);
        for (const struct td_node *node = nodes; node < nodes + count; node++) {
            CHECK_EQ(node->measured, node->level == 1 || node->parent == TD_NODE_RETIRING);
            if (!node->measured)
                continue;
            CHECK(node->low <= truth[node->id] && truth[node->id] <= node->high);
            CHECK_NEAR(node->value, truth[node->id], 0.01);
        }
    }
    td_close(td);
    options.subtree = TD_NODE_BACKEND_BOUND;
    CHECK_EQ(td_open(&td, &options), -ENOTSUP);
    CHECK(last_error_with("backend bound, which takes 9"));
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
        contention_is_known(&info);
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
    if (core_is("mont (")) /* of servers; Tremont has four counters */
        subtrees_of_e_core(0, 0);
    if (core_is("Skylake"))
        retiring_of_skylake();
    CHECK_EQ(refused(0, info.level + 1), -ENOTSUP);
    CHECK_EQ(refused(0, 4), -EINVAL); /* which is no level of any CPU */
    CHECK_EQ(refused(TD_FLAG_REGISTERS, 0), -ENODEV);
    CHECK(last_error_with("TD_SOURCE_REGISTERS") && last_error_with(info.core));
    CHECK_EQ(refused(TD_FLAG_E_CORES, 0), -ENOTSUP);
    return 0;
}
