/* A thread that was cancelled goes on until a call of the program's own: td_open, with counters or without, and all that can be done
 * with a handle are no cancellation points. One that can be cancelled asynchronously is, when the call is done. */
#include "check.h"

static int reached;

static void *cancelled(void *unused)
{
    struct td_sample sample;
    struct td_info info;
    char text[512];
    td_t *td;
    CHECK_EQ(pthread_cancel(pthread_self()), 0);
    if (td_open(&td, NULL) == 0) {
        td_must(td_reset(td));
        td_must(td_read(td, &sample));
        td_close(td);
    } else {
        CHECK(td_last_error(text, sizeof text) > 0);
    }
    td = simulated(0);
    td_must(td_reset(td));
    td_must(td_read(td, &sample));
    td_must(td_get_info(td, &info));
    td_close(td);
    int state = -1;
    CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state), 0);
    CHECK_EQ(state, PTHREAD_CANCEL_ENABLE);
    reached = 1;
    pthread_testcancel();
    FAIL("the thread was not cancelled");
    return unused;
}

static long turns;

/* In a call, or between two. */
static void *computes(void *how)
{
    struct td_sample sample;
    struct td_sum sum;
    struct td_info info;
    td_t *td = (size_t)how == 2 ? simulated(0) : NULL;
    memset(&sum, 0, sizeof sum);
    CHECK_EQ(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL), 0);
    for (;; __atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED)) {
        if ((size_t)how == 0)
            td_close(NULL);
        else if ((size_t)how == 1)
            (void)(td_open(&td, NULL) == 0 && (td_close(td), 0));
        else if (td_reset(td) || td_read(td, &sample) || td_sum_begin(td, &sum) || td_sum_end(td, &sum) || td_get_info(td, &info))
            abort();
    }
    return NULL;
}

__attribute__((unused)) static void asynchronously(void)
{
    for (size_t how = 0; how < 3; how++) {
        const int rounds = how == 1 ? 10 : 50; /* (real counters take a while to open) */
        for (int round = 0; round < rounds; round++) {
            void *result = NULL;
            __atomic_store_n(&turns, 0, __ATOMIC_RELAXED);
            const pthread_t thread = start_thread(computes, (void *)how);
            while (__atomic_load_n(&turns, __ATOMIC_RELAXED) < round % 5)
                sched_yield();
            CHECK_EQ(pthread_cancel(thread), 0);
            CHECK_EQ(pthread_join(thread, &result), 0);
            CHECK(result == PTHREAD_CANCELED);
        }
    }
}

int main(void)
{
    for (int round = 0; round < 20; round++) {
        void *result = NULL;
        reached = 0;
        const pthread_t thread = start_thread(cancelled, NULL);
        CHECK_EQ(pthread_join(thread, &result), 0);
        CHECK(result == PTHREAD_CANCELED);
        CHECK(reached);
        CHECK_EQ(perf_descriptors(), 0);
    }
#ifndef __SANITIZE_THREAD__ /* whose runtime cannot be left at any instruction */
    asynchronously();
#endif
    return 0;
}
