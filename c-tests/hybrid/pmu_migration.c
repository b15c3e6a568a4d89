/* A hybrid CPU: a thread that is moved between a P-core and an E-core again and again, at any instruction of a td_read. RDPMC
 * faults on an E-core: it is not executed there. Totals and times never go back, and hold what ran on the P-core.
 * needs: counters, hybrid */
#include "pmu.h"
#include <pthread.h>

#ifndef MOVES
#define MOVES 100000
#endif
static volatile int stop;
static pid_t reader;
static int p, e;
static uint64_t seed;

static void *mover(void *unused)
{
    const long count = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t others;
    CPU_ZERO(&others);
    for (int cpu = 0; cpu < count; cpu++)
        if (cpu != p && cpu != e)
            CPU_SET((unsigned)cpu, &others);
    if (count > 2)
        CHECK_EQ(sched_setaffinity(0, sizeof others, &others), 0);
    for (int i = 0; i < MOVES; i++) {
        move_to(reader, i % 2 ? p : e);
        work(next_random(&seed) % 4000);
    }
    stop = 1;
    return unused;
}

int main(int argc, char **argv)
{
    struct td_sample first, last, now;
    struct td_l1 l1;
    pthread_t thread;
    long readings = 0;
    p = p_core(), e = e_core();
    if (p < 0 || e < 0)
        SKIP("not a hybrid CPU");
    seed = seed_of(argc, argv);
    printf("seed %llu\n", (unsigned long long)seed);
    reader = (pid_t)syscall(SYS_gettid);
    move_to(0, p);
    td_t *td = measured(NULL);
    CHECK_EQ(info_of(td).path, TD_PATH_RDPMC);
    if (emulated())
        mix_is(MIXES[0]);
    td_must(td_reset(td));
    td_must(td_read(td, &first));
    last = first;
    CHECK_EQ(pthread_create(&thread, NULL, mover, NULL), 0);
    while (!stop) {
        td_must(td_read(td, &now));
        CHECK(now.slots >= last.slots);
        CHECK(now.time_enabled_ns >= last.time_enabled_ns);
        CHECK(now.time_running_ns >= last.time_running_ns);
        CHECK(now.time_running_ns <= now.time_enabled_ns);
        last = now;
        readings++;
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
    td_must(td_decode_l1(&first, &last, &l1));
    const double most = (double)(last.time_running_ns - first.time_running_ns) * info_of(td).slots_per_cycle;
    printf("%ld readings during %d moves; on the P-core %.2f of the time, in user mode %.2f of that\n", readings, MOVES,
           l1.running, (double)l1.slots / most);
    CHECK(l1.running > 0.1 && l1.running < 0.9);
    if (emulated()) { /* where a slot takes 1/width ns */
        l1_is(&l1, MIXES[0], l1.error);
        CHECK((double)l1.slots > 0.01 * most && (double)l1.slots < most);
    }
    td_close(td);
    return 0;
}
