/* `topdown stat` and `topdown run` beside others who hold some general counters of each CPU: what is left serves level 1, which is
 * counted all the time, and the report says why it is level 1. Once the others are gone both levels are counted again. Level 2 of `run` is
 * what threads have measured by registers, where the library and level 1 take what corrects each.
 * needs: counters */
#include "competing.h"
#include "lib/stat.h"
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

enum { HELD = 4 }; /* of 8 or 10: level 2 takes 7 or more, level 1 four */

/* The level of the whole, and what the report says of how it was counted. */
static int level_counted(const char *subcommand, int others_hold)
{
    static struct csv csv;
    char *const shape[] = {beside("lib/shapes"), strdup("plain"), NULL};
    const int status = run_alone(shape);
    CHECK_EQ(run_under(subcommand, "", shape), status);
    csv_read(&csv, in_scratch("r.csv"));
    const int row = csv_row(&csv, ""), level = isnan(csv_number(&csv, row, "heavy_operations")) ? 1 : 2;
    const double one = csv_number(&csv, row, "error_1");
    fprintf(stderr, "%s: level %d, within %g\n", subcommand, level, one);
    CHECK_NEAR(csv_number(&csv, row, "running"), 1, 1e-3);
    const int is_run = strcmp(subcommand, "run") == 0, is_bounded = is_run && others_hold && drops_slots(); /* no counter is left for those */
    CHECK(stat_widest(&csv, 0, is_run && drops_slots() ? 1 : level) < 0.002 && (one >= 0.001) == is_bounded);
    stat_is_true(&csv, 0.02);
    free(csv.text);
    CHECK_EQ(unlink(in_scratch("r.csv")), 0);
    CHECK_EQ(run_under(subcommand, NULL, shape), status); /* a text */
    CHECK_EQ(strstr(stat_said(), "INT_MISC.UOP_DROPPING") != NULL, is_bounded);
    const char *const why = strstr(stat_said(), "level 1 alone: ");
    CHECK_EQ(why != NULL && strstr(why, "others hold them") != NULL, others_hold);
    return level;
}

/* Holds counters of each CPU (of a hybrid CPU, of the P-cores). */
static void hold(struct perf_group *held)
{
    cpu_set_t cpus;
    CHECK_EQ(sched_getaffinity(0, sizeof cpus, &cpus), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        for (int k = 0; k < HELD && CPU_ISSET(cpu, &cpus); k++)
            add_event(held, pinned_event(0xc5), -1, cpu, -1);
    group_runs(held);
}

/* While the first of two runs waits for this thread: each reads one FIFO to its end, and then the other. */
static void *held_from_the_first_run_on(void *fifos)
{
    struct perf_group held = {{0}, 0};
    for (int k = 0; k < 4; k++) {
        const int file = open(((char **)fifos)[k % 2], O_WRONLY); /* once it is read */
        CHECK(file >= 0);
        if (k == 0)
            hold(&held);
        close(file);
    }
    group_ends(&held);
    return NULL;
}

/* Runs that were counted in two ways have no mean. */
static void runs_of_two_ways(void)
{
    static struct csv csv;
    char *waits[] = {strdup("cat"), in_scratch("one"), in_scratch("other"), NULL};
    pthread_t thread;
    for (int k = 1; k < 3; k++)
        CHECK(mkfifo(waits[k], 0666) == 0 && chmod(waits[k], 0666) == 0);
    CHECK_EQ(pthread_create(&thread, NULL, held_from_the_first_run_on, waits + 1), 0);
    CHECK_EQ(run_under("stat", "-r2", waits), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    csv_read(&csv, in_scratch("r.csv"));
    CHECK(csv.rows == 3 && strstr(stat_said(), "no mean and no spread") != NULL);
    free(csv.text);
    CHECK_EQ(unlink(in_scratch("r.csv")), 0);
}

int main(void)
{
    stat_begins();
    CHECK(setenv("TOPDOWN_SOURCE", "registers", 1) == 0); /* of regions, which the program could have: the general counters are the whole's */
    const int deepest = level_counted("stat", 0);
    if (deepest == 1)
        SKIP("its general counters give level 1 alone");
    struct perf_group held = {{0}, 0};
    hold(&held);
    CHECK_EQ(level_counted("stat", 1), 1);
    CHECK_EQ(level_counted("run", 1), deepest);
    group_ends(&held);
    CHECK_EQ(level_counted("stat", 0), deepest);
    CHECK_EQ(level_counted("run", 0), deepest);
    runs_of_two_ways();
    return 0;
}
