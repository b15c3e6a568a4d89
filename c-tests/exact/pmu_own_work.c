/* pmu_own_work [SEED]: what the library itself executes at a region's ends is in the bound, or taken out, whatever its speed: regions
 * of another mix than around them, whatever number of cycles an instruction of the code around takes, by registers and by
 * general counters, by td_read and td_read_mark, and by sums, also the first in a program; beside a thread that preempts every 25 us; with a context switch before or
 * within each; on hybrid CPUs by one handle for both kinds of core, with a move to the other kind before or within each. With a switch
 * within, regions by general counters have a bound of use.
 * needs: counters or general-counters or other-core */
#include "competing.h"
#include "truth.h"
#include <topdown_inline.h>

enum { REGIONS = 120, SHORTEST = 500, MOST_MULTIPLE = 60, LONG_SLOTS = 40000 };

/* What happens: nothing; the thread sleeps before the region, or within it; another one preempts it; it moves to the other kind of core
 * before the region, or within it. */
enum happens { NOTHING, BEFORE, WITHIN, PREEMPTED, MOVES_BEFORE, MOVES_WITHIN, KINDS };
static const char *const KIND[KINDS] = {"nothing", "a switch before", "a switch within", "preempted", "a move before", "a move within"};

static const struct vm_mix REGION = {48, 4, 8, 8, 8, 8, 8}, AROUND = {4, 40, 8, 8, 8, 8, 8};

static volatile int over;

/* It preempts whoever runs on its CPU. */
static void *preempts(void *unused)
{
    const struct timespec moment = {0, 25000};
    const struct sched_param first = {.sched_priority = 1};
    CHECK_EQ(sched_setscheduler(0, SCHED_FIFO, &first), 0);
    (void)unused;
    while (!over)
        nanosleep(&moment, NULL);
    return NULL;
}

/* a CPU of each kind of core, and on which kind the thread is */
static int core[2], on;

/* It leaves the CPU and comes back, there or on a core of the other kind. */
static void leaves(int moves)
{
    const struct timespec moment = {0, 1000};
    if (moves)
        move_to(0, core[on = !on]);
    else
        nanosleep(&moment, NULL);
}

/* How a region's ends are read. */
enum way { READ, MARKS, SUM };
static const char *const WAY[] = {"read", "marks", "sum"};

struct execution {
    struct td_sample before, after;
    struct td_mark begin, end;
    struct td_sum sum;
};

/* The shares of an execution, whose ends returned the code. */
static struct td_l1 shares(td_t *td, struct execution *of, enum way way, int code)
{
    struct td_l1 l1;
    CHECK_EQ(code, 0);
    if (way == SUM) {
        td_must(td_sum_l1(&of->sum, &l1));
        return l1;
    }
    if (way == MARKS) {
        td_must(td_mark_sample(td, &of->begin, &of->before));
        td_must(td_mark_sample(td, &of->end, &of->after));
    }
    td_must(td_decode_l1(&of->before, &of->after, &l1));
    return l1;
}

/* Regions of all lengths, each within its bound. Returns the mean bound of those of some 40,000 slots. */
static double ends(td_t *td, const struct known_mix *region, uint64_t *seed, enum happens happens, enum way way, unsigned ipc)
{
    const struct td_info info = info_of(td);
    const uint64_t inner = region->phase, around = mix_number(AROUND) | ipc << 3;
    double share[4], truth[SHARES], worst = 0, bounds = 0, extra = 0;
    int outside = 0, longs = 0;
    shares_of_known(region, &info, truth);
    for (int i = 0; i < REGIONS; i++) {
        struct execution of = {0};
        int code = 0;
        const double random = (double)(next_random(seed) % 1000) / 1000;
        const uint64_t instructions = i % 4 == 0 ? LONG_SLOTS / 6 : (uint64_t)(SHORTEST * pow(MOST_MULTIPLE, random));
        __asm__ volatile(MIX_IN_PLACE("%0") : : "r"(around) : "rax", "rcx", "r11", "rdi", "rsi", "memory");
        work(next_random(seed) % 20000);
        if (happens == BEFORE || happens == MOVES_BEFORE)
            leaves(happens == MOVES_BEFORE);
        code |= way == READ ? td_read(td, &of.before) : way == MARKS ? td_read_mark(td, &of.begin) : td_sum_begin(td, &of.sum);
        __asm__ volatile(MIX_IN_PLACE("%0") : : "r"(inner) : "rax", "rcx", "r11", "rdi", "rsi", "memory");
        work(instructions / 2);
        if (happens == WITHIN || happens == MOVES_WITHIN)
            leaves(happens == MOVES_WITHIN);
        work(instructions / 2);
        __asm__ volatile(MIX_IN_PLACE("%0") : : "r"(around) : "rax", "rcx", "r11", "rdi", "rsi", "memory");
        code |= way == READ ? td_read(td, &of.after) : way == MARKS ? td_read_mark(td, &of.end) : td_sum_end(td, &of.sum);
        const struct td_l1 l1 = shares(td, &of, way, code);
        l1_array(&l1, share);
        double off = 0;
        for (int k = 0; k < 4; k++)
            off = fmax(off, fabs(share[k] - truth[TD_NODE_RETIRING + k]) - l1.error);
        extra += ((double)l1.slots / info.slots_per_cycle - (double)instructions) / REGIONS;
        if (off > 0)
            printf("  outside by %.4f: region %d of %llu instructions, of %llu slots, bound %.4f; %.4f %.4f %.4f %.4f\n", off, i,
                   (unsigned long long)instructions, (unsigned long long)l1.slots, l1.error, share[0], share[1], share[2], share[3]);
        outside += off > 0;
        worst = fmax(worst, off);
        if (i % 4 == 0)
            bounds += l1.error, longs++;
    }
    printf("  %-16s %-5s around at %u: %d of %d outside, by %.4f; bound at %d slots %.4f; %.0f instructions more\n", KIND[happens], WAY[way],
           ipc, outside, REGIONS, worst, LONG_SLOTS, bounds / longs, extra);
    CHECK_EQ(outside, 0);
    return bounds / longs;
}

