/* A region of 500 instructions, executed a million times by general counters, has its own slots and shares alone: what the library
 * executes between the two readings of an execution, at mixes of its own, is measured in place and subtracted. Mixes are random
 * and differ from one execution to the next. By td_sum_begin, and by td_region_begin under the preload library.
 * needs: counters or general-counters or other-core */
#include "csv.h"
#include "pmu.h"
#include <topdown_region.h>

enum { EXECUTIONS = 1000000, MIXES_OF_THEM = 16, FIRST = 4, INSTRUCTIONS = 508 };
static struct vm_mix mixes[2][MIXES_OF_THEM]; /* around the regions, and in them */
static uint64_t value[2][MIXES_OF_THEM];      /* as MIX_IN_PLACE wants them */
static uint64_t seed;
static int is_sure;

/* What executions have been, in instructions; one is one cycle. */
static struct {
    double instructions, l1[4], l2[8];
} all;

static void add(double instructions, struct vm_mix mix)
{
    const struct truth truth = truth_of(mix);
    all.instructions += instructions;
    for (int k = 0; k < 4; k++)
        all.l1[k] += instructions * truth.l1[k];
    for (int k = 0; k < 8; k++)
        all.l2[k] += instructions * truth.l2[k];
}

static void random_mixes(void)
{
    for (int inside = 0; inside < 2; inside++)
        for (int i = 0; i < MIXES_OF_THEM; i++) {
            mixes[inside][i] = random_mix(&seed);
            value[inside][i] = mix_number(mixes[inside][i]);
        }
}

/* The region: FIRST instructions at the mix around it, 504 at its own, the last of which sets another around it. */
static inline __attribute__((always_inline)) void body(uint64_t inside, uint64_t after)
{
    __asm__ volatile(MIX_IN_PLACE("%0") ".rept 500\n\tnop\n\t.endr\n\t" MIX_IN_PLACE("%1")
                     :
                     : "r"(inside), "r"(after)
                     : "rax", "rcx", "r11", "rdi", "rsi", "memory");
}

/* So many executions, begun and ended by this. */
#define EXECUTE(begin, end)                                                                                                 \
    for (int i = 0, around = 0; i < EXECUTIONS; i++) {                                                                      \
        const int inside = (int)(next_random(&seed) % MIXES_OF_THEM), after = (int)(next_random(&seed) % MIXES_OF_THEM);    \
        const uint64_t set = value[1][inside], then = value[0][after];                                                     \
        begin;                                                                                                              \
        body(set, then);                                                                                                    \
        end;                                                                                                                \
        add(FIRST, mixes[0][around]);                                                                                       \
        add(INSTRUCTIONS - FIRST, mixes[1][inside]);                                                                        \
        around = after;                                                                                                     \
    }

static void are(const double *share, const double *truth, int count, double error, const char *what)
{
    double worst = 0;
    for (int k = 0; k < count; k++)
        worst = fmax(worst, fabs(share[k] - truth[k] / all.instructions));
    printf("%s: off by %.4f at most, error %.4f\n", what, worst, error);
    CHECK(worst <= error && worst < 0.01);
    CHECK(error < 0.02 || !is_sure); /* else it has slots that no counter is left for */
}

static void slots_are(double slots, unsigned slots_per_cycle)
{
    const double own = slots / slots_per_cycle / EXECUTIONS;
    printf("%.2f instructions each, of %d\n", own, INSTRUCTIONS);
    CHECK_NEAR(own, INSTRUCTIONS, 0.02 * INSTRUCTIONS);
}

/* Of the level's shares, which are of all executions. */
static void level_is(int level, const double *share, double error, const char *how)
{
    char what[64];
    snprintf(what, sizeof what, "%s, level %d", how, level);
    are(share, level == 2 ? all.l2 : all.l1, level == 2 ? 8 : 4, error, what);
}

static struct td_info sums(void)
{
    td_t *td = counted();
    const struct td_info info = info_of(td);
    if (strstr(info.core, "Skylake") || strstr(info.core, "Tremont"))
        SKIP("of a %s the machine makes some counts up", info.core);
    is_sure = strstr(info.core, "fewer counters") == NULL || strstr(info.core, "Zen") != NULL;
    struct td_sum sum;
    struct td_l1 l1;
    struct td_l2 l2;
    double share[8];
    memset(&sum, 0, sizeof sum);
    EXECUTE(td_sum_begin(td, &sum), td_sum_end(td, &sum))
    td_must(td_sum_l1(&sum, &l1));
    l1_array(&l1, share);
    slots_are((double)l1.slots, info.slots_per_cycle);
    level_is(1, share, l1.error, "td_sum");
    const int code = info.level == 2 ? td_sum_l2(&sum, &l2) : -ENOTSUP;
    if (code != -ENOTSUP) { /* level 2 of other cores has other nodes */
        td_must(code);
        l2_array(&l2, share);
        level_is(2, share, l2.error, "td_sum");
    }
    CHECK_EQ(sum.measured, EXECUTIONS);
    printf("with the library's own %.2f\n", (double)sum.slots / info.slots_per_cycle / EXECUTIONS);
    CHECK((double)sum.slots > 1.1 * (double)l1.slots); /* as counted */
    td_close(td);
    return info;
}

/* The same executions under the preload library. */
static void regions(const char *self, struct td_info info, uint32_t levels)
{
    static const char *const names[2][8] = {{"retiring", "bad_speculation", "frontend_bound", "backend_bound"},
                                            {"heavy_operations", "light_operations", "branch_mispredicts", "machine_clears",
                                             "fetch_latency", "fetch_bandwidth", "memory_bound", "core_bound"}};
    static struct csv csv;
    double share[8];
    setenv("TOPDOWN_SOURCE", "counters", 1);
    CHECK_EQ(under_preload(self, "regions", &csv), 0);
    const int row = csv_row(&csv, "region");
    CHECK_EQ(csv_number(&csv, row, "measured"), EXECUTIONS);
    slots_are(csv_number(&csv, row, "slots"), info.slots_per_cycle);
    for (int level = 1; level <= (int)levels; level++) {
        for (int k = 0; k < 4 * level; k++)
            share[k] = csv_number(&csv, row, names[level - 1][k]);
        level_is(level, share, csv_number(&csv, row, level == 2 ? "error_2" : "error_1"), "regions");
    }
}

int main(int argc, char **argv)
{
    if (getenv("MACHINE") == NULL)
        needs_known_mix();
    random_mixes();
    mix_is(mixes[0][0]);
    if (argc > 1) {
        EXECUTE(td_region_begin("region"), td_region_end("region"))
        return 0;
    }
    const struct td_info info = sums();
    regions(argv[0], info, strstr(info.core, " Cove") ? info.level : 1);
    return 0;
}
