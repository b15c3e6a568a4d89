/* Error and overhead of measuring a region, against its length, as CSV: by topdown.txt's recipe (one group, two RDPMC
 * before and after, never reset), by td_read of registers, and by td_read of general counters. `error` and `bound` are the
 * worst of all shares of all regions, in points; `overhead` is the instructions in those calls, the kernel's among them,
 * in percent of all. The program that is measured has been doing something else for a while; then it spends a tenth of its
 * slots in the region, at another mix each time, and the rest at one mix. It runs on the emulated machine, where the truth
 * is known, and elsewhere exits 77. Nothing is warped: time is what it would be at one instruction a nanosecond. */
#include "perf.h"
#include "pmu.h"

#define SHORTEST 1e3         /* slots of a region */
#define LONGEST 1e9
#define PER_DECADE 3
#define RUN_BEFORE 2e10      /* slots: about a second on a core of 4 GHz */
#define REST 9               /* slots of the program for each of the region's, outside it */
#define RUN 5e9              /* slots of the program while it is measured, so that short regions meet what is rare, too; */
#define REGIONS 20           /* or so many regions, if that is more */

enum method { RECIPE, REGISTERS, COUNTERS, METHODS };
static const char *const NAMES[METHODS] = {"recipe", "registers", "counters"};
static const uint32_t FLAGS[METHODS] = {0, TD_FLAG_REGISTERS | TD_FLAG_BARE, TD_FLAG_COUNTERS};

/* Where a region begins, or where it ends. */
struct reading {
    uint64_t slots, metrics;
    struct td_sample sample;
};

static struct td_info info;
static td_t *td;
static struct perf_group group;
static void *page;

static inline uint64_t rdtsc(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return low | (uint64_t)high << 32;
}

static void open_counters(enum method method)
{
    if (method != RECIPE) {
        const struct td_options options = options_of(FLAGS[method], 0);
        td = measured(&options);
        CHECK_EQ(info_of(td).level, info.level);
        return;
    }
    add_topdown(&group, in_user_mode(event_of(PERF_TYPE_RAW, SLOTS_EVENT)), info.level, 0, -1);
    page = control_page(group.fd[0]);
    group_runs(&group);
}

static void close_counters(enum method method)
{
    if (method != RECIPE) {
        td_close(td);
        return;
    }
    munmap(page, (size_t)sysconf(_SC_PAGESIZE));
    group_ends(&group);
}

/* What is charged to the method; decoding, which can wait, is not. Returns 0, or what failed. */
static inline int take(enum method method, struct reading *reading)
{
    if (method != RECIPE)
        return td_read(td, &reading->sample);
    reading->slots = rdpmc(RDPMC_SLOTS);
    reading->metrics = rdpmc(RDPMC_METRICS);
    return 0;
}

/* The shares between two pairs as topdown.txt computes them: those of level 1, then those of level 2, each with what it
 * leaves of its parent. */
static void by_difference(const struct reading *from, const struct reading *to, double *share)
{
    const double slots = (double)(to->slots - from->slots);
    double field[8];
    for (int k = 0; k < 8; k++) {
        const double before = (double)from->slots * (double)(from->metrics >> 8 * k & 0xff) / 255;
        const double after = (double)to->slots * (double)(to->metrics >> 8 * k & 0xff) / 255;
        field[k] = (after - before) / slots;
    }
    for (int k = 0; k < 4; k++) {
        share[k] = field[k];
        share[4 + 2 * k] = field[4 + k];
        share[5 + 2 * k] = field[k] - field[4 + k];
    }
}

/* The shares in the same order. Returns the bound on their error; none, 0, is known of the recipe. */
static double shares(enum method method, const struct reading *from, const struct reading *to, double *share)
{
    struct td_l1 l1;
    struct td_l2 l2;
    if (method == RECIPE) {
        by_difference(from, to, share);
        return 0;
    }
    td_must(td_decode_l1(&from->sample, &to->sample, &l1));
    l1_array(&l1, share);
    if (info.level == 1)
        return l1.error;
    td_must(td_decode_l2(&from->sample, &to->sample, &l2));
    l2_array(&l2, share + 4);
    return fmax(l1.error, l2.error);
}

static double worst(const double *share, struct vm_mix mix)
{
    const struct truth truth = truth_of(mix);
    double worst = 0;
    for (int k = 0; k < 4; k++)
        worst = fmax(worst, fabs(share[k] - truth.l1[k]));
    for (int k = 0; k < 8 && info.level == 2; k++)
        worst = fmax(worst, fabs(share[4 + k] - truth.l2[k]));
    return worst;
}

/* Executes as many instructions as fill these slots: one is one cycle. For the emulator a block of them in one page is
 * hardly more work than one. */
static void work_slots(double slots)
{
    const uint64_t instructions = (uint64_t)(slots / info.slots_per_cycle);
    uint64_t blocks = instructions / 256;
    if (blocks > 0)
        __asm__ volatile("jmp 1f\n\t.p2align 9\n1:\t.fill 254, 1, 0x90\n\tdec %0\n\tjnz 1b" : "+r"(blocks) : : "cc");
    work(instructions % 256);
}

/* Ticks, which are instructions of the program and of the kernel, between two RDTSC, less what those themselves take. */
static uint64_t clock_cost;
static inline uint64_t since(uint64_t begun) { return rdtsc() - begun - clock_cost; }

static void measure(enum method method, double slots)
{
    const struct vm_mix rest = MIXES[0];
    const int regions = (int)fmax(REGIONS, RUN / ((1 + REST) * slots));
    double error = 0, bound = 0, share[12];
    uint64_t seed = 1, in_calls = 0, in_work = 0; /* the same regions for each method */
    struct reading before, after;

    open_counters(method);
    mix_is(MIXES[1]);
    work_slots(RUN_BEFORE);
    mix_is(rest);
    for (int i = 0; i < regions; i++) {
        const struct vm_mix mix = random_mix(&seed);
        uint64_t begun = rdtsc();
        work_slots(REST * slots);
        in_work += since(begun);
        mix_is(mix);
        begun = rdtsc();
        const int began = take(method, &before);
        in_calls += since(begun);
        begun = rdtsc();
        work_slots(slots);
        in_work += since(begun);
        begun = rdtsc();
        const int ended = take(method, &after);
        in_calls += since(begun);
        mix_is(rest);
        td_must(began);
        td_must(ended);
        const double most = shares(method, &before, &after, share), off = worst(share, mix);
        CHECK(method == RECIPE || off <= most);
        bound = fmax(bound, most);
        error = fmax(error, off);
    }
    close_counters(method);
    printf("%s,%.0f,%.4g,", NAMES[method], slots, 100 * error);
    if (method != RECIPE)
        printf("%.4g", 100 * bound);
    printf(",%.4g\n", 100 * (double)in_calls / (double)(in_calls + in_work));
}

int main(void)
{
    td = measured(NULL);
    info = info_of(td);
    td_close(td);
    needs_known_mix();
    if (info.path != TD_PATH_RDPMC || info.slots_per_cycle == 0)
        SKIP("no RDPMC, or a core of unknown width: %s", info.note);
    const uint64_t begun = rdtsc();
    clock_cost = since(begun);
    printf("method,slots,error,bound,overhead\n");
    for (enum method method = 0; method < METHODS; method++)
        for (int k = 0; k <= PER_DECADE * log10(LONGEST / SHORTEST) + 0.5; k++)
            measure(method, SHORTEST * pow(10, (double)k / PER_DECADE));
    return 0;
}
