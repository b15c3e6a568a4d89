/* pmu_exact [recipe] [SEED [REGIONS]]: regions of random length (10 k to 1 G slots), mix and history (other mixes, up to
 * 1e13 slots, context switches, resets, other readers). The truth is within `error` in all of them, within a point
 * wherever a region of a million slots or more was counted all the time; and the windows that the library opens for it
 * are within its budget. With `recipe` the same regions are measured as the kernel's topdown.txt describes, which
 * misses by hundreds and thousands of points: so this test can see. */
#include "perf.h"
#include "pmu.h"
#include "levels.h"
#include <pthread.h>
#include <semaphore.h>
#include <sys/resource.h>

enum {
    CHAIN = 20,           /* regions back to back, at the most */
    LIFE = 500,           /* regions to a handle */
    LONGEST = 1700000,    /* instructions of a region; with more slots each counts for 16, or for 256 */
    MANY = 320000,        /* instructions at the least of a region with phases, at the most of a history */
    PER_REGION = 900000,  /* instructions that pass for each region on average: 1 % of them are two windows */
    BURST = 64,           /* windows that may come at once */
    CALLS = 5000,         /* instructions of a region that are not its work, at the most */
    MARK = 30,            /* instructions between a change of mix and its mark, at the most */
    TOLD = 10             /* failures that are told in full */
};
#define FULL 1e14         /* slots to a handle: far from the 2^48 at which SLOTS overflows */
#define LONG_AGO 2e10     /* slots since a reset that is some seconds past */

enum history { NONE, ANOTHER_MIX, WARPED, NAP, RESET, COMPETING };

struct reading {
    struct td_sample sample;
    uint64_t slots, metrics; /* the recipe's */
    long switches;           /* of this thread until then */
};

/* a context switch; every second time the other reader leaves its own numbers in the registers */
struct nap {
    struct timespec moment;
    struct vm_mix mix;
    uint64_t instructions;
    int wakes;
};

struct region {
    struct reading before, after; /* a chained one begins where the one before it in the array ends */
    struct vm_mix mix[3];         /* of each phase */
    uint64_t instructions[3], mark[3]; /* SLOTS as it began */
    struct nap nap[2];
    unsigned phases, warp, naps, nap_phase, chained, history;
};

static uint64_t seed;
static int recipe, level;
static struct perf_group group; /* the recipe's, which the program keeps */
static td_t *td, *competing;
static int competed;
static int by_counters;
static double width, due, passed; /* slots per cycle; instructions that are still to pass; slots of this handle, about */
static double enabled, all_enabled, opened, spent;
static unsigned competing_turns;

static uint64_t up_to(uint64_t most) { return next_random(&seed) % (most + 1); }

/* 10^low to 10^high, each order of magnitude as likely */
static double log_uniform(double low, double high)
{
    return pow(10, low + (high - low) * (double)up_to(1 << 20) / (1 << 20));
}

static double slots_of(double instructions, unsigned warp) { return ldexp(width * instructions, 4 * (int)warp); }

static void account(uint64_t instructions, unsigned warp)
{
    due -= (double)instructions;
    passed += slots_of((double)instructions, warp);
}

/* The other reader: a thread on the same CPU that measures itself whenever it is told to. */
static struct {
    sem_t go;
    struct nap nap;
    volatile int busy, stop;
} other;

static void *reads_itself(void *unused)
{
    struct td_sample before, after;
    struct td_l1 l1;
    td_t *own = measured(NULL);
    while (sem_wait(&other.go) == 0 && !other.stop) {
        mix_is(other.nap.mix);
        td_must(td_read(own, &before));
        work(other.nap.instructions);
        td_must(td_read(own, &after));
        if (td_decode_l1(&before, &after, &l1) == 0)
            l1_is(&l1, other.nap.mix, 1);
        other.busy = 0;
    }
    td_close(own);
    return unused;
}

