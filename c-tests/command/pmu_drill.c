/* `topdown stat --drill` leads to the leaf that a program was given, in one run of two seconds, with an interval that has the truth; of a
 * program of two phases to the leaf of each. What cannot be counted is named with the reason before the program runs. Arguments: the seed,
 * and how many of the programs are tried.
 * needs: counters, not-hybrid */
#include "lib/stat.h"
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

/* A figure of the bottleneck view, as its formula has it of a plant's mix and events. (That of others divides by what does not happen.) */
static const struct view { const char *leaf, *bottleneck; double share; } VIEWS[] = {
    {"mem_bandwidth", "data_cache_memory_bandwidth", 45 / 64.0 * 0.4 / 0.5 * 0.35 / 0.38},
    {"code_l2_hit", "big_code", 35 / 64.0},
    {"code_stlb_hit", "big_code", 35 / 64.0},
    {"unknown_branches", "big_code", 35 / 64.0},
    {"lcp", "instruction_fetch_bw", 40 / 64.0},
    {"dsb_switches", "instruction_fetch_bw", 40 / 64.0},
    {"mispredicts_resteers", "mispredictions", 30 / 64.0 + 10.5 / 64 * 15 / 16},
};

static struct { char name[64]; uint64_t config; } events[400];
static size_t all_events;
/* Nodes whose formula has a retire latency. */
static char latencies[100][64];
static size_t all_latencies;

/* Reads the events of a text, which the project's directory has. */
static void events_of(const char *table)
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

static int config_of(const char *name, uint64_t *config)
{
    for (size_t k = 0; k < all_events; k++)
        if (strcmp(events[k].name, name) == 0) {
            *config = events[k].config;
            return 1;
        }
    return 0;
}

/* Whether the mix tells how often it happens. */
static int is_of_mix(uint64_t config)
{
    const uint64_t of_mix[] = {0x02c2, 0x01c2, 0x02a4, 0x04a4, 0x08a4, 0x10a4, 0x019c, 0x10ad};
    for (size_t k = 0; k < sizeof of_mix / sizeof of_mix[0]; k++)
        if (of_mix[k] == config)
            return 1;
    return 0;
}

/* Whether its events are there, and its leaf is counted. (A retire latency is none.) */
static int is_known(const struct plant *plant)
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

static double seconds_now(void)
{
    struct timespec now;
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Works for so long as the plant says. */
static void grow(const struct plant *plant, double seconds)
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
    const double end = seconds_now() + seconds;
    while (seconds_now() < end)
        work(100000);
}

static const char *report;
static unsigned width; /* slots of a cycle */

/* What is behind a key of an entry of this list, which has this name; NULL: it is not there. */
static const char *text_of(const char *list, const char *name_key, const char *name, const char *key)
{
    char entry[96];
    const char *all = strstr(report, list);
    snprintf(entry, sizeof entry, "%s\"%s\"", name_key, name);
    const char *one = all ? strstr(all, entry) : NULL, *over = one ? strstr(one, "}") : NULL;
    const char *value = one ? strstr(one, key) : NULL;
    return value && value < over ? value + strlen(key) : NULL;
}

/* The same of the finding of this node. */
static const char *found_text(const char *leaf, const char *key)
{
    char node[64];
    snprintf(node, sizeof node, "tma_%s", leaf);
    return text_of("\"findings\"", "\"node\": ", node, key);
}

/* The same as a number; NaN: it was not found. */
static double found(const char *leaf, const char *key)
{
    const char *text = found_text(leaf, key);
    return text ? strtod(text, NULL) : NAN;
}

static void read_report(void)
{
    report = text_in("r.json");
    CHECK_EQ(unlink(in_scratch("r.json")), 0);
}

static void drilled(const char *first, const char *second)
{
    char *const command[] = {beside("../release/topdown"), strdup("stat"), strdup("--drill"), strdup("-o"), in_scratch("r.json"),
                             strdup(own_path()), strdup("grow"), strdup(first), second ? strdup(second) : NULL, NULL};
    CHECK_EQ(run_alone(command), 0);
    read_report();
}

/* The figure is true. */
static void view(const struct view *view)
{
    double ends[2];
    for (int end = 0; end < 2; end++) {
        const char *text = text_of("\"bottlenecks\"", "\"name\": ", view->bottleneck, end ? "\"high\": " : "\"low\": ");
        CHECK(text != NULL);
        ends[end] = strtod(text, NULL);
    }
    fprintf(stderr, "%s: between %f and %f\n", view->bottleneck, ends[0], ends[1]);
    /* (the program has parts besides the work) */
    if (!(ends[0] - 0.01 * view->share <= view->share && view->share <= ends[1] + 0.01 * view->share))
        FAIL("%s is %f", view->bottleneck, view->share);
    CHECK(ends[1] - ends[0] < 0.8);
}

