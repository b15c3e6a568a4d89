/* The program forks while one thread is in the middle of td_reset and another of td_open or td_close: the children do not
 * hang. They close what was the parent's, and measure with handles of their own. */
#include "check.h"
#include <signal.h>
#ifndef OPEN
#define OPEN() simulated(0) /* pmu_fork_storm.c has another */
#define FORKS 50
#define OF_A_HANDLE 0 /* descriptors, at least */
#endif

static td_t *td;
static int done;

static void *resets(void *unused)
{
    struct td_sample sample;
    td = OPEN();
    pthread_barrier_wait((pthread_barrier_t *)unused);
    while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {
        td_must(td_reset(td));
        td_must(td_read(td, &sample));
    }
    pthread_barrier_wait((pthread_barrier_t *)unused); /* the children are done with it */
    td_close(td);
    return NULL;
}

static void *opens(void *unused)
{
    while (!__atomic_load_n(&done, __ATOMIC_RELAXED))
        td_close(OPEN());
    return unused;
}

static void child(void)
{
    struct td_sample sample;
    alarm(60); /* ends the child that hangs */
    CHECK_EQ(td_read(td, &sample), TD_EWRONGTHREAD);
    const int descriptors = perf_descriptors();
    td_close(td);
    CHECK(perf_descriptors() <= descriptors - OF_A_HANDLE);
    for (int i = 0; i < 20; i++) { /* more than rest before their memory is used again */
        td_t *own = OPEN();
        td_must(td_reset(own));
        td_must(td_read(own, &sample));
        td_close(own);
    }
    raise(SIGKILL); /* no exit: to a leak checker what other threads were at is lost */
}

int main(void)
{
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    const pthread_t owner = start_thread(resets, &barrier);
    pthread_barrier_wait(&barrier);
    const pthread_t opener = start_thread(opens, NULL);
    for (int i = 0; i < FORKS; i++) {
        const pid_t pid = fork();
        if (pid == 0)
            child();
        int status = -1;
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK(WIFSIGNALED(status));
        CHECK_EQ(WTERMSIG(status), SIGKILL);
    }
    __atomic_store_n(&done, 1, __ATOMIC_RELAXED);
    pthread_barrier_wait(&barrier);
    join_thread(owner);
    join_thread(opener);
    CHECK_EQ(perf_descriptors(), 0);
    return 0;
}