static struct nap random_nap(void)
{
    const struct nap nap = {{0, 1000 * (long)(1 + up_to(200))}, random_mix(&seed), (uint64_t)log_uniform(3, 5), (int)up_to(1)};
    return nap;
}

static void take(struct nap nap)
{
    if (nap.wakes && !other.busy) {
        other.nap = nap;
        other.busy = 1;
        sem_post(&other.go);
    }
    nanosleep(&nap.moment, NULL);
}

static void read_now(struct reading *reading)
{
    struct rusage usage;
    if (recipe) {
        reading->slots = rdpmc(RDPMC_SLOTS);
        reading->metrics = rdpmc(RDPMC_METRICS);
    } else {
        const int code = td_read(td, &reading->sample);
        if (code != 0) /* td_must alone takes more than the reading */
            td_must(code);
    }
    getrusage(RUSAGE_THREAD, &usage);
    reading->switches = usage.ru_nvcsw + usage.ru_nivcsw;
}

static void open_group(void)
{
    add_topdown(&group, in_user_mode(event_of(PERF_TYPE_RAW, SLOTS_EVENT)), (unsigned)level, 0, -1);
    control_page(group.fd[0]);
    group_runs(&group);
}

static void reset_group(void) { CHECK_EQ(ioctl(group.fd[0], PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP), 0); }

/* Begins with fresh registers. */
static void begin(void)
{
    enabled = passed = 0;
    if (recipe)
        reset_group();
    else
        td = measured(NULL);
}

/* The period's end, as far as its time goes. */
static void sum_up(void)
{
    struct td_sample last;
    td_must(td_read(td, &last));
    enabled += (double)last.time_enabled_ns;
}

static void end(void)
{
    if (recipe)
        return;
    sum_up();
    const struct td_info info = info_of(td);
    const double each = (double)info.windows_ns / fmax((double)info.windows, 1);
    if ((double)info.windows_ns > 0.01 * enabled + BURST * each)
        FAIL("%.0f windows of %.0f ns each are more than 1 %% of %.0f ns", (double)info.windows, each, enabled);
    all_enabled += enabled, opened += (double)info.windows, spent += (double)info.windows_ns;
    td_close(td);
}

/* `shortly`: of at most a million slots */
static void plan(struct region *r, int shortly)
{
    const double cycles = log_uniform(4, shortly ? 6 : 9) / width;
    memset(r, 0, sizeof *r);
    while (ldexp(cycles, -4 * (int)r->warp) > LONGEST)
        r->warp++;
    uint64_t left = (uint64_t)ldexp(cycles, -4 * (int)r->warp);
    r->phases = up_to(2) || left < MANY ? 1 : 2 + (unsigned)up_to(1);
    r->naps = up_to(3) ? 0 : 1 + (unsigned)up_to(1);
    r->nap_phase = (unsigned)up_to(r->phases - 1);
    r->nap[0] = random_nap();
    r->nap[1] = random_nap();
    for (unsigned p = 0; p < r->phases; p++) {
        r->mix[p] = random_mix(&seed);
        r->instructions[p] = p + 1 < r->phases ? up_to(left) : left;
        left -= r->instructions[p];
    }
}

static void run(struct region *r)
{
    for (unsigned p = 0; p < r->phases; p++) {
        mix_at(r->mix[p], r->warp);
        if (p > 0 || r->chained)
            r->mark[p] = rdpmc(RDPMC_SLOTS);
        else
            read_now(&r->before);
        const unsigned naps = r->nap_phase == p ? r->naps : 0;
        for (unsigned i = 0; i <= naps; i++) {
            if (i > 0)
                take(r->nap[i - 1]);
            work(r->instructions[p] / (naps + 1));
        }
    }
    read_now(&r->after);
}

static const struct reading *start_of(const struct region *r) { return r->chained ? &r[-1].after : &r->before; }

/* How the region's slots truly divide; returns how far from the truth that may be. All that a region executes, calls
 * included, is at its mixes, but for a chained one's beginning; and SLOTS told when they changed. */
