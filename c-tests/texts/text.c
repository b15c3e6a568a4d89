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

/* What follows from how often each event happens in a cycle. */
struct rates { double retired, starved, refused, heavy, mispredicted, empty, waits, loads, beyond_l2, beyond_l3, queued, cycles; };

static void truth_of_rates(const struct rates r, struct truth truth[16])
{
    const double lost = WIDTH - r.retired - r.starved - r.refused, memory = r.refused / WIDTH * r.loads / r.waits;
    const struct truth all[] = {
        {"tma_retiring", r.retired / WIDTH}, {"tma_bad_speculation", lost / WIDTH}, {"tma_frontend_bound", r.starved / WIDTH},
        {"tma_backend_bound", r.refused / WIDTH}, {"tma_heavy_operations", r.heavy / WIDTH},
        {"tma_light_operations", (r.retired - r.heavy) / WIDTH}, {"tma_branch_mispredicts", r.mispredicted / WIDTH},
        {"tma_machine_clears", (lost - r.mispredicted) / WIDTH}, {"tma_fetch_latency", r.empty},
        {"tma_fetch_bandwidth", r.starved / WIDTH - r.empty}, {"tma_memory_bound", memory},
        {"tma_core_bound", r.refused / WIDTH - memory}, {"tma_four_levels_cache_bound", (r.beyond_l2 - r.beyond_l3) / r.cycles},
        {"tma_four_levels_dram_bound", r.beyond_l3 / r.cycles}, {"tma_four_levels_dram_bandwidth", r.queued / r.cycles},
        {"tma_four_levels_dram_latency", (r.beyond_l3 - r.queued) / r.cycles},
    };
    memcpy(truth, all, sizeof all);
}

/* Those of the simulated PMU, as the text has them. */
static const struct rates SIMULATED = {2.4, 1.2, 1.8, 0.6, 0.4, 0.1, 0.5, 0.4, 0.25, 0.2, 0.05, 1.0};

/* Sets all rates at random, and tells them. */
static struct rates random_rates(void)
{
    struct rates r;
    r.retired = rate(RETIRED, WIDTH * 0.4 * part()), r.starved = rate(STARVED, WIDTH * 0.3 * part());
    r.refused = rate(REFUSED, WIDTH * 0.3 * part()), r.heavy = rate(HEAVY, r.retired * part());
    r.mispredicted = rate(MISPREDICTED, (WIDTH - r.retired - r.starved - r.refused) * part());
    r.empty = rate(EMPTY, r.starved * part() / WIDTH), r.waits = rate(WAITS, 0.9 * part());
    r.loads = rate(LOADS, r.waits * part()), r.beyond_l2 = rate(BEYOND_L2, r.loads * part());
    r.beyond_l3 = rate(BEYOND_L3, r.beyond_l2 * part()), r.queued = rate(QUEUED, r.beyond_l3 * part()), r.cycles = rate(CYCLES, 1);
    return r;
}

/* What a group of this subtree tells, whose deepest level is this, and which has so many nodes there. */
static void group_tells(td_t *td, uint32_t level, unsigned deepest, int on_machine)
{
    struct td_sample before, after;
    struct td_node nodes[NODES];
    struct truth truth[16];
    uint32_t count = 0;
    for (int region = 0; region < REGIONS; region++) {
        unsigned told = 0, measured = 0, named = 0;
        truth_of_rates(on_machine ? random_rates() : SIMULATED, truth);
        td_must(td_read(td, &before));
        work(200000 + next_random(&seed) % 1000000);
        td_must(td_read(td, &after));
        td_must(td_decode_tree(&before, &after, nodes, NODES, &count));
        CHECK(count <= NODES);
        for (const struct td_node *node = nodes; node < nodes + count; node++) {
            if (!node->measured)
                continue;
            CHECK(node->level <= level && node->low <= node->value && node->value <= node->high);
            told += node->level == level, measured++;
            for (size_t k = 0; k < sizeof truth / sizeof truth[0]; k++) {
                if (strcmp(td_node_name(node->id), truth[k].name) != 0)
                    continue;
                if (!(node->low <= truth[k].share && truth[k].share <= node->high))
                    FAIL("%s: %f, between %f and %f, is not %f; seed %llu", truth[k].name, node->value, node->low, node->high,
                         truth[k].share, (unsigned long long)seed);
                named++;
            }
        }
        CHECK_EQ(told, deepest);
        CHECK_EQ(named, measured);
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
        CHECK_EQ(info.path, on_machine ? TD_PATH_RDPMC : TD_PATH_SIMULATED);
        group_tells(td, groups[k].level, groups[k].deepest, on_machine);
        td_close(td);
    }
    return 0;
}
