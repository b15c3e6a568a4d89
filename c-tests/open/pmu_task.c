/* TD_TARGET_TASK: another thread's slots, all of them and no others; a thread that is not there is -ESRCH. */
#include "pmu.h"
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>

enum { INSTRUCTIONS = 3000000, ROUNDS = 4 };
static sem_t go, done;
static pid_t tid;

static void *worker(void *unused)
{
    tid = (pid_t)syscall(SYS_gettid);
    sem_post(&done);
    for (int i = 0; i < ROUNDS; i++) {
        while (sem_wait(&go) != 0)
            ;
        mix_is(MIXES[i % 4]);
        work(INSTRUCTIONS);
        sem_post(&done);
    }
    return unused;
}

static void await(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        ;
}

int main(void)
{
    pthread_t thread;
    struct td_sample before, after;
    struct td_options options = options_of(0, 0);
    struct td_l1 l1;
    struct td_l2 l2;
    td_t *td = measured(NULL), *none = NULL;
    td_close(td);
    needs_known_mix();
    sem_init(&go, 0, 0);
    sem_init(&done, 0, 0);
    CHECK_EQ(pthread_create(&thread, NULL, worker, NULL), 0);
    await(&done);

    options.target = TD_TARGET_TASK;
    options.id = tid;
    td = measured(&options);
    const struct td_info info = info_of(td);
    CHECK_EQ(info.path, TD_PATH_READ);
    CHECK(strstr(info.note, "another thread") != NULL);
    for (int i = 0; i < ROUNDS; i++) {
        td_must(td_reset(td));
        td_must(td_read(td, &before));
        work(1000000); /* this thread's slots are not that thread's */
        sem_post(&go);
        await(&done);
        td_must(td_read(td, &after));
        td_must(td_decode_l1(&before, &after, &l1));
        CHECK((double)l1.slots >= (double)INSTRUCTIONS * info.slots_per_cycle);
        CHECK((double)l1.slots <= (double)(INSTRUCTIONS + 20000) * info.slots_per_cycle);
        l1_is(&l1, MIXES[i % 4], 0.1); /* a switch costs a unit of 1/255 of what the registers hold */
        CHECK(l1.error < (i == 0 ? 0.1 : 0.25)); /* it sleeps when it is read: nothing resets them */
        if (has_l2(&info)) {
            td_must(td_decode_l2(&before, &after, &l2));
            l2_is(&l2, MIXES[i % 4], 0.1);
            CHECK(l2.error < (i == 0 ? 0.2 : 0.5));
        }
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
    td_must(td_read(td, &after)); /* the thread is gone, its totals are not */
    CHECK(after.slots >= before.slots + l1.slots);
    td_close(td);

    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        _exit(0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    options.id = child;
    CHECK_EQ(td_open(&none, &options), -ESRCH);
    CHECK(last_error_with("no thread"));
    return 0;
}
