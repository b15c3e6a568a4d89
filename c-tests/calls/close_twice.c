/* Two threads close one handle at the same moment, which no program should: it is closed once, nobody crashes, and its
 * memory and descriptors are not given to two later handles. */
#include "check.h"
#include <sched.h>
#ifndef OPEN
#define OPEN() simulated(0) /* pmu_close_twice.c has another */
#define ROUNDS 5000
#endif

static td_t *td;
static int round_number; /* of the closer */

static void *closer(void *unused)
{
    for (int i = 1; i <= ROUNDS; i++) {
        while (__atomic_load_n(&round_number, __ATOMIC_ACQUIRE) != 2 * i - 1)
            sched_yield();
        td_close(td);
        __atomic_store_n(&round_number, 2 * i, __ATOMIC_RELEASE);
    }
    return unused;
}

int main(void)
{
    struct td_sample sample;
    const pthread_t thread = start_thread(closer, NULL);
    for (int i = 1; i <= ROUNDS; i++) {
        td = OPEN();
        td_must(td_read(td, &sample));
        __atomic_store_n(&round_number, 2 * i - 1, __ATOMIC_RELEASE);
        td_close(td);
        while (__atomic_load_n(&round_number, __ATOMIC_ACQUIRE) != 2 * i)
            sched_yield();
        CHECK_EQ(td_read(td, &sample), -EBADF);
    }
    join_thread(thread);
    CHECK_EQ(perf_descriptors(), 0);
    enum { LATER = 64 };
    td_t *later[LATER];
    for (int i = 0; i < LATER; i++) {
        later[i] = simulated(0); /* real ones would be rotated on the counters */
        for (int j = 0; j < i; j++)
            CHECK(later[j] != later[i]);
    }
    for (int i = 0; i < LATER; i++) {
        td_must(td_read(later[i], &sample));
        td_close(later[i]);
    }
    return 0;
}
