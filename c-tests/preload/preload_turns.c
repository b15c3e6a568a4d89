/* Groups of counters take turns in each thread (TOPDOWN_LEVEL=2 on a simulated Zen 4): regions in each other and in themselves, that overlap, in
 * threads that begin where others have ended, in a forked child, and one that is open all the time have as many executions as there
 * were, the nodes of all groups, and add up to the whole. A region that was executed once says what it lacks. */
#include "preload.h"
#include <pthread.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

enum { TIMES = 600, MANY = 100, RECURSIONS = 20000000 };

static void spins(double seconds)
{
    struct timespec then, now;
    clock_gettime(CLOCK_MONOTONIC, &then);
    do {
        work(1000);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - then.tv_sec) + 1e-9 * (double)(now.tv_nsec - then.tv_nsec) < seconds);
}

static void *nested(void *times)
{
    td_region_begin("open all the time");
    for (intptr_t k = 0; k < (intptr_t)times; k++) {
        td_region_begin("outer");
        spins(0.001);
        td_region_begin("inner");
        spins(0.002);
        td_region_begin("inner");
        td_region_end("inner");
        td_region_end("inner");
        td_region_end("outer");
    }
    td_region_end("open all the time");
    return NULL;
}

static int regions(void)
{
    pthread_t other;
    CHECK_EQ(pthread_create(&other, NULL, nested, (void *)TIMES), 0);
    nested((void *)TIMES);
    CHECK_EQ(pthread_join(other, NULL), 0);
    region("once", 1);
    return 3;
}

/* What the tables of Zen 4 have the counters count in a cycle of six slots. */
static void node_is(const char *csv, const char *region, const char *name, double share, double most)
{
    char low[80], high[80];
    snprintf(low, sizeof low, "%s_low", name);
    snprintf(high, sizeof high, "%s_high", name);
    fprintf(stderr, "%s: %s %f, between %f and %f\n", region ? region : "all", name, figure(csv, region, name), figure(csv, region, low), figure(csv, region, high));
    CHECK(figure(csv, region, low) <= share && share <= figure(csv, region, high));
    CHECK_NEAR(figure(csv, region, name), share, 0.02);
    CHECK(figure(csv, region, high) - figure(csv, region, low) < most);
}

static void are_whole(const char *csv)
{
    static const char *const names[] = {NULL, "open all the time", "outer", "inner"};
    EXECUTED(csv, "open all the time", 2);
    EXECUTED(csv, "outer", 2 * TIMES);
    EXECUTED(csv, "inner", 2 * TIMES);
    EXECUTED(csv, "once", 1);
    CHECK_EQ(figure(csv, "inner", "nested"), 2 * TIMES);
    CHECK_EQ(threads_in(csv), 2);
    CHECK_EQ(figure(csv, "outer", "unended") + figure(csv, "outer", "missed") + figure(csv, "outer", "unbalanced") + figure(csv, "outer", "split"), 0);
    for (int k = 0; k < 4; k++) {
        node_is(csv, names[k], "tma_retiring", 0.4, 0.1);
        node_is(csv, names[k], "tma_frontend_bound", 0.2, 0.1);
        node_is(csv, names[k], "tma_retiring_from_microcode", 0.1, 0.1);
        node_is(csv, names[k], "tma_retiring_from_fastpath", 0.3, 0.1);
        node_is(csv, names[k], "tma_fetch_latency", 0.1, 0.1);
        node_is(csv, names[k], "tma_smt_contention", 0.05, 0.1);
        CHECK(figure(csv, names[k], "tma_memory_bound") > 0.1 && figure(csv, names[k], "tma_branch_mispredicts") > 0.02);
    }
    const double all = figure(csv, NULL, "slots"), in_regions = figure(csv, "open all the time", "slots") + figure(csv, "once", "slots");
    const double exclusive = figure(csv, NULL, "exclusive_slots") + figure(csv, "open all the time", "exclusive_slots") +
                             figure(csv, "outer", "exclusive_slots") + figure(csv, "inner", "exclusive_slots") + figure(csv, "once", "exclusive_slots");
    CHECK(in_regions < all && in_regions > 0.9 * all);
    CHECK_EQ(exclusive, all);
    CHECK(figure(csv, "outer", "slots") > 0.98 * figure(csv, "open all the time", "slots"));
    /* counted by one group alone: that one's nodes are known, and no other's */
    int known = 0;
    static const char *const parts[] = {"tma_fetch_latency", "tma_retiring_from_microcode", "tma_memory_bound", "tma_branch_mispredicts"};
    for (int k = 0; k < 4; k++)
        known += !isnan(figure(csv, "once", parts[k]));
    CHECK(known == 1 && !isnan(figure(csv, "once", "tma_retiring")));
    char line[4 * PATH_MAX];
    snprintf(line, sizeof line, "'%s/topdown' report '%s'/*.topdown > '%s/report.txt'", preload_release, preload_scratch, preload_scratch);
    CHECK_EQ(system(line), 0);
    const char *text = preload_text("report.txt"), *once = strstr(text, "once");
    CHECK(once != NULL && strstr(text, "fewer than 8 turns") != NULL);
}

