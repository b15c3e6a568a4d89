/* `topdown stat --per-thread` and `--per-process` of a command: each thread and process has a row of its own, whatever it does and
 * however it ends; rows and the rest add up to all that was counted, the figures of each are true, and little is in the rest. Before
 * Linux 6.12 there is one row of all, and a line says why.
 * needs: counters or general-counters */
#include "lib/stat.h"
#include <sys/utsname.h>

static struct csv csv;
static double unit;   /* slots of a unit of work */
static double narrow; /* part of these that the other kind of cores has at least */

static int tells_apart(void)
{
    struct utsname name;
    int major = 0, minor = 0;
    CHECK_EQ(uname(&name), 0);
    CHECK_EQ(sscanf(name.release, "%d.%d", &major, &minor), 2);
    return major > 6 || (major == 6 && minor >= 12);
}

/* Where one ends and others lie on each of two CPUs: slots of which no record tells. */
static double untold(int rows) { return 2 * 4e6 * (rows + 1); }

/* Rows of so many threads or processes that do so many units of work each (0: any). */
static void rows_are(const char *option, char *const *shape, int status, int threads, double units, double whole)
{
    static const char *const ONE[] = {"tma_retiring", "tma_bad_speculation", "tma_frontend_bound", "tma_backend_bound"};
    const struct truth truth = truth_of(MIX);
    const int ended = run_counted(option, shape);
    CHECK_EQ(WIFSIGNALED(ended) ? -WTERMSIG(ended) : WEXITSTATUS(ended), status);
    csv_read(&csv, in_scratch("r.csv"));
    const char *const column = option + strlen("--per-");
    double told = 0, rest = 0, all = 0;
    int rows = 0, last = 0;
    for (int row = 1; row < csv.rows; row++) {
        const char *const name = csv_text(&csv, row, column);
        const double slots = csv_number(&csv, row, "slots"), error = csv_number(&csv, row, "error_1");
        fprintf(stderr, "%s of %s: %s: %.0f slots, within %g\n", option, shape[1], name, slots, error);
        if (slots == 0)
            continue; /* the other kind of cores */
        CHECK_NEAR(csv_number(&csv, row, "running"), 1, 2e-3);
        if (strcmp(name, "all") == 0) {
            all += slots;
        } else if (strcmp(name, "rest") == 0) {
            rest += slots;
        } else {
            char what[16];
            int id;
            CHECK_EQ(sscanf(name, "%d %15[a-z]", &id, what), 2);
            CHECK(strcmp(what, "shapes") == 0);
            told += slots;
            rows += id != last; /* P- and E-cores have a row each */
            last = id;
            for (int k = 0; k < 4; k++)
                CHECK_NEAR(csv_number(&csv, row, ONE[k]), truth.l1[k], error + 0.02); /* before main */
            CHECK(error < 0.003);
            if (units > 0)
                CHECK(slots <= 1.02 * units * unit && slots >= narrow * units * unit - untold(1));
        }
    }
    if (tells_apart()) {
        CHECK_EQ(rows, threads);
        CHECK_NEAR(told + rest, all, 0.5);
        CHECK(told >= narrow * whole * unit - untold(threads));
        CHECK(strstr(stat_said(), "rest: what the kernel's records do not tell of single threads: the last") != NULL);
    } else {
        CHECK(csv.rows >= 2 && strstr(stat_said(), "threads and processes are not told apart: Linux does that from 6.12 on") != NULL);
        all = csv_number(&csv, 1, "slots");
    }
    CHECK(all >= narrow * whole * unit && all < 1.03 * whole * unit);
    free(csv.text);
    CHECK_EQ(unlink(in_scratch("r.csv")), 0);
}

int main(void)
{
    stat_begins();
    unit = unit_slots(TD_FLAG_COUNTERS);
    char *const program = beside("lib/shapes-static"), *const other = beside("lib/shapes");
    char *const threads[] = {program, strdup("threads"), NULL}, *const children[] = {program, strdup("killed"), NULL};
    char *const clones[] = {program, strdup("clones"), NULL}, *const closes[] = {program, strdup("closes all"), NULL};
    char *const calls[] = {other, strdup("calls"), program, NULL};
    const int hybrid = p_core() >= 0; /* threads are on either kind of core as they come */
    narrow = hybrid ? 5. / 6 : 1;
    rows_are("--per-process", children, -SIGKILL, 4, hybrid ? 0 : UNITS / 4, UNITS);
    rows_are("--per-thread", children, -SIGKILL, 8, hybrid ? 0 : UNITS / 8, UNITS);
    rows_are("--per-thread", threads, 0, 4, hybrid ? 0 : UNITS / 4, UNITS);
    rows_are("--per-process", clones, 6, 2, hybrid ? 0 : UNITS / 2, UNITS);
    rows_are("--per-process", closes, 5, 1, hybrid ? 0 : UNITS, UNITS);
    rows_are("--per-process", calls, 12, 2, hybrid ? 0 : UNITS / 2, UNITS);
    return 0;
}
