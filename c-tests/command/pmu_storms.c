/* pmu_storms [SHAPE]: 200 threads or processes that start and end during a run, chains of exec, posix_spawn and vfork, programs that
 * count for themselves or restrict themselves by landlock: `topdown run` and `topdown stat` leave their exit statuses alone; what they
 * count is true within 0.1 points (of `run` but for slots that a core drops, as no counter is left for these), and of `topdown stat`, slots are within 1 % of the truth.
 * needs: counters */
#include "lib/stat.h"

int main(int argc, char **argv)
{
    static const char *const SHAPES[] = {"thread storm", "fork storm", "chain", "spawns", "counts", "may write nothing"};
    /* Not yet (named as SHAPE it runs): `stat` of a program that counts instructions, which it does, too. */
    static const char *const SUBCOMMANDS[] = {"run", "stat"};
    static struct csv csv;
    stat_begins();
    const double work = UNITS * unit_slots(TD_FLAG_REGISTERS);
    const int is_bounded = drops_slots(); /* no counter is left for those in `run` */
    for (size_t k = 0; k < 2 * sizeof SHAPES / sizeof *SHAPES; k++) {
        if (argc > 1 && strcmp(argv[1], SHAPES[k / 2]) != 0)
            continue;
        if (argc == 1 && k % 2 && !strcmp(SHAPES[k / 2], "counts"))
            continue;
        if (argc == 1 && in_gate() && k % 4 == 2) /* `run` of each second shape */
            continue;
        char *const shape[] = {beside("lib/shapes"), strdup(SHAPES[k / 2]), NULL};
        const int is_stat = k % 2, status = run_alone(shape);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) >= 13);
        CHECK_EQ(run_under(SUBCOMMANDS[is_stat], "", shape), status);
        csv_read(&csv, in_scratch("r.csv"));
        const int row = csv_row(&csv, "");
        const double slots = csv_number(&csv, row, "slots"), besides = (slots - work) / slots; /* the library's start, and ld.so */
        const double one = csv_number(&csv, row, "error_1"), running = csv_number(&csv, row, "running");
        fprintf(stderr, "%s, %s: %.0f slots, %.4f of them besides the work; within %g, running %g\n", SUBCOMMANDS[is_stat], shape[1],
                slots, besides, one, running);
        CHECK(slots >= work && (!is_stat || besides < 0.01));
        CHECK_NEAR(running, 1, 1e-3);
        CHECK(stat_widest(&csv, 0, 1) < 0.002 && (one < 0.001 || (!is_stat && is_bounded)));
        stat_is_true(&csv, besides);
        free(csv.text);
        CHECK_EQ(unlink(in_scratch("r.csv")), 0);
    }
    return 0;
}
