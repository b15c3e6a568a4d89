/* Programs under the preload library, with counters: figures are true or missing, whatever becomes of its descriptors;
 * and programs behave as without it. */
#include "preload.h"
#include "pmu.h"
#include "stepped.h"
#include <sys/time.h>
#include <sys/syscall.h>

static void regions(const char *name, int times)
{
    for (int k = 0; k < times; k++) {
        td_region_begin(name);
        work(1000000);
        td_region_end(name);
    }
}

/* What there is of a region is within its bound of the truth. */
static void is_true(const char *csv, const char *name, struct vm_mix mix)
{
    static const char *const COLUMNS[] = {"retiring", "bad_speculation", "frontend_bound", "backend_bound"};
    const struct truth truth = truth_of(mix);
    const double error = figure(csv, name, "error_1");
    fprintf(stderr, "%s: %g executions, %g measured, %g missed, within %g\n", name, figure(csv, name, "executions"),
            figure(csv, name, "measured"), figure(csv, name, "missed"), error);
    for (int k = 0; k < 4 && error == error && error >= 0; k++)
        CHECK_NEAR(figure(csv, name, COLUMNS[k]), truth.l1[k], error);
}

static void *in_thread(void *name) { mix_is(MIXES[2]); regions(name, 20); return NULL; }

/* all of /proc/self/fd, or at once */
static int closes_all(int by_name)
{
    mix_is(MIXES[0]);
    regions("before", 20);
    if (by_name) {
        DIR *directory = opendir("/proc/self/fd");
        for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
            if (atoi(entry->d_name) > 2 && atoi(entry->d_name) != dirfd(directory))
                close(atoi(entry->d_name));
        }
        closedir(directory);
    } else {
        syscall(SYS_close_range, 3, ~0u, 0);
    }
    /* where its descriptors may be, there is another's now */
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    struct rlimit highest = {limit.rlim_max, limit.rlim_max};
    setrlimit(RLIMIT_NOFILE, &highest);
    int pipes[2], own[20], there = 0;
    CHECK_EQ(pipe(pipes), 0);
    for (int n = 0; n < 20; n++) {
        own[n] = fcntl(pipes[0], F_DUPFD, n < 10 ? (int)limit.rlim_cur : 3);
        CHECK(own[n] > 0);
    }
    CHECK_EQ(write(pipes[1], "0123456789", 10), 10);
    mix_is(MIXES[3]);
    regions("closed", 200);
    join_thread(start_thread(in_thread, (void *)(uintptr_t)"thread"));
    CHECK(fcntl(pipes[0], F_SETFL, O_NONBLOCK) == 0);
    char byte;
    while (read(own[0], &byte, 1) == 1)
        there++;
    printf("%d bytes\n", there);
    fflush(stdout);
    if (fork() == 0)
        _exit(0); /* gives up the parent's handles */
    wait(NULL);
    for (int n = 0; n < 20; n++)
        CHECK_EQ(fcntl(own[n], F_GETFD), 0);
    return 0;
}
static int closes(void) { return closes_all(0); }
static int closes_by_name(void) { return closes_all(1); }
static void closes_report(const char *csv)
{
    is_true(csv, "before", MIXES[0]);
    is_true(csv, "closed", MIXES[3]);
    is_true(csv, "thread", MIXES[2]);
}

/* Limits as low as can be, at which counters are opened in threads that have little stack. */
static int little(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    CHECK_EQ(pthread_attr_setstacksize(&attributes, 16384), 0);
    for (int k = 0; k < 10; k++) {
        CHECK_EQ(pthread_create(&thread, &attributes, in_thread, (void *)(uintptr_t)"thread"), 0);
        join_thread(thread);
    }
    return 0;
}
static void little_report(const char *csv)
{
    EXECUTED(csv, "thread", 200);
    is_true(csv, "thread", MIXES[2]);
}

