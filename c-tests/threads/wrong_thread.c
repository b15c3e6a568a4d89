/* Only the thread that opened a handle may use it: not another one while it lives, nor one that was started after it
 * ended and stands where it stood. Any thread may decode, and close what its owner has left. */
#include "check.h"
#ifndef OPEN
#define OPEN() simulated(0) /* pmu_wrong_thread.c has another */
#endif

static td_t *td;
static struct td_sample before, after;
static pthread_t place_of_opener;

static void all_refused(void)
{
    struct td_sample sample;
    struct td_info info;
    struct td_mix mix;
    memset(&sample, 0x55, sizeof sample);
    memset(&mix, 0, sizeof mix);
    mix.size = sizeof mix;
    mix.retiring = 1;
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(td_read(td, &sample), TD_EWRONGTHREAD);
    CHECK_EQ(sample.size, 0x55555555);
    CHECK_EQ(td_reset(td), TD_EWRONGTHREAD);
    CHECK_EQ(td_get_info(td, &info), TD_EWRONGTHREAD);
    CHECK_EQ(td_simulate_mix(td, &mix), TD_EWRONGTHREAD);
    CHECK(last_error_with("thread"));
}

/* reads while the opener is alive and reads, too */
static void *foreign(void *unused)
{
    struct td_l1 l1;
    all_refused();
    td_must(td_decode_l1(&before, &after, &l1));
    /* a thread with a handle of its own is no less foreign */
    td_t *own = OPEN();
    all_refused();
    td_close(own);
    return unused;
}

static void *opener(void *unused)
{
    place_of_opener = pthread_self();
    td = OPEN();
    td_must(td_read(td, &before));
    return unused;
}

static void *successor(void *closes)
{
    if (!pthread_equal(pthread_self(), place_of_opener))
        fprintf(stderr, "note: the second thread does not stand where the first stood\n");
    all_refused();
    if (closes != NULL) {
        struct td_sample sample;
        td_close(td);
        CHECK_EQ(td_read(td, &sample), -EBADF);
    }
    return NULL;
}

int main(void)
{
    td = OPEN();
    td_must(td_read(td, &before));
    work(1000);
    td_must(td_read(td, &after));
    struct td_sample last = after, now;
    const pthread_t thread = start_thread(foreign, NULL);
    for (int i = 0; i < 1000; i++) {
        td_must(td_read(td, &now));
        CHECK(now.slots >= last.slots);
        last = now;
    }
    join_thread(thread);
    td_must(td_read(td, &now));
    CHECK(now.slots > after.slots); /* nobody reset it */
    td_close(td);

    join_thread(start_thread(opener, NULL));
    join_thread(start_thread(successor, NULL));
    all_refused();
    join_thread(start_thread(successor, &td));
    return 0;
}