static double truth(const struct region *r, double slots, int *known, double share[2][8])
{
    const struct reading *from = start_of(r);
    const double held = (double)(recipe ? from->slots : from->sample.slots - own(&from->sample)->slots_before);
    double part[4] = {0}, at = held, whole = 0;
    int marks = 0;
    for (unsigned p = 0; p < r->phases; p++)
        if (p > 0 || r->chained) {
            part[p] = (double)r->mark[p] - at;
            at = (double)r->mark[p];
            marks++;
        }
    part[r->phases] = slots - (at - held);
    for (unsigned p = 0; p <= r->phases; p++) {
        const double calls = part[p] - (p ? slots_of((double)r->instructions[p - 1], r->warp) : 0);
        *known = *known && calls >= -slots_of(2, r->warp) && calls <= slots_of(CALLS, r->warp);
    }
    for (unsigned p = 0; p <= r->phases; p++) {
        if (!*known) /* while a competing handle counted, SLOTS was that one's */
            part[p] = p ? slots_of((double)r->instructions[p - 1], r->warp) : 0;
        whole += part[p];
    }
    for (unsigned p = 0; p <= r->phases; p++) {
        const struct truth is = truth_of(p ? r->mix[p - 1] : r->chained ? r[-1].mix[r[-1].phases - 1] : r->mix[0]);
        for (int k = 0; k < 8; k++) {
            share[0][k % 4] += k < 4 ? is.l1[k] * part[p] / whole : 0;
            share[1][k] += is.l2[k] * part[p] / whole;
        }
    }
    /* By RDPMC the last of the counters is read so many instructions after the first, by read(2), where that tells alone, at once:
     * the bound has that, but not 16^warp times. */
    const double apart = by_counters && r->warp > 0 ? 64 : 0;
    return slots_of(marks == 0 ? apart : *known ? MARK * marks : CALLS, r->warp) / whole;
}

/* level 1 and level 2 as the text's program computes them */
static void recipe_shares(const struct reading *a, const struct reading *b, double share[2][8])
{
    double of[8];
    for (int k = 0; k < 8; k++) {
        const double slots_a = (double)a->slots * (double)(a->metrics >> 8 * k & 255) / 255;
        const double slots_b = (double)b->slots * (double)(b->metrics >> 8 * k & 255) / 255;
        of[k] = (slots_b - slots_a) / (double)(b->slots - a->slots);
    }
    for (int k = 0; k < 4; k++) {
        share[0][k] = of[k];
        share[1][2 * k] = of[4 + k];
        share[1][2 * k + 1] = of[k] - of[4 + k];
    }
}

static unsigned regions, whole, large, uncounted, failed[2], long_ago, long_ago_failed;
static double wildest; /* share of a large region long after the reset */
/* of what was counted all the time, by the order of magnitude of its length */
static struct {
    unsigned regions;
    double off[2], bound[2]; /* worst, by level */
} decade[5];

static void fails(const struct region *r, int blunt, const char *what, double off, double bound, double slots)
{
    const struct td_sample *from = &start_of(r)->sample, *to = &r->after.sample;
    if (++failed[blunt] > TOLD || recipe)
        return;
    printf("region %u: %s off by %.6f, error %.6f: %.0f slots, warp %u, %u phases of %.0f, %.0f, %.0f instructions, %u naps "
           "in phase %u, %ld switches, history %u, chained %u; S %.0f and %.0f, windows %u and %u, error of these %.0f\n",
           regions, what, off, bound, slots, r->warp, r->phases, (double)r->instructions[0], (double)r->instructions[1],
           (double)r->instructions[2], r->naps, r->nap_phase, r->after.switches - start_of(r)->switches, r->history,
           r->chained, (double)(from->slots - own(from)->slots_before), (double)(to->slots - own(to)->slots_before),
           own(from)->base.window, own(to)->base.window, (double)(own(to)->base.error - own(from)->base.error));
}

