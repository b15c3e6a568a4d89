/* `topdown stat` counts all of a program, whatever it does and however it ends: threads, children, sleeps, SIGKILL, closed
 * descriptors, raw clone and exit_group, seccomp, daemons; linked dynamically and statically; as an ordinary user. The program ends as it
 * does without.
 * needs: counters or general-counters */
#include "lib/stat.h"

int main(void)
{
    static const char *const SHAPES[] = {"plain", "threads", "sleeps", "children", "killed", "crashes", "closes all",
                                         "leaves at once", "clones", "execs", "sandboxed", "leaves a daemon",
                                         "waits for a daemon"};
    static const char *const LINKED[] = {"lib/shapes", "lib/shapes-static"};
    static struct csv csv;
    stat_begins();
    const double work = UNITS * unit_slots(TD_FLAG_COUNTERS);
    for (size_t k = 0; k < 2 * sizeof SHAPES / sizeof *SHAPES; k++) {
        char *const shape[] = {beside(LINKED[k % 2]), strdup(SHAPES[k / 2]), NULL};
        const int status = run_alone(shape);
        CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 0 || (WEXITSTATUS(status) > 1 && WEXITSTATUS(status) < 20));
        CHECK_EQ(run_counted("--wait", shape), status);
        fputs(stat_said(), stderr);
        CHECK_EQ(strlen(stat_said()), 0);
        csv_read(&csv, in_scratch("r.csv"));
        const int row = csv_row(&csv, "");
        const double slots = csv_number(&csv, row, "slots"), besides = (slots - work) / slots; /* before main */
        const double one = csv_number(&csv, row, "error_1"), two = csv_number(&csv, row, "error_2");
        fprintf(stderr, "%s: %.0f slots, %.4f of them besides the work; within %g and %g\n", shape[1], slots, besides, one, two);
        CHECK(slots >= work && besides < 0.02);
        CHECK_NEAR(csv_number(&csv, row, "running"), 1, 1e-3);
        CHECK(one < 0.001 && (isnan(two) || two < 0.001));
        stat_is_true(&csv, besides);
        free(csv.text);
        CHECK_EQ(unlink(in_scratch("r.csv")), 0);
    }
    return 0;
}
