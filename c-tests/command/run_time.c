/* `topdown run` where nothing counts slots: times of regions, as an ordinary user. The program reads the same clocks just inside and just
 * outside of each execution: elapsed time of a region is between both sums, and so is its CPU time where that is told, in each of two
 * threads and in a child, of spins, naps, many short executions, regions in others, and functions that are hooked; also where
 * perf_event_open is refused.
 * needs: no-counters */
#include "lib/stat.h"
#include "lib/profile.h"
#include <pthread.h>
#include <stdbool.h>
#include <time.h>
#include <topdown_region.h>

enum { ROUNDS = 40, TURNS = 1000000, TIMES_LONGER = 3, NAP_US = 1000, TIMES = 20000 };
enum { AROUND, LONGER, SHORTER, NAP, MANY, REGIONS };
static const char *const NAMES[REGIONS] = {"around", "longer", "shorter", "nap", "many"};
/* Of elapsed time and of CPU time: what lies inside, and outside, of all executions. */
enum { INSIDE, OUTSIDE, ENDS };
static const clockid_t CLOCKS[] = {CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID};
enum { ELAPSED, CPU, KINDS };

struct own_times {
    uint64_t executions, ns[KINDS][ENDS];
};
struct moment {
    uint64_t ns[KINDS];
};
static struct own_times own[2][REGIONS]; /* of each thread */

static void spin(uint64_t turns)
{
    __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(turns) : : "cc");
}

