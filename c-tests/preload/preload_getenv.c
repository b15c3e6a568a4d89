/* A program with a getenv of its own, as bash has, is measured as its environment says, and its report goes where that says. */
#include "preload.h"

char *getenv(const char *name)
{
    (void)name;
    return NULL;
}
char *secure_getenv(const char *name) { return getenv(name); }

static int program(void)
{
    region("own", 3);
    return 0;
}
static void report(const char *csv) { EXECUTED(csv, "own", 3); }

static const struct preload_case CASES[] = { {"own", program, report, NULL} };
PRELOAD_MAIN(CASES)
