/* Signal handlers that use regions, leave by longjmp, and end the process, whatever they interrupt. */
#include "preload.h"
#include <setjmp.h>
#include <sys/time.h>

static volatile int fired, jumps;
static sigjmp_buf back;

static void storm(void (*handler)(int), int microseconds)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, microseconds}, {0, microseconds}};
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
}
static void calm(void)
{
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
}

static void uses_regions(int signal)
{
    (void)signal;
    const int error = errno;
    td_region_begin("handler");
    td_region_begin("deeper");
    td_region_end("deeper");
    td_region_end("handler");
    fired++;
    errno = error;
}
static void *short_one(void *unused) { region("short", 10); return unused; }
static int regions_in_handlers(void)
{
    storm(uses_regions, 50);
    for (int turn = 0; turn < 100 || fired < 2000; turn++) {
        char name[20];
        snprintf(name, sizeof name, "new %d", turn % 500);
        td_region_begin("around");
        region(name, 3);
        region("steady", 500);
        td_region_end("around");
        join_thread(start_thread(short_one, NULL));
    }
    calm();
    region("after", 7);
    return 0;
}
static void handlers_report(const char *csv)
{
    EXECUTED(csv, "after", 7);
    CHECK(figure(csv, "handler", "executions") > 100);
    /* an execution counts, or is said to be missed */
    const double around = figure(csv, "around", "executions");
    CHECK(around > 50);
    CHECK_EQ(figure(csv, "around", "unended"), 0);
    CHECK_EQ((long long)figure(csv, "steady", "executions") % 1, 0);
}

/* The next signal comes after 20 to 1,000 microseconds: where a new region takes longer than the shortest of these, as on a machine
 * under load, the program still gets further. */
static void next_signal(void)
{
    static uint32_t drawn = 1;
    drawn = drawn * 1664525 + 1013904223;
    const struct itimerval once = {.it_value = {0, 20 + (drawn >> 16) % 981}};
    setitimer(ITIMER_REAL, &once, NULL);
}

static void jumps_out(int signal)
{
    (void)signal;
    next_signal();
    td_region_begin("left");
    siglongjmp(back, 1);
}
static int jumps_from_handlers(void)
{
    if (sigsetjmp(back, 1))
        jumps++;
    else
        storm(jumps_out, 100);
    while (jumps < 2000) {
        char name[20];
        snprintf(name, sizeof name, "new %d", jumps % 300);
        region(name, 2);
        region("steady", 500);
    }
    calm();
    /* what was left open ends here, and everything works */
    for (int k = 0; k < 3 * jumps; k++)
        td_region_end("left");
    region("after", 1000);
    return 0;
}
static void jumps_report(const char *csv)
{
    CHECK(figure(csv, "steady", "executions") > 0);
    EXECUTED(csv, "after", 1000);
}

/* The handler ends the process while malloc, a thread's start or a fork is under way. */
static void ends(int signal)
{
    (void)signal;
    _exit(21);
}
static int ends_at_any_time(void)
{
    region("done", 10);
    for (int k = 0; k < 150; k++) {
        pid_t child = fork();
        if (child == 0) {
            static const int SHORT[] = {97, 331, 1009, 3001};
            storm(ends, SHORT[k % 4]);
            for (;;) {
                if (k % 3 == 0)
                    join_thread(start_thread(short_one, NULL));
                else if (k % 3 == 1)
                    free(realloc(malloc((size_t)(k * 37 % 5000)), 100000));
                else if (fork() == 0)
                    syscall(231, 21); /* exit_group */
                else
                    while (waitpid(-1, NULL, WNOHANG) > 0) {}
            }
        }
        int status;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 21 << 8);
    }
    return 0;
}
static void ends_report(const char *csv) { EXECUTED(csv, "done", 10); }

static const struct preload_case CASES[] = {
    {"regions in handlers", regions_in_handlers, handlers_report, NULL}, {"longjmp from handlers", jumps_from_handlers, jumps_report, NULL},
    {"_exit in handlers", ends_at_any_time, ends_report, NULL},
};
PRELOAD_MAIN(CASES)