static uint64_t now(int kind)
{
    struct timespec at;
    CHECK_EQ(clock_gettime(CLOCKS[kind], &at), 0);
    return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

static struct moment both(void)
{
    struct moment at;
    for (int kind = 0; kind < KINDS; kind++)
        at.ns[kind] = now(kind);
    return at;
}

static struct moment outer[2][REGIONS], inner[2][REGIONS];

static void begin(int thread, int region)
{
    outer[thread][region] = both();
    CHECK_EQ(td_region_begin(NAMES[region]), 0);
    inner[thread][region] = both();
}

static void end(int thread, int region)
{
    const struct moment within = both();
    CHECK_EQ(td_region_end(NAMES[region]), 0);
    const struct moment without = both();
    struct own_times *const of = &own[thread][region];
    of->executions++;
    for (int kind = 0; kind < KINDS; kind++) {
        of->ns[kind][INSIDE] += within.ns[kind] - inner[thread][region].ns[kind];
        of->ns[kind][OUTSIDE] += without.ns[kind] - outer[thread][region].ns[kind];
    }
}

static void *works(void *argument)
{
    const int thread = argument != NULL;
    for (int round = 0; round < ROUNDS; round++) {
        begin(thread, AROUND);
        begin(thread, LONGER);
        spin(TIMES_LONGER * TURNS);
        end(thread, LONGER);
        begin(thread, SHORTER);
        spin(TURNS);
        end(thread, SHORTER);
        end(thread, AROUND);
        begin(thread, NAP);
        usleep(NAP_US);
        end(thread, NAP);
    }
    for (int call = 0; call < TIMES; call++) {
        begin(thread, MANY);
        end(thread, MANY);
    }
    return NULL;
}

/* The program writes what it has seen, a line for each region of each thread, and those of its child before. */
static int program(const char *path)
{
    pthread_t other;
    unsigned seed = 1;
    for (int child = 1; child >= 0; child--) {
        const pid_t pid = child ? fork() : 0;
        if (pid != 0) {
            int status;
            CHECK(waitpid(pid, &status, 0) == pid && status == 0);
            continue;
        }
        CHECK_EQ(pthread_create(&other, NULL, works, own), 0);
        works(NULL);
        CHECK_EQ(pthread_join(other, NULL), 0);
        for (int call = 0; call < TIMES; call++)
            seed = (unsigned)rand_r(&seed);
        FILE *const file = fopen(path, "a");
        CHECK(file != NULL);
        for (int thread = 0; thread < 2; thread++)
            for (int region = 0; region < REGIONS; region++) {
                const struct own_times *const of = &own[thread][region];
                fprintf(file, "%s %d %d %lu %lu %lu %lu %lu\n", NAMES[region], (int)getpid(), thread, of->executions, of->ns[ELAPSED][INSIDE],
                        of->ns[ELAPSED][OUTSIDE], of->ns[CPU][INSIDE], of->ns[CPU][OUTSIDE]);
            }
        CHECK_EQ(fclose(file), 0);
        if (child)
            exit(0);
    }
    return 21;
}

/* The row of a region in a thread of a process: the first thread has the process's id. */
static int row_of_thread(const struct csv *csv, const char *region, const char *pid, bool first)
{
    for (int row = 1; row < csv->rows; row++) {
        const char *const tid = csv_text(csv, row, "tid");
        if (strcmp(csv_text(csv, row, "region"), region) == 0 && strcmp(csv_text(csv, row, "pid"), pid) == 0 && *tid &&
            (strcmp(tid, pid) == 0) == first)
            return row;
    }
    FAIL("no row of %s in %s", region, pid);
    return 0;
}

static void is_between(const char *what, const char *region, double told, double from, double to)
{
    fprintf(stderr, "%s of %s: %.0f of %.0f to %.0f\n", what, region, told, from, to);
    CHECK(told >= from && told <= to);
}

static void times_are_true(char *const *arguments)
{
    static struct csv csv;
    char name[32], pid[32];
    int thread, lines = 0;
    struct own_times of;
    unlink(in_scratch("own"));
    CHECK_EQ(WEXITSTATUS(run_under("run", "--regions=libc.so.6:rand_r", arguments)), 21);
    CHECK(strstr(stat_said(), "How slots divide cannot be told here, and this is time alone: ") != NULL);
    csv_read(&csv, in_scratch("r.csv"));
    FILE *const file = fopen(in_scratch("own"), "r");
    CHECK(file != NULL);
    while (fscanf(file, "%31s %31s %d %lu %lu %lu %lu %lu", name, pid, &thread, &of.executions, &of.ns[ELAPSED][INSIDE], &of.ns[ELAPSED][OUTSIDE],
                  &of.ns[CPU][INSIDE], &of.ns[CPU][OUTSIDE]) == 8) {
        const int row = row_of_thread(&csv, name, pid, thread == 0);
        lines++;
        CHECK_EQ((long)csv_number(&csv, row, "executions"), of.executions);
        CHECK(*csv_text(&csv, row, "slots") == 0 && *csv_text(&csv, row, "retiring") == 0);
        CHECK(strcmp(csv_text(&csv, row, "time_alone"), "yes") == 0);
        const double wall = csv_number(&csv, row, "wall_ns"), cpu = csv_number(&csv, row, "time_ns");
        is_between("elapsed time", name, wall, (double)of.ns[ELAPSED][INSIDE], (double)of.ns[ELAPSED][OUTSIDE]);
        if (strcmp(name, "many") == 0)
            CHECK(isnan(cpu)); /* it would cost more than they take */
        else
            is_between("CPU time", name, cpu, (double)of.ns[CPU][INSIDE], (double)of.ns[CPU][OUTSIDE]);
        if (strcmp(name, "around") == 0) {
            const double alone = csv_number(&csv, row, "exclusive_wall_ns");
            double within = 0;
            for (int k = LONGER; k <= SHORTER; k++)
                within += csv_number(&csv, row_of_thread(&csv, NAMES[k], pid, thread == 0), "wall_ns");
            CHECK(alone >= 0 && alone + within == wall);
        }
    }
    fclose(file);
    CHECK_EQ(lines, 4 * REGIONS);
    const int hooked = csv_row(&csv, "rand_r");
    CHECK_EQ((int)csv_number(&csv, hooked, "executions"), 2 * TIMES);
    CHECK(csv_number(&csv, hooked, "wall_ns") > 0);
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return program(argv[1]);
    stat_begins_without_mix();
    char *const arguments[] = {strdup(own_path()), in_scratch("own"), NULL};
    times_are_true(arguments);
    set_until_end("/proc/sys/kernel/perf_event_paranoid", "3\n");
    times_are_true(arguments);
    return 0;
}
