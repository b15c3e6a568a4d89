/* `topdown record --call-graph dwarf` finds the callers of functions without frame pointers, whom --call-graph fp cannot know, as an
 * ordinary user; from a shorter copy of the stack as well, and in shorter ones still as far as they reach. So does --call-graph lbr, or it says
 * that the CPU cannot, and what can.
 * needs: counters, not-hybrid, explore */
#include "lib/stat.h"
#include <sys/utsname.h>

static const char CALLERS[] = "main;outer;middle;leaf ";

/* The part of the time in stacks that end so. What is said besides is left in stat_said(). */
static double part_in_stacks(const char *callers, const char *how)
{
    CHECK_EQ(run_alone((char *[]){beside("../release/topdown"), "record", "-F2000", "--budget=50", "--call-graph", strdup(how), "-o",
                                  in_scratch("x.folded"), beside("lib/callers"), "3000", NULL}), 0);
    FILE *const file = fopen(in_scratch("x.folded"), "r");
    CHECK(file != NULL);
    char line[4096];
    double all = 0, those = 0;
    while (fgets(line, sizeof line, file)) {
        const char *const number = strrchr(line, ' ');
        CHECK(number != NULL);
        all += atof(number);
        const char *const found = strstr(line, callers);
        those += found && found + strlen(callers) == number + 1 ? atof(number) : 0;
    }
    fclose(file);
    CHECK(all > 0);
    fprintf(stderr, "%s: %.1f %% of the time below %s\n", how, 100 * those / all, callers);
    return those / all;
}

/* The same, of which nothing else is said. */
static double part_of(const char *callers, const char *how)
{
    const double part = part_in_stacks(callers, how);
    CHECK_EQ(strlen(stat_said()), 0);
    return part;
}

/* By branch records, which neither the emulated machine has nor most virtual ones. Those of some CPUs (Ice Lake) it shows, and they are
 * empty. */
static void by_branch_records(void)
{
    CHECK_EQ(run_alone((char *[]){beside("../release/topdown"), "record", "--call-graph", "lbr", beside("lib/callers"), "1", NULL}), 0);
    if (strstr(stat_said(), "nothing is recorded: ") == NULL) {
        const double part = part_in_stacks(CALLERS, "lbr");
        CHECK(emulated() ? part == 0 && strstr(stat_said(), "x.folded: No sample has callers") : part > 0.9 && *stat_said() == 0);
        return;
    }
    CHECK(strstr(stat_said(), "no branch records that follow calls") && strstr(stat_said(), "--call-graph fp and dwarf do without"));
}

/* The same of whatever runs on CPUs, where the kernel keeps them while threads take turns. */
static void by_branch_records_of_cpus(void)
{
    struct utsname kernel;
    unsigned major, minor;
    CHECK(uname(&kernel) == 0 && sscanf(kernel.release, "%u.%u", &major, &minor) == 2);
    const int status = WEXITSTATUS(run_alone((char *[]){beside("../release/topdown"), "record", "-a", "--call-graph", "lbr", "true", NULL}));
    if (major < 6 || (major == 6 && minor < 15)) {
        CHECK_EQ(status, 125);
        CHECK(strstr(stat_said(), "empties the branch records") && strstr(stat_said(), "choose fp or dwarf"));
    } else {
        CHECK_EQ(status, 0);
        CHECK(strstr(stat_said(), "nothing is recorded: ") == NULL || strstr(stat_said(), "--call-graph fp and dwarf do without"));
    }
}

int main(void)
{
    stat_begins();
    by_branch_records();
    by_branch_records_of_cpus();
    CHECK(part_of(CALLERS, "dwarf") > 0.97);
    CHECK(part_of(CALLERS, "dwarf,1024") > 0.97);
    CHECK(part_of("leaf ", "fp") > 0.97);
    CHECK(part_of(CALLERS, "fp") == 0);
    /* (256 bytes: leaf's and middle's frames, and outer's return address) */
    CHECK(part_of("middle;leaf ", "dwarf,256") > 0.97);
    return 0;
}