static int overlaps(void)
{
    for (int k = 0; k < 100; k++) {
        td_region_begin("a");
        spins(0.001);
        td_region_begin("b");
        spins(0.001);
        td_region_end("a");
        spins(0.001);
        td_region_end("b");
    }
    return 3;
}

static void are_split(const char *csv)
{
    EXECUTED(csv, "a", 100);
    EXECUTED(csv, "b", 200);
    CHECK_EQ(figure(csv, "b", "split"), 100);
    CHECK_EQ(figure(csv, "a", "unended") + figure(csv, "b", "unended") + figure(csv, "b", "unbalanced"), 0);
}

/* More threads than have records of their own. */
static int many_threads(void)
{
    for (int k = 0; k < MANY; k++) {
        pthread_t one;
        CHECK_EQ(pthread_create(&one, NULL, nested, (void *)8), 0);
        CHECK_EQ(pthread_join(one, NULL), 0);
    }
    return 3;
}

static void are_all_there(const char *csv)
{
    EXECUTED(csv, "outer", 8 * MANY);
    EXECUTED(csv, "open all the time", MANY);
    /* (the simulated counters count while a thread waits for a CPU, too: on a busy machine a few turns may have most of the slots, and the
     * node is not measured then) */
    if (strstr(csv, ",tma_retiring_from_microcode,") != NULL)
        node_is(csv, "outer", "tma_retiring_from_microcode", 0.1, 0.15);
    CHECK(threads_in(csv) < MANY);
}

static int forks(void)
{
    td_region_begin("around");
    nested((void *)20);
    const pid_t child = fork();
    nested((void *)20);
    td_region_end("around");
    int status = 0;
    CHECK(child == 0 || waitpid(child, &status, 0) == child);
    return child == 0 ? 4 : WEXITSTATUS(status);
}

static void are_of_both(const char *csv)
{
    EXECUTED(csv, "around", 2); /* the child's, too, of what it executes of it */
    EXECUTED(csv, "outer", 60);
    CHECK_EQ(figure(csv, "outer", "unended") + figure(csv, "outer", "unbalanced"), 0);
}

static void has_regions(int signal)
{
    (void)signal;
    td_region_begin("handler");
    td_region_end("handler");
}

/* Ends within others end no turn: all turns end in the handler, whatever it interrupts. */
static int handlers(void)
{
    struct sigaction action = {.sa_handler = has_regions, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
    td_region_begin("recursive");
    for (int k = 0; k < RECURSIONS; k++) {
        td_region_begin("recursive");
        td_region_end("recursive");
    }
    td_region_end("recursive");
    CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
    return 3;
}

static void are_of_all_turns(const char *csv)
{
    EXECUTED(csv, "recursive", 1);
    CHECK_EQ(figure(csv, "recursive", "nested"), RECURSIONS);
    CHECK_EQ(figure(csv, "recursive", "missed") + figure(csv, "recursive", "unended") + figure(csv, "handler", "missed"), 0);
    CHECK(figure(csv, "handler", "executions") > 100);
    CHECK(figure(csv, "recursive", "slots") > 0.9 * figure(csv, NULL, "slots"));
}

static const struct preload_case CASES[] = {
    {"regions", regions, are_whole, NULL},
    {"overlaps", overlaps, are_split, NULL},
    {"threads", many_threads, are_all_there, NULL},
    {"forks", forks, are_of_both, NULL},
    {"handlers", handlers, are_of_all_turns, NULL},
};

int main(int argc, char **argv)
{
    setenv("TOPDOWN_SIMULATE", "Zen 4", 1);
    setenv("TOPDOWN_LEVEL", "2", 1);
    return preload_main(argc, argv, CASES, sizeof CASES / sizeof CASES[0]);
}
