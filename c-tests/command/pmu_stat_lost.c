/* Short programs that lose their counters at exec, since they are setuid or have file capabilities: however short each is, what they did is
 * in the bound of `topdown stat` and `topdown run`, of each interval and of each run, and is said; also beside a process for which nobody
 * waits, whose time must not make up for it.
 * needs: counters or general-counters */
#include "lib/stat.h"
#include <linux/capability.h>
#include <sys/xattr.h>

static struct csv csv;
static double unit; /* slots of a unit of work */

/* Slots that may have passed uncounted beside so many, by the bound. */
static double room(double slots, double error) { return error < 1 ? slots * error / (1 - error) : INFINITY; }

/* A copy of the program that loses its counters when it is executed. */
static char *copy(const char *name, mode_t mode, int with_capability)
{
    char line[3 * PATH_MAX], *path = in_scratch(name);
    snprintf(line, sizeof line, "cp '%s' '%s'", beside("lib/shapes"), path);
    CHECK_EQ(system(line), 0);
    CHECK_EQ(chmod(path, mode), 0);
    const struct vfs_cap_data may = {.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE, .data[0].permitted = 1 << CAP_SYS_NICE};
    CHECK(!with_capability || setxattr(path, "security.capability", &may, sizeof may, 0) == 0);
    return path;
}

static void says(const char *what)
{
    if (strstr(stat_said(), what) == NULL)
        FAIL("it does not say '%s', but\n%s", what, stat_said());
}

/* What was counted in these rows, with what the bounds have room for, is all of the work. */
static void has_room(const char *what, const char *of, const char *error, double work)
{
    double counted = 0, more = 0;
    csv_read(&csv, in_scratch("r.csv"));
    for (int row = 1; row < csv.rows; row++) {
        if (of != NULL && strcmp(csv_text(&csv, row, "run"), of) != 0)
            continue;
        const double slots = csv_number(&csv, row, "slots");
        counted += slots;
        more += slots > 0 ? room(slots, csv_number(&csv, row, error)) : 0;
    }
    fprintf(stderr, "%s: %.0f slots of %.0f, room for %.0f\n", what, counted, work, more);
    CHECK(counted < 0.8 * work && counted + more >= work);
    free(csv.text);
}

/* Of a report, where row 1 is the whole. */
static void whole_has_room(const char *subcommand, char *const *shape, double work)
{
    CHECK_EQ(WEXITSTATUS(run_under(subcommand, "", shape)), 19);
    csv_read(&csv, in_scratch("r.csv"));
    const int row = csv_row(&csv, "");
    const double slots = csv_number(&csv, row, "slots"), error = csv_number(&csv, row, "error_1");
    fprintf(stderr, "%s %s %s: %.0f slots of %.0f, within %g\n", subcommand, shape[2], shape[3] ? "beside another" : "", slots, work, error);
    CHECK(slots < 0.8 * work && slots + room(slots, error) >= work);
    stat_is_true(&csv, 0.05);
    free(csv.text);
    CHECK_EQ(WEXITSTATUS(run_under(subcommand, NULL, shape)), 19);
    says("of its CPU time were not counted");
    says("file capabilities");
}

int main(void)
{
    stat_begins();
    if (geteuid() != 0)
        SKIP("only root makes a program setuid");
    unit = unit_slots(TD_FLAG_COUNTERS);
    const double work = 2 * CALLS * unit;
    char *const lose[] = {copy("setuid", 04755, 0), copy("unreadable", 0711, 0), copy("capable", 0755, 1)};
    for (int k = 0; k < 3; k++) {
        char *const shape[] = {beside("lib/shapes"), strdup("calls often"), lose[k], NULL};
        char *const beside_another[] = {shape[0], shape[1], lose[k], strdup("and another"), NULL};
        whole_has_room("stat", shape, work);
        if (k != 1 && p_core() < 0) /* (one that cannot be read measures itself) */
            whole_has_room("run", shape, work);
        whole_has_room("stat", beside_another, work + CALLS * unit);

        if (k > 0 && in_gate())
            continue;
        char *const intervals[] = {strdup("-I"), strdup("20"), strdup("-x"), strdup(","), shape[0], shape[1], lose[k], NULL};
        CHECK_EQ(WEXITSTATUS(run_counted("", intervals)), 19);
        says("of the command's CPU time were counted in no row");
        has_room("intervals", NULL, "error_1", work);
        char *const runs[] = {strdup("-r"), strdup("2"), strdup("-x"), strdup(","), shape[0], shape[1], lose[k], NULL};
        CHECK_EQ(WEXITSTATUS(run_counted("", runs)), 19);
        has_room("a run", "2", "error_1", work);
    }

    /* one that keeps its counters: no room is added */
    char *const keeps[] = {beside("lib/shapes"), strdup("calls often"), beside("lib/shapes-static"), NULL};
    CHECK_EQ(WEXITSTATUS(run_counted("", keeps)), 19);
    csv_read(&csv, in_scratch("r.csv"));
    const int row = csv_row(&csv, "");
    CHECK(csv_number(&csv, row, "slots") >= work && csv_number(&csv, row, "error_1") < 0.001);
    free(csv.text);
    return 0;
}
