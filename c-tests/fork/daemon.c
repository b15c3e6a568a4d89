/* A daemon (fork, setsid, fork) closes its grandparent's handle and measures with one of its own; the grandparent's totals
 * know nothing of it. */
#include "check.h"
#ifndef OPEN
#define OPEN() simulated(0) /* pmu_daemon.c has another */
#endif

static void is_daemon(td_t *td, int to)
{
    struct td_sample sample;
    struct td_l1 l1;
    CHECK_EQ(chdir("/"), 0);
    CHECK_EQ(td_read(td, &sample), TD_EWRONGTHREAD);
    td_close(td);
    CHECK_EQ(perf_descriptors(), 0);
    td_t *own = OPEN();
    td_must(td_reset(own));
    work(20000000);
    td_must(td_read(own, &sample));
    td_must(td_decode_l1(NULL, &sample, &l1));
    td_close(own);
    CHECK_EQ(write(to, &l1, sizeof l1), sizeof l1);
}

int main(void)
{
    int ends[2];
    struct td_sample before, after;
    struct td_info info;
    struct td_l1 theirs, ours;
    td_t *td = OPEN();
    td_must(td_get_info(td, &info));
    CHECK_EQ(pipe(ends), 0);
    td_must(td_read(td, &before));
    const pid_t child = fork();
    if (child == 0) {
        CHECK(setsid() > 0);
        const pid_t daemon = fork();
        CHECK(daemon >= 0);
        if (daemon == 0)
            is_daemon(td, ends[1]);
        _exit(0);
    }
    child_is_well(child);
    close(ends[1]);
    CHECK_EQ(read(ends[0], &theirs, sizeof theirs), sizeof theirs); /* end of file: it has failed */
    td_must(td_read(td, &after));
    td_must(td_decode_l1(&before, &after, &ours));
    CHECK(theirs.slots > 0);
    if (info.path != TD_PATH_SIMULATED) /* that one is driven by the clock */
        CHECK(ours.slots < theirs.slots / 4);
    td_close(td);
    return 0;
}