static void judge(const struct region *r)
{
    const struct reading *from = start_of(r), *to = &r->after;
    double share[2][8] = {{0}}, is[2][8] = {{0}}, bound[2] = {1, 1}, slots = (double)(to->slots - from->slots), running = 1;
    int levels = level;
    struct td_l1 l1;
    struct td_l2 l2;
    regions++;
    for (unsigned p = 0; p < r->phases; p++)
        account(r->instructions[p], r->warp);
    if (recipe) {
        recipe_shares(from, to, share);
    } else {
        const int code = td_decode_l1(&from->sample, &to->sample, &l1);
        if (code == TD_ENOTCOUNTING) { /* a competing handle counted */
            uncounted++;
            return;
        }
        td_must(code);
        l1_array(&l1, share[0]);
        slots = (double)l1.slots, bound[0] = l1.error, running = l1.running;
        if (level == 2 && !has_level_2(&from->sample, &to->sample)) {
            CHECK(competed); /* (while a competing handle counts, level 1 alone may be counted) */
            levels = 1;
        }
        if (levels == 2) {
            td_must(td_decode_l2(&from->sample, &to->sample, &l2));
            l2_array(&l2, share[1]);
            bound[1] = l2.error;
        }
    }
    int known = running == 1 && !by_counters, missed = 0; /* (SLOTS is not zeroed then) */
    const double slack = truth(r, slots, &known, is);
    if (running == 1 && !known && bound[0] < 1 && !by_counters)
        fails(r, 0, "slots", slots, bound[0], slots);
    /* each context switch rounds once more, level 2 by up to 5/4 of 1/255: more than one can come to more than a point */
    const double within = 0.01 + 0.005 * fmax(0, (double)(to->switches - from->switches - 1));
    const int counts = slots >= 1e6 && running == 1, long_since = recipe && counts && (double)from->slots > LONG_AGO;
    const int d = (int)fmin(fmax(log10(slots) - 4, 0), 4);
    whole += running == 1, decade[d].regions += running == 1, large += counts;
    for (int l = 0; l < levels; l++) {
        double off = 0;
        for (int k = 0; k < (l ? 8 : 4); k++)
            off = fmax(off, fabs(share[l][k] - is[l][k]) - slack);
        if (!(off <= bound[l] + 1e-9))
            fails(r, 0, l ? "level 2 outside its bound," : "level 1 outside its bound,", off, bound[l], slots);
        if (running < 1)
            continue;
        decade[d].off[l] = fmax(decade[d].off[l], off);
        decade[d].bound[l] = fmax(decade[d].bound[l], bound[l]);
        wildest = long_since ? fmax(wildest, off) : wildest;
        if (counts && !(off <= within)) {
            fails(r, 1, l ? "level 2 blunt," : "level 1 blunt,", off, bound[l], slots);
            missed = 1;
        }
    }
    long_ago += (unsigned)long_since, long_ago_failed += (unsigned)(long_since && missed);
}

/* Warped work if there is a warp, of another mix. */
static void pass(double slots)
{
    unsigned warp = 0;
    while (slots > slots_of(MANY, warp))
        warp++;
    const double instructions = slots / slots_of(1, warp);
    mix_at(random_mix(&seed), warp);
    work((uint64_t)instructions);
    mix_is(random_mix(&seed));
    account((uint64_t)instructions, warp);
}

static void let_pass(enum history history)
{
    switch (history) {
    case NONE:
        break;
    case ANOTHER_MIX:
        pass(log_uniform(3, 5.5) * width);
        break;
    case WARPED:
        pass(log_uniform(7, 13));
        break;
    case NAP:
        take(random_nap());
        break;
    case RESET:
        if (recipe) { /* as the text advises for "every few seconds" */
            reset_group();
        } else {
            sum_up();
            td_must(td_reset(td));
        }
        break;
    case COMPETING:
        competing_turns = 1 + (unsigned)up_to(2);
        if (competing == NULL && !recipe) /* whose readings would be the other's, too */
            competing = measured(NULL), competed = 1;
        break;
    }
}

