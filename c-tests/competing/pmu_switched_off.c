/* prctl(PR_TASK_PERF_EVENTS_DISABLE) in a measured thread, by the program or a library in it, switches off what the program
 * itself opened and nothing of the library's: the shares of a region with such a stretch are the truth, by every way of
 * reading, and a reading in the stretch counts. */
#include "perf.h"
#include "pmu.h"
#include <sys/prctl.h>
#include <topdown_inline.h>

enum { PART = 4000000 };
static const struct vm_mix SEEN = {40, 8, 8, 4, 12, 8, 8}, HIDDEN = {4, 8, 40, 4, 12, 8, 8};
/* half of each */
static const struct vm_mix BOTH = {22, 8, 24, 4, 12, 8, 8};

static void l1_of(const struct td_sample *from, const struct td_sample *to, uint32_t slots_per_cycle)
{
    struct td_l1 l1;
    td_must(td_decode_l1(from, to, &l1));
    CHECK(l1.error < 0.05);
    /* the calls of prctl and what is around them are of one half or the other */
    const double around = 1000.0 * slots_per_cycle / (double)l1.slots;
    const struct truth truth = truth_of(BOTH);
    double share[4];
    l1_array(&l1, share);
    for (int k = 0; k < 4; k++) {
        CHECK_NEAR(share[k], truth.l1[k], l1.error + around);
        CHECK_NEAR(share[k], truth.l1[k], 0.02);
    }
    CHECK_NEAR((double)l1.slots, 2.0 * PART * slots_per_cycle, 0.05 * PART * slots_per_cycle);
}

/* a stretch of work with the thread's events switched off, after as much with them on */
static void half_and_half(void)
{
    mix_is(SEEN);
    work(PART);
    CHECK_EQ(prctl(PR_TASK_PERF_EVENTS_DISABLE), 0);
    mix_is(HIDDEN);
    work(PART);
}

static void read_by(uint32_t flags)
{
    const struct td_options options = options_of(flags, 0);
    td_t *td = measured(&options);
    const uint32_t width = info_of(td).slots_per_cycle;
    struct td_sample before, within, after;

    td_must(td_read(td, &before));
    half_and_half();
    td_must(td_read(td, &within));
    CHECK_EQ(prctl(PR_TASK_PERF_EVENTS_ENABLE), 0);
    td_must(td_read(td, &after));
    l1_of(&before, &within, width);
    l1_of(&before, &after, width);

    /* a period that begins and ends in the dark */
    CHECK_EQ(prctl(PR_TASK_PERF_EVENTS_DISABLE), 0);
    td_must(td_reset(td));
    half_and_half();
    td_must(td_read(td, &after));
    CHECK_EQ(prctl(PR_TASK_PERF_EVENTS_ENABLE), 0);
    l1_of(NULL, &after, width);
    td_close(td);
}

static void sums(void)
{
    td_t *td = measured(NULL);
    const uint32_t width = info_of(td).slots_per_cycle;
    struct td_sum sum;
    struct td_l1 l1;
    memset(&sum, 0, sizeof sum);
    sum.size = sizeof sum;
    for (int i = 0; i < 8; i++) {
        td_must(td_sum_begin(td, &sum));
        half_and_half();
        td_must(td_sum_end(td, &sum));
        CHECK_EQ(prctl(PR_TASK_PERF_EVENTS_ENABLE), 0);
    }
    td_must(td_sum_l1(&sum, &l1));
    l1_is(&l1, BOTH, 0.02);
    CHECK_NEAR((double)l1.slots, 16.0 * PART * width, 0.8 * PART * width);
    td_close(td);
}

static void marks(void)
{
    td_t *td = measured(NULL);
    const uint32_t width = info_of(td).slots_per_cycle;
    struct td_mark a, b;
    struct td_sample before, after;
    td_must(td_read_mark(td, &a));
    half_and_half();
    td_must(td_read_mark(td, &b));
    CHECK_EQ(prctl(PR_TASK_PERF_EVENTS_ENABLE), 0);
    td_must(td_mark_sample(td, &a, &before));
    td_must(td_mark_sample(td, &b, &after));
    l1_of(&before, &after, width);
    td_close(td);
}

/* the program's own event is switched off as ever */
static void own_event(void)
{
    struct perf_group own = {{0}, 0};
    uint64_t first = 0, last = 0;
    const int fd = add_event(&own, in_user_mode(event_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK)), 0, -1, -1);
    group_runs(&own);
    td_t *td = measured(NULL);
    CHECK_EQ(prctl(PR_TASK_PERF_EVENTS_DISABLE), 0);
    CHECK_EQ(read(fd, &first, sizeof first), (ssize_t)sizeof first);
    work(PART);
    CHECK_EQ(read(fd, &last, sizeof last), (ssize_t)sizeof last);
    CHECK_EQ(first, last);
    CHECK_EQ(prctl(PR_TASK_PERF_EVENTS_ENABLE), 0);
    td_close(td);
    group_ends(&own);
}

int main(void)
{
    needs_known_mix();
    read_by(0);
    read_by(TD_FLAG_NO_RDPMC);
    sums();
    marks();
    own_event();
    return 0;
}
