/* A thousand threads open, read and close at once, each a handle of its own; a million readings by 64 threads on a few
 * CPUs: each thread's totals only grow, and its shares are its own. */
#include "check.h"
#ifndef OPEN
#define OPEN() simulated(0) /* pmu_load.c has others */
#define MIX_IS(td, k) simulate(td, k)
#define SHARES_ARE(l1, k) shares_are(l1, k)
static const double MIXES[4][4] = {{.7, .1, .1, .1}, {.1, .6, .1, .2}, {.1, .1, .7, .1}, {.2, .0, .1, .7}};

static void simulate(td_t *td, int k)
{
    struct td_mix mix;
    memset(&mix, 0, sizeof mix);
    mix.size = sizeof mix;
    mix.retiring = MIXES[k][0], mix.bad_speculation = MIXES[k][1];
    mix.frontend_bound = MIXES[k][2], mix.backend_bound = MIXES[k][3];
    td_must(td_simulate_mix(td, &mix));
}

static void shares_are(const struct td_l1 *l1, int k)
{
    double share[4];
    l1_array(l1, share);
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(share[i], MIXES[k][i], l1->error);
}
#endif
#ifndef THREADS
#define THREADS 1000
#endif

enum { READERS = 64, READINGS = 1000000 / READERS };
static pthread_barrier_t barrier;
static td_t *all[THREADS];
static uint64_t cost[READERS + 1]; /* ticks of the time-stamp counter, the least of all */

/* They are threads enough for their stacks to matter. */
static pthread_t small_thread(void *(*start)(void *), void *argument)
{
    pthread_t thread;
    pthread_attr_t small;
    CHECK_EQ(pthread_attr_init(&small), 0);
    CHECK_EQ(pthread_attr_setstacksize(&small, 256 * 1024), 0);
    CHECK_EQ(pthread_create(&thread, &small, start, argument), 0);
    pthread_attr_destroy(&small);
    return thread;
}

static void *one_of_many(void *own)
{
    struct td_sample before, after;
    struct td_l1 l1;
    pthread_barrier_wait(&barrier);
    td_t *td = *(td_t **)own = OPEN();
    td_must(td_read(td, &before));
    work(1000);
    td_must(td_read(td, &after));
    td_must(td_decode_l1(&before, &after, &l1));
    pthread_barrier_wait(&barrier); /* all are open */
    td_must(td_read(td, &after));
    pthread_barrier_wait(&barrier);
    td_close(td);
    return NULL;
}

static void many(int threads)
{
    static pthread_t thread[THREADS];
    CHECK_EQ(pthread_barrier_init(&barrier, NULL, (unsigned)threads), 0);
    for (int i = 0; i < threads; i++)
        thread[i] = small_thread(one_of_many, &all[i]);
    for (int i = 0; i < threads; i++)
        join_thread(thread[i]);
    pthread_barrier_destroy(&barrier);
    for (int i = 0; i < threads; i++) {
        for (int j = 0; j < i; j++)
            CHECK(all[i] != all[j]);
    }
    CHECK_EQ(perf_descriptors(), 0);
}

static uint64_t ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

static void *reader(void *argument)
{
    const int number = (int)(intptr_t)argument;
    struct td_sample first, last, now;
    struct td_l1 l1;
    td_t *td = OPEN();
    MIX_IS(td, number % 4);
    td_must(td_reset(td));
    td_must(td_read(td, &first));
    last = first;
    cost[number] = UINT64_MAX;
    for (long i = repeats(READINGS); i > 0; i--) {
        const uint64_t begun = ticks();
        const int code = td_read(td, &now);
        const uint64_t took = ticks() - begun;
        td_must(code);
        if (took < cost[number])
            cost[number] = took;
        CHECK(now.slots >= last.slots && now.time_enabled_ns >= last.time_enabled_ns);
        CHECK(now.time_running_ns >= last.time_running_ns && now.time_running_ns <= now.time_enabled_ns);
        last = now;
    }
    work(5000000);
    td_must(td_read(td, &now));
    td_must(td_decode_l1(&first, &now, &l1));
    CHECK(l1.error < 1);
    SHARES_ARE(&l1, number % 4);
    td_close(td);
    return NULL;
}

static void million(void)
{
    pthread_t thread[READERS];
    for (int i = 0; i < READERS; i++)
        thread[i] = small_thread(reader, (void *)(intptr_t)i);
    for (int i = 0; i < READERS; i++)
        join_thread(thread[i]);
}

#ifndef MAIN
int main(void)
{
    many(THREADS);
    many(THREADS); /* in the memory of those before */
    million();
    return 0;
}
#endif
