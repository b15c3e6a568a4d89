/* A thread that was cancelled goes on until a call of the program's own: td_open, with counters or without, and all that can be done
 * with a handle are no cancellation points. */
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
    return 0;
}
