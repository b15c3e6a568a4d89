/* strike.h: a signal that arrives in a chosen stretch of the program, most of the times. It is aimed: where it arrived last
 * tells how long to work before the stretch. */
#ifndef STRIKE_H
#define STRIKE_H
#include "check.h"
#include <signal.h>
#include <sys/time.h>

enum { NOWHERE, BEFORE, WITHIN, AFTER };
static volatile sig_atomic_t stage = NOWHERE; /* where the program is */
static volatile sig_atomic_t struck = NOWHERE; /* where it was when the signal arrived; the handler says */
static uint64_t lead = 10000; /* instructions from the timer's start to the stretch */

/* Starts the timer, and comes back right before the stretch. */
static inline void take_aim(void)
{
    const struct itimerval soon = {{0, 0}, {0, 30}};
    struck = NOWHERE;
    stage = BEFORE;
    CHECK_EQ(setitimer(ITIMER_REAL, &soon, NULL), 0);
    work(lead);
    stage = WITHIN;
}

/* Ends the stretch. Returns whether the signal arrived in it. */
static inline int was_struck(uint64_t *seed)
{
    stage = AFTER;
    while (struck == NOWHERE)
        work(100);
    const uint64_t step = next_random(seed) % 128; /* a td_read by RDPMC is some 60 instructions */
    if (struck == AFTER || (struck == WITHIN && step % 2))
        lead += step;
    else
        lead -= lead > step ? step : 0;
    stage = NOWHERE;
    return struck == WITHIN;
}

static inline void on_signal(void (*handler)(int))
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
}
#endif
