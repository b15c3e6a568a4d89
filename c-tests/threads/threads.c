/* Threads that measure at once do not meet: each opens, reads, sums and closes its own. What one leaves to the next,
 * samples and a handle, that one may decode and close. */
#include "check.h"
#include <pthread.h>

enum { THREADS = 4, TURNS = 200 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    td_t *td;
    struct td_sample before, after;
} left; /* by the last thread that came by */

static void *measure(void *argument)
{
    const uint32_t bad_level = 4 + (uint32_t)(uintptr_t)argument;
    struct td_sample before, after;
    struct td_l1 l1;
    char word[32];
    snprintf(word, sizeof word, "level %u is none", bad_level);
    for (int turn = 0; turn < TURNS; turn++) {
        struct td_options options;
        struct td_sum sum;
        td_t *td = simulated(0), *none;
        memset(&options, 0, sizeof options);
        memset(&sum, 0, sizeof sum);
        options.flags = TD_FLAG_SIMULATE;
        options.level = bad_level;
        CHECK_EQ(td_open(&none, &options), -EINVAL);
        td_must(td_read(td, &before));
        td_must(td_sum_begin(td, &sum));
        work(1000);
        td_must(td_sum_end(td, &sum));
        td_must(td_read(td, &after));
        td_must(td_decode_l1(&before, &after, &l1));
        CHECK(last_error_with(word)); /* no other thread's */

        CHECK_EQ(pthread_mutex_lock(&lock), 0);
        td_t *const old = left.td;
        if (old != NULL)
            td_must(td_decode_l1(&left.before, &left.after, &l1));
        left.td = td, left.before = before, left.after = after;
        CHECK_EQ(pthread_mutex_unlock(&lock), 0);
        td_close(old);
    }
    return NULL;
}

int main(void)
{
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, measure, (void *)(uintptr_t)i), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    td_close(left.td);
    return 0;
}
