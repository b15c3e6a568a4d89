/* hooks.h: a test runs itself again with the preload library, then asks which regions there were. */
#ifndef HOOKS_H
#define HOOKS_H
#include "check.h"
#include <fcntl.h>
#include <limits.h>

static FILE *hooks_said; /* what the program under the library wrote to stderr */

/* NAME=VALUE for this program's next execution */
static inline void hooks_set(const char *name, const char *value) { CHECK_EQ(setenv(name, value, 1), 0); }

/* True in a child that measures, by VARIABLE=PATTERNS; false in its parent when the child has ended well. */
static inline int measured(const char *variable, const char *patterns)
{
    char library[PATH_MAX], self[PATH_MAX];
    int status = -1;
    pid_t child;

    if (getenv("HOOKS_CHILD")) {
        unsetenv("LD_PRELOAD"); /* nor its children */
        return 1;
    }
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK(length > 0);
    self[length] = 0;
    snprintf(library, sizeof library, "%s", self);
    *strrchr(library, '/') = 0;
    *strrchr(library, '/') = 0;
    strncat(library, "/release/libtopdown-preload.so", sizeof library - strlen(library) - 1);
    if (access(library, R_OK))
        SKIP("%s is not there", library);
    CHECK((hooks_said = tmpfile()) != NULL);
    fflush(NULL);
    CHECK((child = fork()) >= 0);
    if (child == 0) {
        hooks_set("HOOKS_CHILD", "1");
        hooks_set("LD_PRELOAD", library);
        hooks_set(variable, patterns);
        dup2(fileno(hooks_said), 2);
        execl(self, self, (char *)NULL);
        _exit(126);
    }
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
    char text[1000], what[100], which[600];
    long begun = 0, ended = 0;
    rewind(hooks_said);
    while (fgets(text, sizeof text, hooks_said))
        if (sscanf(text, "%99s %599s", what, which) == 2 && strcmp(which, name) == 0) {
            begun += strcmp(what, "begin") == 0;
            ended += strcmp(what, "end") == 0;
        }
    *unended = begun - ended;
    return ended;
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
