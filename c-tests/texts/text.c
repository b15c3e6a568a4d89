/* A core that its text alone describes (four-levels.txt): its tree of four levels, on the simulated PMU; or, as `text machine`, on the emulated
 * machine, where the rate of each event is set at random and each node has the truth within its interval. `c-tests/texts/check` builds a
 * library with the text, and runs this. */
#include "check.h"
#include "vm/mix.h"

enum { NODES = 16, REGIONS = 50, WIDTH = 6 };
enum { RETIRED = 0x01f1, STARVED = 0x02f1, REFUSED = 0x04f1, HEAVY = 0x01f2, MISPREDICTED = 0x02f2, EMPTY = 0x04f2, WAITS = 0x01f3,
       LOADS = 0x02f3, BEYOND_L2 = 0x04f3, BEYOND_L3 = 0x08f3, QUEUED = 0x10f3, CYCLES = 0x00f4 };

static uint64_t seed;

/* Sets how often an event happens in a cycle: about this much, which is returned as it is. */
static double rate(uint64_t event, double per_cycle)
{
    const uint64_t per65536 = (uint64_t)(per_cycle * 65536);
    CHECK(vm_rate_set(event, per65536, VM_PER_CYCLE));
    return (double)per65536 / 65536;
}

static double part(void) { return 0.05 + 0.9 * (double)(next_random(&seed) % 1000) / 1000; }

struct truth { const char *name; double share; };

/* Sets all rates at random, and tells what follows from them. */
static void truth_is(struct truth truth[16])
{
    const double retired = rate(RETIRED, WIDTH * 0.4 * part()), starved = rate(STARVED, WIDTH * 0.3 * part());
    const double refused = rate(REFUSED, WIDTH * 0.3 * part()), heavy = rate(HEAVY, retired * part());
    const double lost = WIDTH - retired - starved - refused, mispredicted = rate(MISPREDICTED, lost * part());
    const double empty = rate(EMPTY, starved * part() / WIDTH), waits = rate(WAITS, 0.9 * part()), loads = rate(LOADS, waits * part());
    const double beyond_l2 = rate(BEYOND_L2, loads * part()), beyond_l3 = rate(BEYOND_L3, beyond_l2 * part());
    const double queued = rate(QUEUED, beyond_l3 * part()), cycles = rate(CYCLES, 1);
    const double memory = refused / WIDTH * loads / waits;
    const struct truth all[] = {
        {"tma_retiring", retired / WIDTH}, {"tma_bad_speculation", lost / WIDTH}, {"tma_frontend_bound", starved / WIDTH},
        {"tma_backend_bound", refused / WIDTH}, {"tma_heavy_operations", heavy / WIDTH},
        {"tma_light_operations", (retired - heavy) / WIDTH}, {"tma_branch_mispredicts", mispredicted / WIDTH},
        {"tma_machine_clears", (lost - mispredicted) / WIDTH}, {"tma_fetch_latency", empty},
        {"tma_fetch_bandwidth", starved / WIDTH - empty}, {"tma_memory_bound", memory},
        {"tma_core_bound", refused / WIDTH - memory}, {"tma_four_levels_cache_bound", (beyond_l2 - beyond_l3) / cycles},
        {"tma_four_levels_dram_bound", beyond_l3 / cycles}, {"tma_four_levels_dram_bandwidth", queued / cycles},
        {"tma_four_levels_dram_latency", (beyond_l3 - queued) / cycles},
    };
    memcpy(truth, all, sizeof all);
}

/* What a group of this subtree tells, whose deepest level is this, and which has so many nodes there. */
static void group_tells(td_t *td, uint32_t level, unsigned deepest, int on_machine)
{
    struct td_sample before, after;
    struct td_node nodes[NODES];
    struct truth truth[16];
    uint32_t count = 0;
    for (int region = 0; region < REGIONS; region++) {
        unsigned told = 0;
        if (on_machine)
            truth_is(truth);
        td_must(td_read(td, &before));
        work(200000 + next_random(&seed) % 1000000);
        td_must(td_read(td, &after));
        td_must(td_decode_tree(&before, &after, nodes, NODES, &count));
        CHECK(count <= NODES);
        for (const struct td_node *node = nodes; node < nodes + count; node++) {
            if (!node->measured)
                continue;
            CHECK(node->level <= level && node->low <= node->value && node->value <= node->high);
            told += node->level == level;
            for (size_t k = 0; on_machine && k < sizeof truth / sizeof truth[0]; k++) {
                if (strcmp(td_node_name(node->id), truth[k].name) != 0)
                    continue;
                if (!(node->low <= truth[k].share && truth[k].share <= node->high))
                    FAIL("%s: %f, between %f and %f, is not %f; seed %llu", truth[k].name, node->value, node->low, node->high,
                         truth[k].share, (unsigned long long)seed);
                CHECK(node->high - node->low < 0.5); /* that says something */
            }
        }
        CHECK_EQ(told, deepest);
    }
}

int main(int argc, char **argv)
{
    const int on_machine = argc > 1 && strcmp(argv[1], "machine") == 0;
    static const struct { const char *subtree; uint32_t level; unsigned deepest; } groups[] = {
        {NULL, 2, 8}, {"four_levels_dram_bound", 4, 2}, {"memory_bound", 3, 2},
    };
    seed = seed_of(argc - on_machine, argv + on_machine);
    for (size_t k = 0; k < sizeof groups / sizeof groups[0]; k++) {
        struct td_options options;
        struct td_info info;
        td_t *td = NULL;
        memset(&options, 0, sizeof options);
        memset(&info, 0, sizeof info);
        options.size = sizeof options;
        options.subtree = groups[k].subtree ? td_node_id(groups[k].subtree) : TD_NODE_NONE;
        CHECK(!groups[k].subtree || options.subtree != TD_NODE_NONE);
        td_must(on_machine ? td_open(&td, &options) : td_simulate(&td, &options, "Four Levels"));
        td_must(td_get_info(td, &info));
        CHECK(strncmp(info.core, "Four Levels", 11) == 0);
        CHECK_EQ(info.level, groups[k].level);
        CHECK_EQ(info.path, on_machine ? TD_PATH_RDPMC : info.path);
        group_tells(td, groups[k].level, groups[k].deepest, on_machine);
        td_close(td);
    }
    return 0;
}
