/* preload.h: a program that runs itself, case by case, without libtopdown-preload.so and with it (counters simulated), and
 * compares what it says, how it ends, and what the report has. */
#ifndef PRELOAD_H
#define PRELOAD_H
#include "check.h"
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <topdown_region.h>

/* What the program does in this case, what the report has to have, and a part of the line that the library says on standard
 * error; the latter two may be NULL. */
struct preload_case {
    const char *name;
    int (*program)(void);
    void (*report)(const char *csv);
    const char *says;
};

static char preload_scratch[PATH_MAX]; /* a directory of the case's own */
static char preload_release[PATH_MAX + 64];

/* Whether the calling program runs with the library. */
static inline int preloaded(void)
{
    return getenv("LD_PRELOAD") != NULL;
}

static inline void preload_clean(void)
{
    char line[PATH_MAX + 64];
    snprintf(line, sizeof line, "rm -rf '%s'", preload_scratch);
    if (preload_scratch[0] && !getenv("KEEP") && system(line))
        fprintf(stderr, "%s stays\n", preload_scratch);
}

/* A file of the scratch directory; empty, if it is not there. (Never freed: the program ends soon.) */
static inline char *preload_text(const char *name)
{
    char path[PATH_MAX + 300];
    struct stat about = {0};
    snprintf(path, sizeof path, "%s/%s", preload_scratch, name);
    FILE *file = fopen(path, "r");
    if (file)
        CHECK_EQ(fstat(fileno(file), &about), 0);
    char *text = calloc(1, (size_t)about.st_size + 1);
    CHECK(text != NULL);
    if (file) {
        CHECK(fread(text, 1, (size_t)about.st_size, file) <= (size_t)about.st_size);
        fclose(file);
    }
    return text;
}

/* The field of this column in the line of a region (NULL: all that ran) in all threads of all processes; -1: there is none */
static inline double figure(const char *csv, const char *region, const char *column)
{
    int wanted = 0, at = 0;
    const char *end = strchr(csv, '\n'), *line;
    CHECK(end != NULL);
    for (const char *from = csv; from < end; at++, from += strcspn(from, ",\n") + 1) {
        if (strcspn(from, ",\n") == strlen(column) && !strncmp(from, column, strlen(column)))
            wanted = at;
    }
    CHECK(wanted > 0);
    for (line = end + 1; line[0] && strchr(line, '\n'); line = strchr(line, '\n') + 1) {
        char start[600];
        snprintf(start, sizeof start, "%s,,,", region ? region : "");
        if (!strncmp(line, start, strlen(start))) {
            for (at = 0; at < wanted; at++)
                line += strcspn(line, ",\n") + 1;
            return *line == ',' || *line == '\n' ? NAN : strtod(line, NULL);
        }
    }
    return -1;
}

/* Lines of the report that are a thread's own. */
static inline int threads_in(const char *csv)
{
    int threads = 0;
    for (const char *line = csv; (line = strchr(line, '\n')) != NULL;)
        threads += *++line == ',' && line[1] != ',' && line[1] && line[1 + strcspn(line + 1, ",") + 1] != ',';
    return threads;
}

