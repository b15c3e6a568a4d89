/* Three regions with different bottlenecks, and where their slots go: on real counters where there are some,
 * else on simulated ones, which then follow what each region is made to be bound by. */
#include "../c-tests/vm/mix.h"
#include <stdio.h>
#include <stdlib.h>
#include <topdown.h>

enum { CHAIN = 1 << 22 };
static uint32_t *chain; /* 16 MiB, to miss the caches */
static volatile uint64_t sink;

/* Independent additions: nothing to wait for. */
static void add(void)
{
    uint64_t a = 1, b = 2, c = 3, d = 4;
    for (int i = 0; i < 3000000; i++) {
        a += 5, b += 6, c += 7, d += 8;
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
    }
    sink = a + b + c + d;
}

/* Branches on random bits: half of them are mispredicted. */
static void branch(void)
{
    uint64_t random = 88172645463325252u, odd = 0;
    for (int i = 0; i < 2000000; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        if (random & 1)
            __asm__ volatile("incq %0" : "+r"(odd)); /* assembler, so that it stays a branch */
    }
    sink = odd;
}

/* A walk through memory in random order: each load waits for the one before. */
static void chase(void)
{
    uint32_t at = 0;
    for (int i = 0; i < 2000000; i++)
        at = chain[at];
    sink = at;
}

struct region {
    const char *name;
    void (*run)(void);
    struct vm_mix emulated; /* what the emulated machine is told of it; nothing else looks at that */
    struct td_mix simulated;
};

#define SIMULATED(...) { .size = sizeof(struct td_mix), __VA_ARGS__ }
static const struct region regions[] = {
    { "independent additions", add, { 48, 2, 4, 2, 12, 4, 4 },
      SIMULATED(.retiring = .75, .bad_speculation = .03, .frontend_bound = .07, .backend_bound = .15,
                .heavy_operations = .09, .branch_mispredicts = .02, .fetch_latency = .02, .memory_bound = .04) },
    { "random branches", branch, { 18, 30, 8, 2, 15, 10, 4 },
      SIMULATED(.retiring = .28, .bad_speculation = .47, .frontend_bound = .13, .backend_bound = .12,
                .heavy_operations = .03, .branch_mispredicts = .44, .fetch_latency = .08, .memory_bound = .03) },
    { "pointer chase", chase, { 4, 1, 2, 2, 12, 8, 15 },
      SIMULATED(.retiring = .06, .bad_speculation = .01, .frontend_bound = .03, .backend_bound = .90,
                .heavy_operations = .01, .branch_mispredicts = .01, .fetch_latency = .02, .memory_bound = .85) },
};

static int fail(const char *what)
{
    char why[1000];
    td_last_error(why, sizeof why);
    fprintf(stderr, "demo: %s: %s\n", what, why);
    return 1;
}

static void print(const char *name, const struct td_l1 *l1, const struct td_l2 *l2)
{
    printf("\n%s: %.1f million slots, each share within %.1f points", name, (double)l1->slots / 1e6, 100 * l1->error);
    if (l2->size)
        printf(" (level 2: %.1f)", 100 * l2->error);
    printf("\n");
    struct { const char *parent; double share; const char *a; double share_a; const char *b; double share_b; } rows[] = {
        { "retiring", l1->retiring, "heavy operations", l2->heavy_operations, "light operations", l2->light_operations },
        { "bad speculation", l1->bad_speculation, "branch mispredicts", l2->branch_mispredicts, "machine clears", l2->machine_clears },
        { "frontend bound", l1->frontend_bound, "fetch latency", l2->fetch_latency, "fetch bandwidth", l2->fetch_bandwidth },
        { "backend bound", l1->backend_bound, "memory bound", l2->memory_bound, "core bound", l2->core_bound },
    };
    for (int i = 0; i < 4; i++) {
        printf("  %-16s %5.1f %%", rows[i].parent, 100 * rows[i].share);
        if (l2->size)
            printf("   %-18s %5.1f %%   %-16s %5.1f %%", rows[i].a, 100 * rows[i].share_a, rows[i].b, 100 * rows[i].share_b);
        printf("\n");
    }
}

int main(void)
{
    td_t *td;
    struct td_info info;
    struct td_options options = { .size = sizeof options };

    if (td_open(&td, &options)) {
        char why[1000];
        td_last_error(why, sizeof why);
        printf("*** SIMULATED: the numbers below are made up, since there is nothing to measure with here:\n    %s\n", why);
        options.flags = TD_FLAG_SIMULATE;
        if (td_open(&td, &options))
            return fail("td_open");
    }
    if (td_get_info(td, &info))
        return fail("td_get_info");
    printf("CPU %s (%s), PMU %s, level %u, %s\n", info.cpu, info.core, info.pmu, info.level,
           info.path == TD_PATH_RDPMC ? "read by RDPMC" : info.note);

    chain = malloc(CHAIN * sizeof *chain);
    if (!chain)
        return 1;
    for (uint32_t i = 0; i < CHAIN; i++) /* a full cycle: an odd step plus a multiple of 4 visits all of 2^n */
        chain[i] = (i * 1664525u + 1013904223u) % CHAIN;

    for (size_t i = 0; i < sizeof regions / sizeof *regions; i++) {
        struct td_sample before, after;
        struct td_l1 l1;
        struct td_l2 l2 = { 0 };
        vm_mix_set(regions[i].emulated, 0, 0, 0);
        if (info.path == TD_PATH_SIMULATED && td_simulate_mix(td, &regions[i].simulated))
            return fail("td_simulate_mix");
        if (td_reset(td) || td_read(td, &before))
            return fail("td_read");
        regions[i].run();
        if (td_read(td, &after) || td_decode_l1(&before, &after, &l1))
            return fail("td_decode_l1");
        if (info.level == 2 && td_decode_l2(&before, &after, &l2))
            return fail("td_decode_l2");
        print(regions[i].name, &l1, &l2);
    }
    td_close(td);
    free(chain);
    return 0;
}
