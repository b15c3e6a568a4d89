/* TD_FLAG_INHERIT counts threads and processes that are started afterwards, too; without it they are not counted. What is
 * inherited has no bound, and says so; the shares are near the truth all the same. */
#include "pmu.h"
#include <pthread.h>
#include <sys/wait.h>

enum { INSTRUCTIONS = 3000000 };

static void *worker(void *unused)
{
    mix_is(MIXES[2]);
    work(INSTRUCTIONS);
    return unused;
}

/* a thread and a child process, one after the other, with the same mix as this thread */
static void others_work(void)
{
    pthread_t thread;
    int status = -1;
    CHECK_EQ(pthread_create(&thread, NULL, worker, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        worker(NULL);
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

static void counts(uint32_t flags, double works)
{
    const struct td_options options = options_of(flags, 0);
    struct td_sample before, after;
    struct td_l1 l1;
    td_t *td = measured(&options);
    const struct td_info info = info_of(td);
    mix_is(MIXES[2]);
    td_must(td_reset(td));
    td_must(td_read(td, &before));
    work(INSTRUCTIONS);
    others_work();
    td_must(td_read(td, &after));
    td_must(td_decode_l1(&before, &after, &l1));
    /* starting and ending a thread and a process costs far less than half the work */
    CHECK_NEAR((double)l1.slots / info.slots_per_cycle / INSTRUCTIONS, works, 0.5);
    CHECK((double)l1.slots >= works * INSTRUCTIONS * info.slots_per_cycle);
    l1_is(&l1, MIXES[2], 0.02);
    CHECK_EQ(before.flags & TD_SAMPLE_UNBOUNDED, after.flags & TD_SAMPLE_UNBOUNDED);
    CHECK_EQ(l1.flags, before.flags | after.flags);
    if (flags & TD_FLAG_INHERIT) {
        CHECK_EQ(info.path, TD_PATH_READ);
        CHECK(strstr(info.note, "TD_FLAG_INHERIT") != NULL);
    }
    if (flags & TD_FLAG_INHERIT && !takes_counters(td)) {
        CHECK(l1.flags & TD_SAMPLE_UNBOUNDED);
        CHECK(l1.error >= 0.75); /* a share of 0.25 may be 1 for all that is known */
    } else {
        CHECK(!(l1.flags & TD_SAMPLE_UNBOUNDED));
        CHECK(l1.error < 0.1);
    }
    td_close(td);
}

int main(void)
{
    td_close(measured(NULL));
    needs_known_mix();
    counts(0, 1);
    counts(TD_FLAG_INHERIT, 3);
    counts(TD_FLAG_INHERIT | TD_FLAG_REGISTERS, 3);
    return 0;
}
