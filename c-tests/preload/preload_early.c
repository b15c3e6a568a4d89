/* A library of the program's, whose constructor runs before this one's, clears the environment, or puts another in its place: the program
 * is measured as the environment says that it was started with. What is set again holds. */
#include "preload.h"
#include <glob.h>

static int program(void)
{
    region("own", 3);
    printf("%d\n", getenv("OWN") != NULL);
    return 0;
}
static void report(const char *csv) { EXECUTED(csv, "own", 3); }
static void set_again(const char *csv)
{
    char pattern[PATH_MAX + 20];
    glob_t found;
    EXECUTED(csv, "own", 3);
    snprintf(pattern, sizeof pattern, "%s/own.*.topdown", preload_scratch);
    CHECK_EQ(glob(pattern, 0, NULL, &found), 0);
    globfree(&found);
}

static const struct preload_case CASES[] = {
    {"clearenv", program, report, NULL}, {"no environ", program, report, NULL}, {"an empty environ", program, report, NULL},
    {"an environ of its own", program, report, NULL}, {"emptied in its place", program, report, NULL},
    {"setenv", program, report, NULL}, {"putenv", program, set_again, NULL},
};
PRELOAD_MAIN(CASES)