/* The program with one plant: its leaf is found, where it is true. */
static void one_leaf(const struct plant *plant)
{
    drilled(plant->leaf, NULL);
    const double value = found(plant->leaf, "\"value\": "), low = found(plant->leaf, "\"low\": "), high = found(plant->leaf, "\"high\": ");
    fprintf(stderr, "%s: %f, between %f and %f\n", plant->leaf, value, low, high);
    if (!(low <= value && value <= high))
        FAIL("%s was not found:\n%s", plant->leaf, strstr(report, "\"findings\"") ? strstr(report, "\"findings\"") : report);
    CHECK(low > 0 && high < 1);
    const int of_cycles = strncmp(found_text(plant->leaf, "\"unit\": "), "\"clocks\"", 8) == 0 || strncmp(plant->leaf, "dsb", 3) == 0 ||
                          strncmp(plant->leaf, "decoder0", 8) == 0;
    const double share = of_cycles ? plant->share : plant->share * WIDTH / width;
    /* (the program has parts besides the work, and a rate is rounded to 1/65536) */
    if (!(low - 0.01 * share <= share && share <= high + 0.01 * share))
        FAIL("%s is %f", plant->leaf, share);
    for (size_t k = 0; k < sizeof VIEWS / sizeof VIEWS[0]; k++)
        if (strcmp(VIEWS[k].leaf, plant->leaf) == 0)
            view(&VIEWS[k]);
}

/* A region of this process: what its handle counts below a node, read in user space, is true in each of 200 executions. */
static void regions_below(const char *node, const char *leaf, const struct plant *plant)
{
    struct td_options options;
    struct td_info info;
    struct td_sample before, after;
    struct td_node nodes[24];
    uint32_t count = 0, executions = 0;
    td_t *td = NULL;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.subtree = td_node_id(node);
    td_must(td_open(&td, &options));
    memset(&info, 0, sizeof info);
    td_must(td_get_info(td, &info));
    CHECK_EQ(info.path, TD_PATH_RDPMC);
    CHECK_EQ(info.level, 3);
    grow(plant, 0);
    for (int region = 0; region < 200; region++) {
        td_must(td_read(td, &before));
        work(300000);
        td_must(td_read(td, &after));
        td_must(td_decode_tree(&before, &after, nodes, 24, &count));
        CHECK(count <= 24);
        for (const struct td_node *one = nodes; one < nodes + count; one++)
            if (one->measured && strcmp(td_node_name(one->id), leaf) == 0) {
                if (!(one->low <= plant->share && plant->share <= one->high))
                    FAIL("%s: %f, between %f and %f", leaf, one->value, one->low, one->high);
                CHECK_EQ(one->unit, TD_UNIT_CLOCKS);
                executions += one->high - one->low < 0.2;
            }
    }
    CHECK(executions > 100);
    td_close(td);
}

int main(int argc, char **argv)
{
    const unsigned model = of_cpuinfo("model : %u");
    width = model == 143 || model == 173 ? 6 : 5;
    events_of(model == 143 ? "spr" : model == 173 ? "gnr" : "icx");
    const struct plant *known[ALL];
    size_t count = 0;
    for (const struct plant *plant = PLANTS; plant < PLANTS + ALL; plant++)
        if (is_known(plant))
            known[count++] = plant;
    CHECK(count >= 8);
    if (argc > 2 && strcmp(argv[1], "grow") == 0) {
        for (int k = 2; k < argc; k++)
            for (size_t one = 0; one < count; one++)
                if (strcmp(known[one]->leaf, argv[k]) == 0)
                    grow(known[one], 1.8);
        return 0;
    }
    if (width != WIDTH)
        SKIP("level 2 of this core follows from events that no plant sets yet");
    stat_begins();
    uint64_t seed = seed_of(argc, argv);
    fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
    const size_t first = next_random(&seed) % count;
    const size_t wanted = argc > 2 ? strtoul(argv[2], NULL, 0) : in_gate() ? 1 : 5;
    for (size_t k = 0; k < wanted; k++)
        one_leaf(known[(first + k) % count]);
    /* each of two phases has its own */
    drilled("slow_pause", "lcp");
    /* (they take half of the time each, but for what is before main; what passed before a leaf could be counted is in its bound) */
    const char *const leaves[] = {"slow_pause", "lcp"};
    for (int k = 0; k < 2; k++) {
        const double low = found(leaves[k], "\"low\": "), high = found(leaves[k], "\"high\": ");
        fprintf(stderr, "%s of a phase: %f, between %f and %f\n", leaves[k], found(leaves[k], "\"value\": "), low, high);
        CHECK(low <= 0.102 && 0.098 <= high);
    }
    const struct plant divider = {"divider", 0.5, CORE, {{"ARITH.DIV_ACTIVE", 0.5}}};
    regions_below("tma_core_bound", "tma_divider", &divider);
    /* what nothing counts is refused before the program runs */
    char *const refused[] = {beside("../release/topdown"), strdup("stat"), strdup("--nodes"), strdup("other_light_ops"), strdup("true"), NULL};
    CHECK_EQ(WEXITSTATUS(run_alone(refused)), 125);
    CHECK(strstr(stat_said(), "cannot be counted here") != NULL);
    return 0;
}
