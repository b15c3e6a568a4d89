/* plants.h: programs whose slots are lost to one leaf of the tree each. */
#ifndef PLANTS_H
#define PLANTS_H
#include "stat.h"
#include <inttypes.h>
#include "vm/mix.h"

/* An event of the text of this CPU's tree, and how often it happens in a cycle. */
struct happens { const char *event; double per_cycle; };

/* A program: its mix, its events besides those of the mix, which are none else, and the leaf that follows; in cycles, or of a core of
 * WIDTH slots a cycle. */
enum { WIDTH = 6 };
struct plant { const char *leaf; double share; struct vm_mix mix; struct happens events[8]; };

#define MEMORY {12, 2, 2, 0, 12, 12, 15}
#define CORE {12, 2, 2, 0, 12, 12, 2}
#define LATENCY {12, 2, 40, 0, 12, 14, 8}
#define BANDWIDTH {12, 2, 40, 0, 12, 2, 8}
#define HEAVY {40, 2, 8, 8, 12, 12, 8}
#define LIGHT {52, 2, 4, 0, 12, 12, 8}
#define LOADS(l1, l2, l3, dram) {"EXE_ACTIVITY.BOUND_ON_LOADS", (l1) + (l2) + (l3) + (dram)}, \
    {"MEMORY_ACTIVITY.STALLS_L1D_MISS", (l2) + (l3) + (dram)}, {"MEMORY_ACTIVITY.STALLS_L2_MISS", (l3) + (dram)}, \
    {"MEMORY_ACTIVITY.STALLS_L3_MISS", dram}

static const struct plant PLANTS[] = {
    {"mem_bandwidth", 0.35, MEMORY, {LOADS(0.04, 0.03, 0.03, 0.4), {"OFFCORE_REQUESTS_OUTSTANDING.ALL_DATA_RD:C12", 0.35},
                                     {"OFFCORE_REQUESTS_OUTSTANDING.CYCLES_WITH_DATA_RD", 0.38}}},
    {"mem_latency", 0.36, MEMORY, {LOADS(0.04, 0.03, 0.03, 0.4), {"OFFCORE_REQUESTS_OUTSTANDING.ALL_DATA_RD:C12", 0.02},
                                   {"OFFCORE_REQUESTS_OUTSTANDING.CYCLES_WITH_DATA_RD", 0.38}}},
    {"fp_divider", 0.4, CORE, {{"ARITH.DIV_ACTIVE", 0.5}, {"ARITH.FPDIV_ACTIVE", 0.4}}},
    {"int_divider", 0.45, CORE, {{"ARITH.DIV_ACTIVE", 0.5}, {"ARITH.FPDIV_ACTIVE", 0.05}}},
    {"code_l2_hit", 0.3, LATENCY, {{"ICACHE_DATA.STALLS", 0.3}}},
    {"code_stlb_hit", 0.3, LATENCY, {{"ICACHE_TAG.STALLS", 0.3}}},
    {"unknown_branches", 0.3, LATENCY, {{"INT_MISC.UNKNOWN_BRANCH_CYCLES", 0.3}}},
    {"lcp", 0.2, LATENCY, {{"DECODE.LCP", 0.2}}},
    {"dsb_switches", 0.2, LATENCY, {{"DSB2MITE_SWITCHES.PENALTY_CYCLES", 0.2}}},
    {"mispredicts_resteers", 0.15 * 15 / 16, {12, 32, 12, 0, 15, 14, 8}, {{"INT_MISC.CLEAR_RESTEER_CYCLES", 0.15}}},
    {"dsb", 0.19, BANDWIDTH, {{"IDQ.DSB_CYCLES_ANY", 0.4}, {"IDQ.DSB_CYCLES_OK", 0.02}}},
    {"decoder0_alone", 0.15, BANDWIDTH, {{"IDQ.MITE_CYCLES_ANY", 0.6}, {"IDQ.MITE_CYCLES_OK", 0.1},
                                         {"INST_DECODED.DECODERS:C1", 0.4}, {"INST_DECODED.DECODERS:C2", 0.1}}},
    {"split_stores", 0.3, MEMORY, {{"EXE_ACTIVITY.BOUND_ON_STORES", 0.4}, {"MEM_INST_RETIRED.SPLIT_STORES", 0.3}}},
    {"sq_full", 0.4, MEMORY, {LOADS(0.02, 0.02, 0.5, 0.02), {"XQ.FULL_CYCLES", 0.4}}},
    {"fb_full", 0.4, MEMORY, {LOADS(0.5, 0.02, 0.02, 0.02), {"L1D_PEND_MISS.FB_FULL", 0.4}}},
    {"slow_pause", 0.2, CORE, {{"RESOURCE_STALLS.SCOREBOARD", 0.3}, {"CPU_CLK_UNHALTED.PAUSE", 0.2}}},
    {"c02_wait", 0.3, CORE, {{"CPU_CLK_UNHALTED.C02", 0.3}}},
    {"assists", 0.13, HEAVY, {{"UOPS_RETIRED.MS", 1.2}, {"ASSISTS.ANY", 0.01}}},
    {"fp_vector_256b", 0.2, LIGHT, {{"FP_ARITH_INST_RETIRED.VECTOR", 0.975}, {"FP_ARITH_INST_RETIRED.256B_PACKED_DOUBLE", 0.975}}},
    {"memory_operations", 0.325, LIGHT, {{"MEM_UOP_RETIRED.ANY", 1.95}}},
};
enum { ALL = sizeof PLANTS / sizeof PLANTS[0] };