/* A history, and some regions: mostly one; sometimes a few, or a burst of short ones. */
static void turn(void)
{
    static struct region region[CHAIN];
    const int few = 1 + (up_to(3) ? 0 : 1 + (int)up_to(3)), burst = up_to(15) ? 0 : CHAIN - (int)up_to(12);
    const unsigned chained = (unsigned)up_to(1);
    const int n = burst ? burst : few;
    unsigned history = NONE;
    if (due > 0) {
        mix_is(random_mix(&seed));
        const uint64_t instructions = (uint64_t)due;
        work(instructions);
        account(instructions, 0);
    }
    for (uint64_t steps = up_to(2); steps > 0; steps--)
        let_pass((enum history)(history = (unsigned)up_to(up_to(15) ? RESET : COMPETING)));
    for (int i = 0; i < n; i++) {
        do
            plan(&region[i], burst);
        while (region[i].warp != region[0].warp); /* or a call would count for many in the next */
        region[i].chained = chained && i > 0;
        region[i].history = history;
    }
    for (int i = 0; i < n; i++)
        run(&region[i]);
    mix_is(random_mix(&seed));
    for (int i = 0; i < n; i++)
        judge(&region[i]);
    due += PER_REGION * (double)n;
    if (competing_turns > 0 && --competing_turns == 0) {
        td_close(competing);
        competing = NULL;
    }
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc > 1 && strcmp(argv[1], "recipe") == 0)
        recipe = 1, argc--, argv++;
    seed = seed_of(argc, argv);
    printf("seed %llu\n", (unsigned long long)seed);
    const unsigned wanted = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : (unsigned)repeats(10000);
    td = measured(NULL);
    needs_known_mix();
    const struct td_info info = info_of(td);
    level = (int)info.level, width = info.slots_per_cycle, by_counters = info.counters > 0;
    td_close(td);
    move_to(0, p_core() < 0 ? 0 : p_core());
    CHECK_EQ(sem_init(&other.go, 0, 0), 0);
    CHECK_EQ(pthread_create(&thread, NULL, reads_itself, NULL), 0);
    for (int i = 0; i < 8; i++) /* what the dynamic linker does once is in no region */
        take(random_nap());
    if (recipe)
        open_group();
    while (regions - uncounted < wanted) {
        begin();
        for (const unsigned first = regions; regions - first < LIFE && passed < FULL && regions - uncounted < wanted;)
            turn();
        end();
    }
    td_close(competing);
    other.stop = 1;
    sem_post(&other.go);
    CHECK_EQ(pthread_join(thread, NULL), 0);

    printf("%u regions: %u counted all the time, %u of these of a million slots or more; %u not counted\n"
           "   slots  regions  worst error in points: level 1, level 2; worst bound: level 1, level 2\n",
           regions, whole, large, uncounted);
    for (int d = 0; d < 5; d++)
        printf("   1e%d..  %7u  %12.3f %12.3f %12.3f %12.3f\n", d + 4, decade[d].regions, 100 * decade[d].off[0],
               100 * decade[d].off[1], 100 * decade[d].bound[0], 100 * decade[d].bound[1]);
    if (recipe) {
        printf("%u of %u large regions long after a reset are off by more than a point, one of them by %.0f points\n",
               long_ago_failed, long_ago, 100 * wildest);
        CHECK(long_ago_failed > 0.8 * long_ago && wildest > 1); /* 100 points; mostly it is thousands */
        return 0;
    }
    printf("%.0f windows of %.0f ns: %.3f %% of the time\n", opened, spent / fmax(opened, 1), 100 * spent / all_enabled);
    CHECK(whole > 0.9 * regions && large > 0.2 * regions);
    CHECK_EQ(failed[0], 0); /* outside of a bound */
    CHECK_EQ(failed[1], 0); /* more than a point off */
    return 0;
}
