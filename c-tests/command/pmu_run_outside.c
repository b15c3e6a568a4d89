/* The whole of `topdown run` is counted from outside, beside the registers that are read inside: the figures of all shapes of
 * programs are true within 0.1 points (but for slots that a core drops, as no counter is left for these), whether they block, are killed, close all descriptors or cannot be measured from inside, and
 * those of regions are in it.
 * needs: counters */
#include "lib/stat.h"

int main(void)
{
    static const char *const SHAPES[] = {"sleeps", "killed", "closes all", "leaves at once", "clones", "children", "crashes", "execs",
                                         "execs in a sandbox", "sandboxed", "regions"};
    static const char *const LINKED[] = {"lib/shapes", "lib/shapes-static"};
    static struct csv csv;
    stat_begins();
    const double work = UNITS * unit_slots(TD_FLAG_REGISTERS);
    const int is_bounded = drops_slots(); /* no counter is left for those */
    if (p_core() >= 0) /* (where both kinds of core are to be counted in regions, and shapes has some, these have the counters: pmu_run_regions) */
        setenv("TOPDOWN_SOURCE", "registers", 1);
    for (size_t k = 0; k < 2 * sizeof SHAPES / sizeof *SHAPES; k++) {
        char *const shape[] = {beside(LINKED[k % 2]), strdup(SHAPES[k / 2]), NULL};
        const int status = run_alone(shape);
        CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) < 20);
        CHECK_EQ(run_under("run", "", shape), status);
        CHECK((strstr(stat_said(), "counted from outside alone") != NULL) == (k % 2 == 1));
        csv_read(&csv, in_scratch("r.csv"));
        const int row = csv_row(&csv, "");
        const double slots = csv_number(&csv, row, "slots"), besides = (slots - work) / slots; /* the library's start, and ld.so */
        const double one = csv_number(&csv, row, "error_1"), two = csv_number(&csv, row, "error_2");
        fprintf(stderr, "%s: %.0f slots, %.4f of them besides the work; within %g and %g\n", shape[1], slots, besides, one, two);
        CHECK(slots >= work && besides < 0.1);
        CHECK_NEAR(csv_number(&csv, row, "running"), 1, 1e-3);
        CHECK(stat_widest(&csv, 0, 1) < 0.002); /* (level 2 may be the threads') */
        CHECK(one < 0.001 || (is_bounded && (backend_is_corrected() || stat_widest(&csv, 1, 1) <= truth_of(MIX).l1[2] + 0.002)));
        stat_is_true(&csv, besides);
        if (k % 2 == 0 && !strcmp(shape[1], "regions")) {
            const int region = csv_row(&csv, "unit");
            const double rest = csv_number(&csv, row, "exclusive_slots"), in = csv_number(&csv, region, "slots");
            CHECK(csv_number(&csv, region, "executions") == UNITS);
            CHECK_NEAR(csv_number(&csv, region, "running"), 1, 0.01);
            CHECK_NEAR(rest + in, slots, 1);
            CHECK(in >= work && in < 1.01 * work);
        }
        free(csv.text);
        CHECK_EQ(unlink(in_scratch("r.csv")), 0);
    }

    /* one that measures itself, and a static one that it starts, which has a row of its own where the kernel tells */
    char *const calls[] = {beside("lib/shapes"), strdup("calls"), beside("lib/shapes-static"), NULL};
    CHECK_EQ(WEXITSTATUS(run_under("run", "--per-process", calls)), 12);
    csv_read(&csv, in_scratch("r.csv"));
    const int old = strstr(stat_said(), "not told apart: Linux does that from 6.12 on") != NULL;
    double outside = 0, rest = 0;
    int rows = 0;
    for (int row = 1; row < csv.rows; row++) {
        const int is_static = strcmp(csv_text(&csv, row, "thread"), "shapes-static") == 0;
        rows += is_static;
        outside += is_static ? csv_number(&csv, row, "slots") : 0;
        rest += strcmp(csv_text(&csv, row, "pid"), "rest") == 0 ? csv_number(&csv, row, "slots") : 0;
        if (is_static)
            CHECK_NEAR(csv_number(&csv, row, "backend_bound"), truth_of(MIX).l1[3], 0.001);
    }
    fprintf(stderr, "outside %.0f, rest %.0f slots of %.0f\n", outside, rest, work);
    CHECK_EQ(rows, old ? 0 : 1);
    CHECK(old || (outside >= work / 2 - 8e6 && outside <= 1.02 * work / 2 && rest > 0 && rest < 0.1 * work));
    free(csv.text);
    return 0;
}