/* Marks within a region are no doubt about it: between two readings that no context switch came between, the bound does not grow. */
static void marks_within(td_t *td)
{
    int compared = 0;
    for (int tries = 0; tries < 100; tries++) {
        struct td_sample first, before, after;
        struct td_mark mark;
        td_must(td_read(td, &first)); /* (what a look executes after its reading is in the bound of the next one) */
        td_must(td_read(td, &before));
        for (int k = 0; k < 20; k++)
            td_must(td_read_mark(td, &mark));
        td_must(td_read(td, &after));
        if (own(&first)->base.sequence != own(&before)->base.sequence || own(&before)->base.sequence != own(&after)->base.sequence)
            continue;
        CHECK_EQ(own(&before)->base.error, own(&after)->base.error);
        compared++;
    }
    CHECK(compared > 0);
}

static void source(uint32_t flags, uint64_t *seed)
{
    static const unsigned IPC[] = {0, 1, 2, 3, 4, 5};
    const struct td_options options = options_of(flags, 0);
    td_t *td = NULL;
    if (td_open(&td, &options) != 0)
        return; /* not every core has both */
    const struct td_info info = info_of(td);
    const struct known_mix region = known_mix(REGION, &info, 0);
    const int counters = info.counters > 0, both = strchr(info.pmu, ',') != NULL;
    double undisturbed[2][sizeof IPC / sizeof *IPC] = {{0}};
    printf("%s%s\n", counters ? "general counters" : "registers", both ? " of both kinds of core" : "");
    /* (first: what a first end that is not inline calls was not called before) */
    ends(td, &region, seed, WITHIN, MARKS, 0);
    if (counters) /* (by registers some executions of a sum are measured) */
        ends(td, &region, seed, WITHIN, SUM, 0);
    for (int happens = NOTHING; happens < (both ? KINDS : MOVES_BEFORE); happens++)
        for (int way = READ; way <= MARKS; way++)
            for (size_t k = 0; k < sizeof IPC / sizeof *IPC; k++) {
                if (IPC[k] == 4 && (info.slots_per_cycle > 6 || both))
                    continue; /* the fast path itself has more than the skid then */
                pthread_t thread = 0;
                over = 0;
                if (happens == PREEMPTED)
                    thread = start_thread(preempts, NULL);
                const double bound = ends(td, &region, seed, (enum happens)happens, (enum way)way, IPC[k]);
                over = 1;
                if (happens == PREEMPTED)
                    CHECK_EQ(pthread_join(thread, NULL), 0);
                if (happens == NOTHING)
                    undisturbed[way][k] = bound;
                if (counters && happens == WITHIN)
                    CHECK(bound < undisturbed[way][k] + (IPC[k] == 0 ? 0.1 : 0.25)); /* else near 1 */
            }
    if (counters)
        marks_within(td);
    td_close(td);
}

int main(int argc, char **argv)
{
    uint64_t seed = seed_of(argc, argv);
    needs_known_mix();
    printf("seed %llu\n", (unsigned long long)seed);
    stay_on_a_cpu();
    source(TD_FLAG_REGISTERS, &seed);
    source(TD_FLAG_COUNTERS, &seed);
    core[0] = p_core(), core[1] = e_core();
    if (core[0] >= 0 && core[1] >= 0) {
        may_run_anywhere();
        source(0, &seed);
    }
    return 0;
}
