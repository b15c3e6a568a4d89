/* Regions down to a level that no group of counters holds whole (TOPDOWN_LEVEL, under the preload library): the groups take turns, and each
 * execution is counted by one of them. Regions in each other in two threads, one that lasts all the time, and a hooked function: how often each
 * was executed is exact, level 1 is of all executions, and each node below is within its interval of the truth, whose width is worth reading.
 * Of a region that was executed once a part is measured, or none.
 * needs: other-core */
#define _GNU_SOURCE
#include "csv.h"
#include "truth.h"
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <search.h>
#include <sys/mman.h>
#include <time.h>
#include <topdown_region.h>

enum { THREADS = 2, SECONDS = 5, LONGEST = 1200000, SHORTEST = 200000 };
/* `varied` has another mix in each execution, and `inner`, one of its own; both are in `outer`, as is the function. */
enum { OUTER, VARIED, INNER, FUNCTION, ONCE, REGIONS };
static const char *const NAMES[REGIONS] = {"outer", "varied", "inner", "lfind", "once"};
static struct td_info info;

/* What is true of each region in all threads, with those in it; in memory that the program shares with its parent. */
struct regions {
    struct td_info info;
    double contention; /* (truth.h) */
    uint64_t executions[REGIONS];
    struct node_truth truth[REGIONS];
};
static struct regions *shared;