/* Parent and child have their own. */
static int forks(void)
{
    mix_is(MIXES[0]);
    regions("parent", 20);
    for (int k = 0; k < 5; k++) {
        if (fork() == 0) {
            mix_is(MIXES[1]);
            regions("child", 20);
            kill(getpid(), SIGKILL);
        }
        mix_is(MIXES[0]);
        regions("parent", 20);
        wait(NULL);
    }
    return 0;
}
static void forks_report(const char *csv)
{
    EXECUTED(csv, "parent", 120);
    EXECUTED(csv, "child", 100);
    is_true(csv, "parent", MIXES[0]);
    is_true(csv, "child", MIXES[1]);
}

/* Many threads, each with its descriptors, while others fork. */
static volatile int enough;
static void *short_one(void *unused) { td_region_begin("short"); td_region_end("short"); return unused; }
static void *starts_threads(void *unused)
{
    while (!enough)
        join_thread(start_thread(short_one, NULL));
    return unused;
}
static int storms(void)
{
    pthread_t starter = start_thread(starts_threads, NULL);
    for (long k = 0; k < repeats(100); k++) {
        if (fork() == 0) {
            td_region_begin("child");
            td_region_end("child");
            _exit(0);
        }
        wait(NULL);
    }
    enough = 1;
    join_thread(starter);
    return 0;
}
static void storms_report(const char *csv) { EXECUTED(csv, "child", repeats(100)); }

/* Handlers with regions of their own interrupt begins and ends of the steady state: all are counted, each in its place. */
enum { PAIRS = 300000 };
static void has_regions(int signal)
{
    (void)signal;
    td_region_begin("handler");
    td_region_end("handler");
    td_region_begin("steady");
    td_region_end("steady");
}
static int interrupted(void)
{
    struct itimerval often = {{0, 30}, {0, 30}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, has_regions);
    has_regions(0); /* the linker and the first execution have their own ways */
    setitimer(ITIMER_REAL, &often, NULL);
    for (int k = 0; k < PAIRS; k++) {
        td_region_begin("steady");
        td_region_end("steady");
    }
    setitimer(ITIMER_REAL, &never, NULL);
    return 0;
}
static void interrupted_report(const char *csv)
{
    const double fired = figure(csv, "handler", "executions");
    fprintf(stderr, "%.0f signals\n", fired);
    CHECK(fired > 500);
    CHECK_EQ(figure(csv, "steady", "executions") + figure(csv, "steady", "nested"), PAIRS + fired);
    CHECK_EQ(figure(csv, "steady", "unbalanced") + figure(csv, "handler", "unbalanced"), 0);
    CHECK_EQ(figure(csv, "steady", "unended") + figure(csv, "steady", "missed"), 0);
}

/* A debugger steps through begins and ends: they end, and are counted. */
static void stepped_regions(void)
{
    mix_is(MIXES[1]);
    regions("free", 20);
    for (int k = 0; k < 3; k++) {
        step_from_here();
        td_region_begin("stepped");
        step_to_here();
        work(1000000);
        step_from_here();
        td_region_end("stepped");
        step_to_here();
    }
    regions("free", 20);
}
static int is_stepped(void)
{
    fprintf(stderr, "%s", stepped(stepped_regions, 60000) > 0 ? "" : "no step");
    return 0;
}
static void stepped_report(const char *csv)
{
    EXECUTED(csv, "free", 40);
    EXECUTED(csv, "stepped", 3);
    is_true(csv, "free", MIXES[1]);
    is_true(csv, "stepped", MIXES[1]);
}

static const struct preload_case CASES[] = {
    {"close all", closes, closes_report, NULL}, {"close by name", closes_by_name, closes_report, NULL}, {"little stack", little, little_report, NULL},
    {"fork", forks, forks_report, NULL}, {"storm", storms, storms_report, NULL},
    {"interrupted", interrupted, interrupted_report, NULL}, {"stepped", is_stepped, stepped_report, NULL},
};

int main(int argc, char **argv)
{
    if (argc < 3) {
        needs_known_mix();
        if (!pmu_there())
            SKIP("no topdown counters here");
        setenv("TOPDOWN_SIMULATE", "0", 1);
    }
    return preload_main(argc, argv, CASES, sizeof CASES / sizeof *CASES);
}
