/* hooks.h: a test runs itself again with the preload library, then asks its report which regions there were. */
#ifndef HOOKS_H
#define HOOKS_H
#include "csv.h"
#include <fcntl.h>
#include <limits.h>

static struct csv hooks_report;
static char hooks_file[] = "/tmp/hooks-XXXXXX.csv";
static FILE *hooks_said; /* what the program under the library wrote to stderr */

static char hooks_library[PATH_MAX + 40];

static inline void find_library(void)
{
    strcpy(hooks_library, own_path());
    *strrchr(hooks_library, '/') = 0;
    strcpy(strrchr(hooks_library, '/'), "/release/libtopdown-preload.so");
    if (access(hooks_library, R_OK))
        SKIP("%s is not there", hooks_library);
}

/* Goes on as the same program, under the library, its stderr in this descriptor. */
static inline void execute_measured(const char *variable, const char *patterns, int error)
{
    CHECK(setenv("HOOKS_CHILD", "1", 1) == 0 && setenv("LD_PRELOAD", hooks_library, 1) == 0);
    CHECK(setenv("TOPDOWN_SIMULATE", "1", 1) == 0 && setenv("TOPDOWN_OUTPUT", hooks_file, 1) == 0);
    CHECK_EQ(setenv(variable, patterns, 1), 0);
    dup2(error, 2);
    execl(own_path(), own_path(), (char *)NULL);
    _exit(126);
}

/* True in a child that measures, by VARIABLE=PATTERNS; false in its parent when the child has ended well. */
static inline int measured(const char *variable, const char *patterns)
{
    int status = -1;
    pid_t child;

    if (getenv("HOOKS_CHILD")) {
        unsetenv("LD_PRELOAD"); /* nor its children */
        return 1;
    }
    find_library();
    close(mkstemps(hooks_file, 4));
    CHECK((hooks_said = tmpfile()) != NULL);
    fflush(NULL);
    CHECK((child = fork()) >= 0);
    if (child == 0)
        execute_measured(variable, patterns, fileno(hooks_said));
    CHECK_EQ(waitpid(child, &status, 0), child);
    if (status == 77 << 8)
        exit(77);
    if (status) {
        char line[1000];
        rewind(hooks_said);
        while (fgets(line, sizeof line, hooks_said))
            fputs(line, stderr);
        FAIL("%s under the library: status %#x", patterns, (unsigned)status);
    }
    free(hooks_report.text);
    csv_read(&hooks_report, hooks_file);
    unlink(hooks_file);
    return 0;
}

/* Whether a line of the child's stderr has this text. */
static inline int said(const char *text)
{
    char line[1000];
    int found = 0;
    rewind(hooks_said);
    while (!found && fgets(line, sizeof line, hooks_said))
        found = strstr(line, text) != NULL;
    return found;
}

/* KiB of this process's address space */
static inline long address_space(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld", &pages) == 1);
    fclose(file);
    return pages * 4;
}

/* How many executions of the region ended, recursive ones counted each; and how many did not. */
static inline long executed(const char *name, long *unended)
{
    const int row = csv_find(&hooks_report, name);
    *unended = row < 0 ? 0 : (long)csv_number(&hooks_report, row, "unended");
    return row < 0 ? 0 : (long)(csv_number(&hooks_report, row, "executions") + csv_number(&hooks_report, row, "nested"));
}

#define REGION(name, ended, unended) region(__FILE__, __LINE__, name, ended, unended)
static inline void region(const char *file, int line, const char *name, long ended, long unended)
{
    long not_ended, did = executed(name, &not_ended);
    if (did != ended || not_ended != unended) {
        fprintf(stderr, "%s:%d: %s: %ld ended and %ld did not, not %ld and %ld\n", file, line, name, did, not_ended, ended,
                unended);
        exit(1);
    }
}
#endif
