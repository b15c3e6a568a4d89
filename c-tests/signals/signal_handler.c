/* td_read in a signal handler, whatever call on the same handle it interrupts: right totals or -EBUSY, and the
 * interrupted call is none the worse. */
#include "check.h"
#include <signal.h>
#include <sys/time.h>
#ifndef OPEN
#define OPEN() simulated(0) /* pmu_signal_handler.c has another */
#endif

static td_t *td;
static struct td_sample last; /* the handler's own */
static volatile sig_atomic_t handled, busy, wrong, undecodable;

static void handler(int unused)
{
    struct td_sample now;
    struct td_l1 l1;
    (void)unused;
    const int code = td_read(td, &now);
    handled = handled + 1;
    if (code == -EBUSY) {
        busy = busy + 1;
        return;
    }
    if (code != 0) {
        wrong = code;
        return;
    }
    const int shares = td_decode_l1(last.size != 0 ? &last : NULL, &now, &l1);
    if (shares != 0 && shares != TD_ESTALE && shares != TD_ENOTCOUNTING)
        undecodable = shares;
    last = now;
}

/* On a machine that is slow, or at work for others, the handler runs again as soon as it has ended: then the call says so, and is made
 * again. */
static void reset(void)
{
    int code, tries = 0;
    while ((code = td_reset(td)) == -EBUSY)
        CHECK(++tries < 100);
    td_must(code);
}

int main(void)
{
    const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    struct sigaction action;
    struct td_sample before, after;
    struct td_l1 l1;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    td = OPEN();
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
    for (long turn = 0; handled < 1000; turn++) {
        if (turn % 8 == 0)
            reset();
        td_must(td_read(td, &before));
        td_must(td_read(td, &after));
        CHECK(after.slots >= before.slots);
        const int code = td_decode_l1(&before, &after, &l1);
        CHECK(code == 0 || code == TD_ENOTCOUNTING);
    }
    CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
    if (wrong != 0)
        FAIL("td_read in the handler: %d (%s)", (int)wrong, td_strerror(wrong));
    if (undecodable != 0)
        FAIL("td_decode_l1 in the handler: %d (%s)", (int)undecodable, td_strerror(undecodable));
    CHECK(busy < handled); /* some must have got through */
    td_close(td);
    printf("%d handled, %d found the handle busy\n", (int)handled, (int)busy);
    return 0;
}
