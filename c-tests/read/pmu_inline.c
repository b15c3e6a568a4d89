/* td_read_mark: what it notes decodes as what td_read says, over windows, naps and resets; a wrong thread and a closed handle
 * are told; a mark that is too old or of another handle is stale. Beside the other read paths, too. */
#include "pmu.h"
#include <pthread.h>
#include <topdown_inline.h>

static void *elsewhere(void *td)
{
    struct td_mark mark;
    CHECK_EQ(td_read_mark((td_t *)td, &mark), TD_EWRONGTHREAD);
    return NULL;
}

static void agrees(uint32_t flags)
{
    const struct td_options options = options_of(flags, 0);
    const struct timespec moment = {0, 20000};
    td_t *td = measured(&options);
    const int level = (int)info_of(td).level;
    struct td_mark a, b;
    struct td_sample before, after, last;
    struct td_l1 l1;
    struct td_l2 l2;
    int sharp = 0;
    for (int i = 0; i < 200; i++) {
        mix_is(MIXES[(i + 1) % 4]);
        work(i % 3 ? 1000 : 300000);
        mix_is(MIXES[i % 4]);
        td_must(td_read(td, &last));
        td_must(td_read_mark(td, &a));
        work(300000);
        if (i % 8 == 7)
            nanosleep(&moment, NULL);
        td_must(td_read_mark(td, &b));
        td_must(td_mark_sample(td, &a, &before));
        td_must(td_mark_sample(td, &b, &after));
        CHECK(before.slots >= last.slots && after.slots > before.slots);
        CHECK(before.time_enabled_ns <= after.time_enabled_ns && before.time_running_ns <= after.time_running_ns);
        td_must(td_read(td, &last));
        CHECK(last.slots >= after.slots && last.time_enabled_ns >= after.time_enabled_ns);
        td_must(td_decode_l1(&before, &after, &l1));
        l1_is(&l1, MIXES[i % 4], l1.error);
        sharp += l1.error < 0.05;
        CHECK_NEAR(l1.running, 1, 0.001);
        CHECK_NEAR((double)l1.slots, 300000.0 * info_of(td).slots_per_cycle, 5000.0 * info_of(td).slots_per_cycle);
        if (level == 2) {
            td_must(td_decode_l2(&before, &after, &l2));
            l2_is(&l2, MIXES[i % 4], l2.error);
        }
        td_must(td_decode_l1(&before, &last, &l1)); /* with a sample of td_read's */
        l1_is(&l1, MIXES[i % 4], l1.error);
    }
    CHECK(sharp >= 190); /* not a nap's, and the next region's, when the budget for windows is used up */

    td_must(td_reset(td));
    td_must(td_mark_sample(td, &b, &before)); /* remembered, but of another period */
    td_must(td_read_mark(td, &a));
    td_must(td_mark_sample(td, &a, &after));
    CHECK_EQ(td_decode_l1(&before, &after, &l1), TD_ESTALE);
    td_t *other = measured(&options);
    CHECK_EQ(td_mark_sample(other, &a, &after), TD_ESTALE);
    td_close(other);
    td_must(td_read_mark(td, &b));
    b.slots = 1ull << 48;
    CHECK_EQ(td_mark_sample(td, &b, &after), -EINVAL);
    CHECK_EQ(td_mark_sample(td, NULL, &after), -EINVAL);
    CHECK_EQ(td_mark_sample(td, &a, NULL), -EINVAL);
    CHECK_EQ(td_mark_sample(NULL, &a, &after), -EINVAL);
    for (int i = 0; i < 70; i++) { /* each nap is a look */
        nanosleep(&moment, NULL);
        td_must(td_read(td, &last));
    }
    CHECK_EQ(td_mark_sample(td, &a, &after), TD_ESTALE);

    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, elsewhere, td), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    td_close(td);
    CHECK_EQ(td_read_mark(td, &a), -EBADF);
}

/* While a competing group counts, the registers are that group's: a mark must not be of those. */
static void beside_another_handle(void)
{
    td_t *td = measured(NULL), *other = measured(NULL);
    const double width = info_of(td).slots_per_cycle;
    struct td_mark a, b;
    struct td_sample before, after;
    struct td_l1 l1;
    int counted = 0;
    for (int i = 0; i < 200; i++) {
        mix_is(MIXES[i % 4]);
        td_must(td_read_mark(td, &a));
        work(300000);
        td_must(td_read_mark(td, &b));
        mix_is(MIXES[(i + 1) % 4]);
        work(300000);
        td_must(td_mark_sample(td, &a, &before));
        td_must(td_mark_sample(td, &b, &after));
        CHECK(after.slots >= before.slots);
        const int code = td_decode_l1(&before, &after, &l1);
        if (code == TD_ENOTCOUNTING)
            continue;
        td_must(code);
        l1_is(&l1, MIXES[i % 4], l1.error);
        CHECK((double)l1.slots < 320000 * width || l1.flags & TD_SAMPLE_UNBOUNDED);
        counted++;
    }
    CHECK(counted > 50);
    td_close(other);
    td_close(td);
}

int main(void)
{
    td_close(measured(NULL));
    needs_known_mix();
    agrees(0);
    agrees(TD_FLAG_NO_RDPMC);
    beside_another_handle();
    return 0;
}
