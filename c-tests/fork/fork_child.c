/* A forked child does not own its parent's handle: it can but close it, opens its own, and the parent goes on. */
#include "check.h"
#include <sys/mman.h>
#ifndef OPEN
#define OPEN() simulated(0) /* pmu_fork_child.c has another */
#endif

static void child(td_t *td)
{
    struct td_sample sample;
    struct td_info info;
    struct td_l1 l1;
    CHECK_EQ(td_read(td, &sample), TD_EWRONGTHREAD);
    CHECK(last_error_with("fork"));
    CHECK_EQ(td_reset(td), TD_EWRONGTHREAD);
    CHECK_EQ(td_get_info(td, &info), TD_EWRONGTHREAD);

    /* what the child maps may lie where the parent's counters were mapped: closing must not take it away */
    enum { PAGES = 64 };
    volatile unsigned char *page[PAGES];
    for (int i = 0; i < PAGES; i++) {
        void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(memory != MAP_FAILED);
        page[i] = (volatile unsigned char *)memory;
        *page[i] = 42;
    }
    td_close(td);
    td_close(td);
    for (int i = 0; i < PAGES; i++)
        CHECK_EQ(*page[i], 42);

    td_t *own = OPEN();
    td_must(td_reset(own));
    work(100000);
    td_must(td_read(own, &sample));
    td_must(td_decode_l1(NULL, &sample, &l1));
    td_close(own);
}

static void forked(td_t *td)
{
    const pid_t pid = fork();
    if (pid == 0) {
        child(td);
        _exit(0);
    }
    child_is_well(pid);
}

int main(void)
{
    td_t *td = OPEN();
    struct td_sample before, after;
    struct td_l1 l1;
    for (int i = 0; i < 20; i++) {
        td_must(td_read(td, &before));
        forked(td);
        td_must(td_read(td, &after));
        CHECK(after.slots > before.slots);
        td_must(td_decode_l1(&before, &after, &l1));
    }
    td_close(td);
    return 0;
}
