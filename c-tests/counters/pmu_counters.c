/* Regions by general counters (TD_FLAG_COUNTERS), of random mix and length, with sleeps in them and before them: the truth is within
 * `error` in all, and within a point from 6,000 slots on, at both levels; `error` is that of the readings' skid alone. What a
 * reading costs, and an execution of a region, under the preload library too, in instructions.
 * needs: counters or general-counters */
#include "cost.h"
#include "internals.h"
#include <topdown_inline.h>
#include <topdown_region.h>

enum { REGIONS = 2000, EXECUTIONS = 200000, SLOTS_OF_A_POINT = 6000 };
enum { WORK = TD_SAMPLE_WORK_AFTER | TD_SAMPLE_WORK_BEFORE }; /* of a reading on the slow path */
/* An execution begun and ended, each counted. */
#define MOST_EXECUTION(level) ((level) == 2 ? 294 : 226)
static uint64_t seed;
static td_t *td;
/* What corrects level 1 is not counted, and is in its error. */
static int is_uncorrected;

static void nap(void)
{
    const struct timespec moment = {0, 1000 * (long)(1 + next_random(&seed) % 200)};
    nanosleep(&moment, NULL);
}

static void shares_are(const double *share, const double *truth, int count, double error, double slots, const char *what)
{
    for (int k = 0; k < count; k++) {
        const double off = share[k] > truth[k] ? share[k] - truth[k] : truth[k] - share[k];
        if (off > error || (slots >= SLOTS_OF_A_POINT && off > 0.01))
            FAIL("%s %d of %.0f slots: %f, but %f is true; error %f", what, k, slots, share[k], truth[k], error);
    }
}

static void one_region(int level)
{
    struct td_sample before, after;
    struct td_l1 l1;
    struct td_l2 l2;
    double share[8];
    const struct vm_mix mix = random_mix(&seed);
    const struct truth truth = truth_of(mix);
    const long length = 1000L << next_random(&seed) % 8;
    int naps = next_random(&seed) % 8 == 0;
    if (naps)
        nap(); /* the next reading takes the slow path */
    mix_is(mix);
    td_must(td_read(td, &before));
    work(length / 2);
    if (next_random(&seed) % 8 == 0)
        naps++, nap();
    work(length / 2);
    td_must(td_read(td, &after));
    td_must(td_decode_l1(&before, &after, &l1));
    l1_array(&l1, share);
    shares_are(share, truth.l1, 4, l1.error, (double)l1.slots, "level 1");
    if (level == 2) {
        td_must(td_decode_l2(&before, &after, &l2));
        l2_array(&l2, share);
        shares_are(share, truth.l2, 8, l2.error, (double)l2.slots, "level 2");
    }
    CHECK(l1.running == 1.0 && l1.slots > 0);
    if (is_uncorrected)
        return;
    if (naps == 0 && !(before.flags & WORK) && !(after.flags & WORK) && own(&before)->base.error == own(&after)->base.error)
        CHECK_NEAR(l1.error, 0, 1920.0 / (double)l1.slots + 0.001); /* skid alone (shares are made to add up to 1) */
    if (l1.slots > 1000000) /* and what the library does after a switch: up to 24,800 slots are its own */
        CHECK(l1.error < 0.025);
}

/* Many short executions of one region, of four mixes: each is measured, and the sum is their mean. What the library itself executes in
 * them is a sample of its own: of 20,000 executions a point is two of its standard errors, of so many five. */
static void executions(int level)
{
    struct td_sum sum;
    struct td_l1 l1;
    struct td_l2 l2;
    double share[8], truth[2][8] = {{0}};
    memset(&sum, 0, sizeof sum);
    for (int k = 0; k < 4; k++) {
        const struct truth is = truth_of(MIXES[k]);
        for (int n = 0; n < 8; n++) {
            truth[0][n] += n < 4 ? is.l1[n] / 4 : 0;
            truth[1][n] += is.l2[n] / 4;
        }
    }
    for (int i = 0; i < EXECUTIONS; i++) {
        if (i % 501 == 0)
            nap(); /* at each of the mixes: what the library executes in the next reading counts, and `error` has it */
        mix_is(MIXES[i % 4]);
        td_must(td_sum_begin(td, &sum));
        work(500);
        td_must(td_sum_end(td, &sum));
    }
    CHECK_EQ(sum.executions, EXECUTIONS);
    CHECK_EQ(sum.measured, EXECUTIONS);
    td_must(td_sum_l1(&sum, &l1));
    l1_array(&l1, share);
    shares_are(share, truth[0], 4, l1.error, (double)l1.slots, "level 1 of executions");
    CHECK_EQ(l1.flags & TD_SAMPLE_SPARSE, 0);
    if (level == 2) {
        td_must(td_sum_l2(&sum, &l2));
        l2_array(&l2, share);
        shares_are(share, truth[1], 8, l2.error, (double)l2.slots, "level 2 of executions");
    }
}

static struct td_sample any;
static struct td_sum any_sum;
static __attribute__((noinline)) void reading(void) { td_read(td, &any); }
static __attribute__((noinline)) void execution(void)
{
    td_sum_begin(td, &any_sum);
    td_sum_end(td, &any_sum);
}

static struct td_mark marked;
static __attribute__((noinline)) void marking(void) { td_read_mark(td, &marked); }
static void costs_here(int level)
{
    costs("td_read", reading, level == 2 ? 96 : 70);
    costs("td_read_mark", marking, level == 2 ? 76 : 50);
    costs("td_sum_begin and td_sum_end", execution, MOST_EXECUTION(level));
}

static __attribute__((noinline)) void empty_region(void)
{
    td_region_begin("region");
    td_region_end("region");
}

int main(int argc, char **argv)
{
    if (argc > 1) { /* under the preload library */
        costs("a region", empty_region, MOST_EXECUTION(atoi(argv[1])));
        return 0;
    }
    if (getenv("MACHINE") == NULL)
        needs_known_mix();
    td = counted();
    const struct td_info info = info_of(td);
    is_uncorrected = strstr(info.core, "fewer counters") != NULL;
    CHECK(info.counters == 3 || info.counters == 4 || info.counters == 7 || info.counters == 8);
    printf("%s, level %u, path %u%s%s\n", info.core, info.level, info.path, info.note[0] ? ": " : "", info.note);
    CHECK_EQ(info.path, TD_PATH_RDPMC);
    CHECK_EQ(info.windows, 0);
    for (int i = 0; i < REGIONS; i++)
        one_region((int)info.level);
    executions((int)info.level);
    costs_here((int)info.level);
    td_close(td);
    again_under_preload("counters", info.level == 1 ? "1" : "2");
}