static double seconds(void)
{
    struct timespec now;
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* So much runs at this mix in these regions, which end with -1. */
static void executes(struct regions *mine, const struct known_mix *known, uint64_t instructions, const int *in)
{
    runs_at(known);
    work(instructions);
    for (; *in >= 0; in++)
        add_stretch(&mine->truth[*in], known, (double)instructions * known->slots_per_instruction);
}

static __thread struct regions *of_thread;
static __thread const struct known_mix *of_function;
static int compares(const void *key, const void *element)
{
    (void)key, (void)element;
    executes(of_thread, of_function, 400000, (const int[]){FUNCTION, OUTER, -1});
    return 0;
}

static void *thread(void *number)
{
    static struct regions all[THREADS];
    struct regions *mine = of_thread = &all[(uintptr_t)number];
    uint64_t seed = 7 + (uintptr_t)number;
    const struct known_mix steady = known_mix((struct vm_mix){20, 16, 16, 8, 8, 8, 4}, &info, 0);
    const struct known_mix function = known_mix((struct vm_mix){12, 8, 24, 4, 12, 8, 4}, &info, 1);
    void *(*volatile finds)(const void *, const void *, size_t *, size_t, int (*)(const void *, const void *)) = lfind;
    of_function = &function;
    const double end = seconds() + SECONDS;
    runs_at(&steady);
    CHECK_EQ(td_region_begin("outer"), 0);
    while (seconds() < end) {
        const struct known_mix known = random_known_mix(&seed, &info);
        const uint64_t length = SHORTEST + next_random(&seed) % (LONGEST - SHORTEST);
        char element = 0;
        size_t count = 1;
        runs_at(&known);
        CHECK_EQ(td_region_begin("varied"), 0);
        executes(mine, &known, length, (const int[]){VARIED, OUTER, -1});
        runs_at(&steady);
        CHECK_EQ(td_region_begin("inner"), 0);
        executes(mine, &steady, 400000, (const int[]){INNER, VARIED, OUTER, -1});
        CHECK_EQ(td_region_end("inner"), 0);
        runs_at(&known);
        CHECK_EQ(td_region_end("varied"), 0);
        runs_at(&function);
        CHECK(finds("", &element, &count, 1, compares) == &element);
        mine->executions[VARIED]++, mine->executions[INNER]++, mine->executions[FUNCTION]++;
    }
    runs_at(&steady);
    CHECK_EQ(td_region_end("outer"), 0);
    mine->executions[OUTER] = 1;
    if (number == NULL) {
        CHECK_EQ(td_region_begin("once"), 0);
        executes(mine, &steady, 400000, (const int[]){ONCE, -1});
        CHECK_EQ(td_region_end("once"), 0);
        mine->executions[ONCE] = 1;
    }
    return mine;
}

static void map_shared(const char *path)
{
    const int file = open(path, O_RDWR);
    CHECK(file >= 0 && ftruncate(file, sizeof *shared) == 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(shared != MAP_FAILED);
}

static int program(void)
{
    pthread_t other;
    map_shared(getenv("TRUTH"));
    info = shared->info;
#if defined(__x86_64__)
    contention = shared->contention;
#endif
    CHECK_EQ(pthread_create(&other, NULL, thread, (void *)1), 0);
    void *of[THREADS] = {thread(NULL)};
    CHECK_EQ(pthread_join(other, &of[1]), 0);
    for (int t = 0; t < THREADS; t++) {
        const struct regions *one = of[t];
        for (int k = 0; k < REGIONS; k++) {
            shared->executions[k] += one->executions[k];
            shared->truth[k].slots += one->truth[k].slots;
            for (int r = 0; r < RATES; r++)
                shared->truth[k].rate[r] += one->truth[k].rate[r];
        }
    }
    return 0;
}

/* Whether a region of several mixes has the share that its parts have: not where two events tell how a node divides. */
static int is_a_sum(uint32_t id)
{
    const int amd = strstr(info.core, "Zen") != NULL, skylake = strstr(info.core, "Skylake") != NULL;
    const int by_events = amd || skylake || strstr(info.core, "hip08") != NULL;
    switch (id) {
    case TD_NODE_BRANCH_MISPREDICTS: case TD_NODE_MACHINE_CLEARS: case TD_NODE_PIPELINE_RESTARTS: return !by_events;
    case TD_NODE_MEMORY_BOUND: case TD_NODE_CORE_BOUND: return !amd;
    case TD_NODE_HEAVY_OPERATIONS: case TD_NODE_LIGHT_OPERATIONS: return !skylake;
    default: return id <= TD_NODE_PIPELINE_RESTARTS;
    }
}

/* Of level 3 the machine counts each event of E-cores as the whole, and no node has more than its parent (include/subtrees.h). */
static const struct {
    uint32_t parent;
    const char *parts[6];
} IS_ALL_OF[] = {
    {TD_NODE_IFETCH_LATENCY, {"tma_icache_misses", "tma_itlb_misses", "tma_branch_detect", "tma_branch_resteer"}},
    {TD_NODE_IFETCH_BANDWIDTH, {"tma_cisc", "tma_decode", "tma_predecode", "tma_other_fb"}},
    {TD_NODE_MACHINE_CLEARS, {"tma_nuke", "tma_fast_nuke"}},
    {TD_NODE_CORE_BOUND, {"tma_allocation_restriction"}},
    {TD_NODE_RESOURCE_BOUND, {"tma_mem_scheduler", "tma_non_mem_scheduler", "tma_register", "tma_reorder_buffer", "tma_serialization"}},
};

static uint32_t is_all_of(uint32_t id)
{
    if (strstr(info.core, "mont") == NULL)
        return TD_NODE_NONE;
    for (size_t k = 0; k < sizeof IS_ALL_OF / sizeof IS_ALL_OF[0]; k++)
        for (const char *const *part = IS_ALL_OF[k].parts; *part != NULL; part++)
            if (td_node_id(*part) == id)
                return IS_ALL_OF[k].parent;
    return TD_NODE_NONE;
}

/* Whether the truth of a region is known: of several mixes if it `varies`. (Of Skylake the machine does not count as a mix says what retires.) */
static int is_known(uint32_t id, int varies)
{
    const int retires = id == TD_NODE_HEAVY_OPERATIONS || id == TD_NODE_LIGHT_OPERATIONS;
    const int deepest = strstr(info.core, "hip08") == NULL ? TD_NODE_RESOURCE_BOUND : TD_NODE_PIPELINE_RESTARTS;
    return is_all_of(id) != TD_NODE_NONE || is_a_sum(id) || (!varies && !retires && id <= (uint32_t)deepest);
}

static int is_level_1(uint32_t id) { return id <= TD_NODE_BACKEND_BOUND || id == TD_NODE_SMT_CONTENTION; }

/* What the report says of a region is true; how many nodes below level 1 it has. */
static int is_true(const struct csv *csv, int region)
{
    const int row = csv_row(csv, NAMES[region]);
    const struct node_truth *truth = &shared->truth[region];
    double share[SHARES], widest = 0;
    int below = 0;
    node_shares(truth, &info, share);
    if (strstr(info.core, "hip08") != NULL) /* (vm/qemu-arm-pmu.patch) */
        share[TD_NODE_RESOURCE_BOUND] = share[TD_NODE_BACKEND_BOUND] - share[TD_NODE_MEMORY_BOUND] - share[TD_NODE_CORE_BOUND];
    CHECK_EQ((uint64_t)csv_number(csv, row, "executions"), shared->executions[region]);
    CHECK_EQ(csv_number(csv, row, "unended") + csv_number(csv, row, "missed") + csv_number(csv, row, "unbalanced"), 0);
    /* (what the library itself executes at begins and ends of regions is of some mix or other) */
    const double slack = csv_number(csv, row, "slots") / truth->slots - 1, error = csv_number(csv, row, "error_1");
    fprintf(stderr, "%s: %.0f executions, %.4f of the slots others', level 1 within %.4f\n", NAMES[region],
            csv_number(csv, row, "executions"), slack, error);
    CHECK(slack > -0.001 && slack < 0.05 && error < 0.05);
    for (uint32_t id = TD_NODE_RETIRING; id < SHARES; id++) {
        const char *name = td_node_name(id);
        char low[64], high[64];
        if (name == NULL || !csv_has(csv, name) || *csv_text(csv, row, name) == 0)
            continue;
        snprintf(low, sizeof low, "%s_low", name);
        snprintf(high, sizeof high, "%s_high", name);
        const double ends[] = {csv_number(csv, row, low), csv_number(csv, row, high)}, is = csv_number(csv, row, name);
        if (is_all_of(id) != TD_NODE_NONE)
            share[id] = share[is_all_of(id)];
        fprintf(stderr, "  %s: %.4f, %.4f to %.4f, truth %.4f\n", name, is, ends[0], ends[1], share[id]);
        if (!is_known(id, region < INNER))
            continue;
        CHECK(ends[0] - slack <= share[id] && share[id] <= ends[1] + slack && ends[0] <= is && is <= ends[1]);
        below += !is_level_1(id);
        /* (of a ratio of rare events little is known in executions as short as these) */
        widest = fmax(widest, is_level_1(id) || !is_known(id, 1) ? 0 : fmax(is - ends[0], ends[1] - is));
    }
    CHECK(region == ONCE || widest < 0.25);
    return below;
}

int main(int count, char **arguments)
{
    static struct csv csv;
    char path[] = "/tmp/truth-XXXXXX";
    td_t *td;
    if (count > 1)
        return program();
    needs_known_mix();
    watchdog_is(0);
    td_must(td_open(&td, NULL));
    info = info_of(td);
    td_close(td);
    const int skylake = strstr(info.core, "Skylake") != NULL;
    if (strstr(info.core, "Tremont") != NULL)
        SKIP("%s has no parts of a level", info.core);
    close(mkstemp(path));
    map_shared(path);
    struct regions known = {.info = info};
#if defined(__x86_64__)
    if (strstr(info.core, "Zen") != NULL)
        contention_is_known(&info);
    known.contention = contention;
#endif
    *shared = known;
    setenv("TRUTH", path, 1);
    setenv("TOPDOWN_REGIONS", "libc.so.6:lfind", 1);
    setenv("TOPDOWN_LEVEL", strstr(info.core, "mont") != NULL || strstr(info.core, "hip08") != NULL ? "3" : "2", 1);
    if (strstr(info.core, "Zen") != NULL) { /* the watchdog has a counter that each of the groups takes: level 1 is what is left */
        watchdog_is(1);
        CHECK_EQ(under_preload(arguments[0], "work", &csv), 0);
        for (int region = 0; region < ONCE; region++)
            CHECK_EQ(is_true(&csv, region), 0);
        *shared = known;
        watchdog_is(0);
    }
    CHECK_EQ(under_preload(arguments[0], "work", &csv), 0);
    unlink(path);
    for (int region = 0; region < ONCE; region++)
        CHECK(is_true(&csv, region) >= (skylake || smt_is_on() ? 2 : 4));
    is_true(&csv, ONCE);
    return 0;
}
