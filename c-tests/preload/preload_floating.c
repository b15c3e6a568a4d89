/* A measured program's floating-point environment is its own: no call of the library leaves a flag in it, none is trapped by what the
 * program traps, and none rounds as the program does or has it round otherwise: in regions, hooked functions, threads and forked
 * children, and at the end. */
#define _GNU_SOURCE
#include "preload.h"
#include <fenv.h>
#include <math.h>
#include <sys/wait.h>

static volatile double x;

/* Work without a result that is inexact, in a region. */
static void exact(int k)
{
    char name[20];
    snprintf(name, sizeof name, "exact %d", k % 40);
    feclearexcept(FE_ALL_EXCEPT);
    td_region_begin(name);
    x = 2;
    for (volatile int n = 0; n < 200; n++)
        x = x * 2 > 1e300 ? 2 : x * 2;
    td_region_begin("inner");
    td_region_end("inner");
    td_region_end(name);
}

static int leaves_no_flag(void)
{
    int wrong = 0;
    for (int k = 0; k < 2000; k++) {
        exact(k);
        wrong += fetestexcept(FE_INEXACT | FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW) != 0;
    }
    CHECK_EQ(wrong, 0);
    return 0;
}
static void flags_report(const char *csv) { EXECUTED(csv, "inner", 2000); }

static void *traps(void *unused)
{
    /* (an arm64 CPU need not trap anything) */
    feenableexcept(FE_INEXACT | FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW);
    for (int k = 0; k < 500; k++)
        exact(k);
    return unused;
}
static int traps_all(void)
{
    int status;
    traps(NULL);
    join_thread(start_thread(traps, NULL));
    const pid_t child = fork();
    if (child == 0) {
        traps(NULL);
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    const int enabled = fegetexcept();
    CHECK(enabled == 0 || (enabled & FE_INEXACT));
    return 0; /* and its end is still to come */
}
static void traps_report(const char *csv) { EXECUTED(csv, "inner", 1500); }

static int rounds(void)
{
    static const int ways[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (int k = 0; k < 600; k++) {
        CHECK_EQ(fesetround(ways[k % 3]), 0);
        exact(k);
        CHECK_EQ(fegetround(), ways[k % 3]);
    }
    return 0;
}
static void rounds_report(const char *csv)
{
    EXECUTED(csv, "inner", 600);
    CHECK(fabs(figure(csv, "inner", "retiring") - 0.4) <= figure(csv, "inner", "error_1")); /* what is simulated */
}

static const struct preload_case CASES[] = {
    {"flags", leaves_no_flag, flags_report, NULL},
    {"traps", traps_all, traps_report, NULL},
    {"rounds", rounds, rounds_report, NULL},
};
PRELOAD_MAIN(CASES)
