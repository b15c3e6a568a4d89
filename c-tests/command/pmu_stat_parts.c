/* What `topdown stat` could not count is in its bound, and is said: a process that is left behind, time in which others had the
 * counters, setuid programs. On a hybrid CPU both kinds of cores are counted.
 * needs: counters or general-counters */
#include "lib/stat.h"
#include "perf.h"

static struct csv csv;

static void says(const char *what)
{
    if (strstr(stat_said(), what) == NULL)
        FAIL("it does not say '%s', but\n%s", what, stat_said());
}

/* Runs a shape, whose work is counted in part: it says so, and how far off that may be is in the bound. */
static void in_part(char *const *shape, int status, double least, double most, const char *what)
{
    CHECK_EQ(WEXITSTATUS(run_counted(NULL, shape)), status);
    says(what);
    CHECK_EQ(WEXITSTATUS(run_counted("--wait", shape)), status);
    csv_read(&csv, in_scratch("r.csv"));
    const int row = csv_row(&csv, "");
    const double running = csv_number(&csv, row, "running"), error = csv_number(&csv, row, "error_1");
    fprintf(stderr, "%s: counted %g of the time, within %g\n", shape[1], running, error);
    CHECK(running > least && running < most && error > 0.3);
    stat_is_true(&csv, 0.01);
    free(csv.text);
}

int main(void)
{
    char cpu[2][16];
    stat_begins();
    char *const leaves[] = {beside("lib/shapes"), strdup("leaves a daemon"), NULL};
    CHECK_EQ(WEXITSTATUS(run_counted(NULL, leaves)), 2);
    says("processes that it started go on");

    const double unit = unit_slots(TD_FLAG_COUNTERS);
    snprintf(cpu[0], sizeof cpu[0], "%d", p_core() < 0 ? 0 : p_core());
    snprintf(cpu[1], sizeof cpu[1], "%d", p_core() < 0 ? 1 : e_core());
    char *const migrates[] = {beside("lib/shapes"), strdup("migrates"), cpu[0], cpu[1], NULL};
    CHECK_EQ(WEXITSTATUS(run_counted("--wait", migrates)), 11);
    csv_read(&csv, in_scratch("r.csv"));
    const int row = csv_row(&csv, "");
    const double other = p_core() < 0 ? unit : unit_slots(TD_FLAG_E_CORES);
    const double slots = csv_number(&csv, row, "slots"), work = UNITS / 2 * (unit + other);
    fprintf(stderr, "migrates: %.0f slots, within %g\n", slots, csv_number(&csv, row, "error_1"));
    CHECK(slots >= work && slots < 1.02 * work);
    CHECK(csv_number(&csv, row, "error_1") < 0.001);
    stat_is_true(&csv, (slots - work) / slots);
    free(csv.text);

    /* all general counters of one of the two are another's */
    struct perf_event_attr attr = event_of(PERF_TYPE_RAW, 0x2c2);
    int rival[12];
    attr.pinned = 1;
    for (int k = 0; k < 12; k++)
        rival[k] = (int)syscall(SYS_perf_event_open, &attr, -1, atoi(cpu[0]), -1, 0);
    CHECK(rival[0] >= 0);
    move_to(0, atoi(cpu[1])); /* where a group that is proved first gets its turn */
    in_part(migrates, 11, 0.1, 0.9, "the counters were not its own all the time");
    move_to(0, atoi(cpu[0])); /* and before main, too */
    char *const stays[] = {migrates[0], migrates[1], cpu[0], cpu[0], NULL};
    CHECK_EQ(WEXITSTATUS(run_counted(NULL, stays)), 11);
    says(strstr(stat_said(), "nothing is measured") ? "got no turn" : "nothing was counted");
    for (int k = 0; k < 12; k++)
        close(rival[k]);

    if (geteuid() != 0)
        SKIP("only root makes a program setuid");
    char line[3 * PATH_MAX];
    snprintf(line, sizeof line, "cp '%s' '%s' && chmod 4755 '%s'", migrates[0], in_scratch("setuid"), in_scratch("setuid"));
    CHECK_EQ(system(line), 0);
    char *const calls[] = {migrates[0], strdup("calls"), in_scratch("setuid"), NULL};
    in_part(calls, 12, 0.1, 0.9, "of its CPU time were not counted");
    char *const is_setuid[] = {in_scratch("setuid"), strdup("half"), NULL};
    CHECK_EQ(WEXITSTATUS(run_counted(NULL, is_setuid)), 8);
    says("setuid");
    return 0;
}