static struct { char name[64]; uint64_t config; } events[400];
static size_t all_events;
/* Nodes whose formula has a retire latency. */
static char latencies[100][64];
static size_t all_latencies;

/* Reads the events of a text, which the project's directory has. */
static inline void events_of(const char *table)
{
    char line[4096], path[PATH_MAX];
    snprintf(path, sizeof path, "cpus/deep/%s.txt", table);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        FAIL("%s is not there", path);
    while (fgets(line, sizeof line, file)) {
        const char *below = strstr(line, " > ");
        if (strncmp(line, "node", 4) == 0 && below && strstr(line, ":RETIRE_LATENCY") && all_latencies < 100)
            sscanf(below, " > %63s", latencies[all_latencies++]);
        if (strstr(line, " fixed") == NULL && all_events < 400 &&
            sscanf(line, "event %63s %" SCNi64, events[all_events].name, (int64_t *)&events[all_events].config) == 2)
            all_events++;
    }
    fclose(file);
    CHECK(all_events > 50);
}

static inline int config_of(const char *name, uint64_t *config)
{
    for (size_t k = 0; k < all_events; k++)
        if (strcmp(events[k].name, name) == 0) {
            *config = events[k].config;
            return 1;
        }
    return 0;
}

/* Whether the mix tells how often it happens. */
static inline int is_of_mix(uint64_t config)
{
    const uint64_t of_mix[] = {0x02c2, 0x01c2, 0x02a4, 0x04a4, 0x08a4, 0x10a4, 0x019c, 0x10ad};
    for (size_t k = 0; k < sizeof of_mix / sizeof of_mix[0]; k++)
        if (of_mix[k] == config)
            return 1;
    return 0;
}

/* Whether its events are there, and its leaf is counted. (A retire latency is none.) */
static inline int is_known(const struct plant *plant)
{
    uint64_t config;
    for (size_t k = 0; k < all_latencies; k++)
        if (strcmp(latencies[k], plant->leaf) == 0)
            return 0;
    for (const struct happens *one = plant->events; one->event; one++)
        if (!config_of(one->event, &config))
            return 0;
    return 1;
}

static inline double seconds_now(void)
{
    struct timespec now;
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* What happens in this thread from now on is what the plant says. */
static inline void sow(const struct plant *plant)
{
    vm_mix_set(plant->mix, 0, 0, 0);
    vm_rates_clear();
    for (size_t k = 0; k < all_events; k++)
        CHECK(is_of_mix(events[k].config) || vm_rate_set(events[k].config, 0, VM_PER_CYCLE));
    /* (by this several formulas divide) */
    uint64_t issued = 0;
    CHECK(!config_of("UOPS_ISSUED.ANY", &issued) || vm_rate_set(issued, 2 * 65536, VM_PER_CYCLE));
    for (const struct happens *one = plant->events; one->event; one++) {
        uint64_t config = 0;
        CHECK(config_of(one->event, &config) && vm_rate_set(config, (uint64_t)(one->per_cycle * 65536), VM_PER_CYCLE));
    }
}

/* Works for so long as the plant says. */
static inline void grow(const struct plant *plant, double seconds)
{
    sow(plant);
    const double end = seconds_now() + seconds;
    while (seconds_now() < end)
        work(100000);
}

/* Reads the text of this CPU, one of model 143, 173, or like Ice Lake's servers. The slots of a cycle. */
static inline unsigned read_events(void)
{
    const unsigned model = of_cpuinfo("model : %u");
    events_of(model == 143 ? "spr" : model == 173 ? "gnr" : "icx");
    return model == 143 || model == 173 ? 6 : 5;
}
#endif
