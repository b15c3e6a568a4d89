/* arm64, on the emulated machine: a program under `topdown run`, as it is and killed, has the regions that it begins in two threads, by
 * topdown_region.h, by LIKWID's names and by calls of a library's function that is hooked: each as often as it ran, all nodes within
 * their bounds of the truth.
 * needs: arguments */
#include "phases.h"
#include "csv.h"
#include "../hooks/lib/hooked.h"
#include <signal.h>
#include <topdown_region.h>

enum { MIXES_OF_REGIONS = 5, EXECUTIONS = 20, LENGTH = 1000000, THREADS = 2 };
extern int likwid_markerStartRegion(const char *) __attribute__((weak));
extern int likwid_markerStopRegion(const char *) __attribute__((weak));
static uint64_t phases[MIXES_OF_REGIONS];
static double truth[MIXES_OF_REGIONS][SHARES];

static int works(int unused)
{
    work(LENGTH);
    return unused;
}

/* The mix is set before a region begins, so that what the library executes in it is at that mix, too. */
static void run(int k)
{
    char name[20];
    snprintf(name, sizeof name, "mix %d", k);
    vm_phase_set(phases[k]);
    for (int n = 0; n < EXECUTIONS; n++) {
        CHECK_EQ(td_region_begin(name), 0);
        works(n);
        CHECK_EQ(td_region_end(name), 0);
    }
    vm_phase_set(0);
}

static void *all(void *unused)
{
    for (int k = 0; k < MIXES_OF_REGIONS; k++)
        run(k);
    vm_phase_set(phases[0]);
    for (int n = 0; n < EXECUTIONS; n++) {
        likwid_markerStartRegion("likwid");
        works(n);
        likwid_markerStopRegion("likwid");
    }
    vm_phase_set(phases[2]);
    for (int n = 0; n < EXECUTIONS; n++)
        CHECK_EQ(call_back(works, n), n + 1);
    vm_phase_set(0);
    return unused;
}

static void region_is(const struct csv *csv, const char *name, const double *shares)
{
    const int row = csv_row(csv, name);
    CHECK_EQ(csv_number(csv, row, "executions"), THREADS * EXECUTIONS);
    CHECK_EQ(csv_number(csv, row, "unended") + csv_number(csv, row, "unbalanced") + csv_number(csv, row, "missed"), 0);
    CHECK(csv_number(csv, row, "running") == 1);
    int seen = 0;
    for (uint32_t id = TD_NODE_RETIRING; id < SHARES; id++) {
        char column[3][80];
        const char *ends[3] = {"", "_low", "_high"};
        for (int end = 0; end < 3; end++)
            snprintf(column[end], sizeof *column, "%s%s", td_node_name(id), ends[end]);
        if (!csv_has(csv, column[0]) || *csv_text(csv, row, column[0]) == 0)
            continue;
        const double value = csv_number(csv, row, column[0]), low = csv_number(csv, row, column[1]), high = csv_number(csv, row, column[2]);
        if (!(low <= shares[id] && shares[id] <= high))
            FAIL("%s: %s is %f, between %f and %f, not %f", name, column[0], value, low, high, shares[id]);
        CHECK_NEAR(value, shares[id], 0.01);
        seen++;
    }
    CHECK(seen >= (core_is("hip08") ? 8 : 4));
    CHECK(csv_number(csv, row, "error_1") < 0.05);
}

static void reports(const char *how, int status)
{
    static struct csv csv;
    char path[] = "/tmp/regions-XXXXXX.csv";
    int ended;
    close(mkstemps(path, 4));
    const pid_t child = fork();
    if (child == 0) {
        execlp("topdown", "topdown", "run", "--regions", "libhooked.so:call_back", "-o", path, "--", own_path(), how, (char *)NULL);
        _exit(126);
    }
    CHECK_EQ(waitpid(child, &ended, 0), child);
    CHECK_EQ(WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended), status);
    csv_read(&csv, path);
    unlink(path);
    for (int k = 0; k < MIXES_OF_REGIONS; k++) {
        char name[20];
        snprintf(name, sizeof name, "mix %d", k);
        region_is(&csv, name, truth[k]);
    }
    region_is(&csv, "likwid", truth[0]);
    region_is(&csv, "call_back", truth[2]);
    const int whole = csv_row(&csv, "mix 1");
    printf("%s: regions of %.0f slots, level 1 within %f\n", how, csv_number(&csv, whole, "slots"), csv_number(&csv, whole, "error_1"));
    free(csv.text);
}

int main(int argc, char **argv)
{
    td_t *td;
    td_must(td_open(&td, NULL));
    info = info_of(td);
    td_close(td);
    for (int k = 0; k < MIXES_OF_REGIONS; k++)
        phases[k] = phase_of(one_of_five(k), truth[k]);
    if (argc > 1) {
        const pthread_t thread = start_thread(all, NULL);
        join_thread(thread);
        all(NULL);
        return strcmp(argv[1], "killed") == 0 ? raise(SIGKILL) : 7;
    }
    reports("ends", 7);
    reports("killed", 128 + SIGKILL);
    return 0;
}
