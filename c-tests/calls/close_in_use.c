/* Another thread closes a handle that its owner still reads, resets and asks, which no program should: the owner is told,
 * and nobody crashes. */
#include "check.h"
#include <sched.h>
#ifndef OPEN
#define OPEN() simulated(0) /* pmu_close_in_use.c has another */
#define ROUNDS 50
#endif

static td_t *td;

static void *owner(void *unused)
{
    struct td_sample sample;
    struct td_info info;
    int code = 0;
    td_t *own = OPEN();
    td_must(td_read(own, &sample));
    __atomic_store_n(&td, own, __ATOMIC_RELEASE);
    for (unsigned turn = 0; code == 0 || code == -EBUSY; turn++) {
        code = turn % 64 == 0 ? td_reset(own) : turn % 64 == 1 ? td_get_info(own, &info) : td_read(own, &sample);
    }
    CHECK_EQ(code, -EBADF);
    return unused;
}

int main(int argc, char **argv)
{
    uint64_t seed = seed_of(argc, argv);
    printf("seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < ROUNDS; i++) {
        td = NULL;
        const pthread_t thread = start_thread(owner, NULL);
        while (__atomic_load_n(&td, __ATOMIC_ACQUIRE) == NULL)
            sched_yield();
        work(next_random(&seed) % 20000);
        td_close(td);
        join_thread(thread);
    }
    CHECK_EQ(perf_descriptors(), 0);
    return 0;
}