/* Runs a case; its output and errors are in files named after `how`. Returns its status. */
static inline int preload_run(const char *name, const char *how, int with)
{
    char path[PATH_MAX + 300];
    const pid_t child = fork();
    if (child == 0) {
        snprintf(path, sizeof path, "%s/%s.out", preload_scratch, how);
        CHECK_EQ(dup2(open(path, O_CREAT | O_WRONLY | O_APPEND, 0644), 1), 1);
        snprintf(path, sizeof path, "%s/%s.err", preload_scratch, how);
        CHECK_EQ(dup2(open(path, O_CREAT | O_WRONLY | O_APPEND, 0644), 2), 2);
        for (int fd = 3; fd < 10; fd++)
            close(fd);
        setenv("TMPDIR", preload_scratch, 1);
        unsetenv("XDG_RUNTIME_DIR");
        if (with) {
            snprintf(path, sizeof path, "%s/libtopdown-preload.so", preload_release);
            setenv("LD_PRELOAD", path, 1);
            snprintf(path, sizeof path, "%s/run.topdown", preload_scratch);
            setenv("TOPDOWN_OUTPUT", path, 0);
            setenv("TOPDOWN_SIMULATE", "1", 0);
        }
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        execl(own_path(), own_path(), name, preload_scratch, NULL);
        _exit(126);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return status;
}

/* Takes the library's only line out of what was said; false if it is none, or not this one. */
static inline int preload_take_line(char *text, const char *part)
{
    char *line = strncmp(text, "topdown: ", 9) ? strstr(text, "\ntopdown: ") : text;
    if (line == NULL)
        return 0;
    line += *line == '\n';
    char *end = line + strcspn(line, "\n");
    char *found = strstr(line, part);
    memmove(line, end + (*end == '\n'), strlen(end) + (*end != '\n'));
    return found && found < end;
}

static inline int preload_main(int argc, char **argv, const struct preload_case *cases, size_t count)
{
    if (argc > 2) { /* a case */
        snprintf(preload_scratch, sizeof preload_scratch, "%s", argv[2]);
        for (size_t k = 0; k < count; k++) {
            if (!strcmp(cases[k].name, argv[1]))
                return cases[k].program();
        }
        return 125;
    }
    char directory[PATH_MAX], line[3 * PATH_MAX];
    snprintf(directory, sizeof directory, "%s", own_path());
    snprintf(preload_release, sizeof preload_release, "%s/../release", dirname(directory));
    snprintf(line, sizeof line, "%s/libtopdown-preload.so", preload_release);
    if (access(line, R_OK))
        SKIP("%s is not there", line);
    unsetenv("LD_PRELOAD");
    atexit(preload_clean);
    for (size_t k = 0; k < count; k++) {
        const char *name = cases[k].name;
        if (argc > 1 && strcmp(argv[1], name))
            continue;
        strcpy(preload_scratch, "/tmp/preload.XXXXXX");
        CHECK(mkdtemp(preload_scratch) != NULL && chmod(preload_scratch, 0777) == 0);
        const int without = preload_run(name, "without", 0), with = preload_run(name, "with", 1);
        char *errors = preload_text("with.err");
        if (cases[k].says && !preload_take_line(errors, cases[k].says))
            FAIL("%s: did not say '%s', but\n%s", name, cases[k].says, preload_text("with.err"));
        if (without != with || strcmp(preload_text("without.out"), preload_text("with.out")) ||
            strcmp(preload_text("without.err"), errors)) {
            FAIL("%s: status %#x without the library, %#x with it; said\n%s%s\nand\n%s%s", name, without, with,
                 preload_text("without.out"), preload_text("without.err"), preload_text("with.out"), preload_text("with.err"));
        }
        if (WIFEXITED(with) && (WEXITSTATUS(with) == 1 || WEXITSTATUS(with) >= 125))
            FAIL("%s: exit status %d: %s%s", name, WEXITSTATUS(with), preload_text("with.out"), preload_text("with.err"));
        if (cases[k].report) {
            snprintf(line, sizeof line, "'%s/topdown' report -o '%s/report.csv' '%s'/*.topdown", preload_release,
                     preload_scratch, preload_scratch);
            if (system(line))
                FAIL("%s: no report", name);
            fprintf(stderr, "in case %s:\n", name);
            cases[k].report(preload_text("report.csv"));
        }
        preload_clean();
        preload_scratch[0] = 0;
    }
    return 0;
}
#define PRELOAD_MAIN(cases) \
    int main(int argc, char **argv) { return preload_main(argc, argv, cases, sizeof(cases) / sizeof *(cases)); }

/* So many executions of a region. */
static inline void region(const char *name, int times)
{
    while (times-- > 0) {
        td_region_begin(name);
        td_region_end(name);
    }
}

/* The report has so many executions of a region. */
#define EXECUTED(csv, name, times) CHECK_EQ(figure(csv, name, "executions"), times)
#endif
