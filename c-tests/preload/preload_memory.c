/* Memory that cannot be had, at the library's own calls of mmap(2) and mremap(2), each in turn, and under `ulimit -v`: the
 * program ends as without the library; at most lines that begin with "topdown: " say what is not measured. */
#include "preload.h"
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#ifndef REAL
#define REAL 0 /* 1: pmu_preload_memory.c: with counters, and not as many ways */
#endif
enum { CALLS = 9 }; /* a descriptor whose file has the number of calls so far */

/* What the library calls instead of the C library's: MEMORY_FAILS=N fails the N-th call, N+ all from it on. */
static int fails(void)
{
    const char *which = getenv("MEMORY_FAILS");
    if (which == NULL)
        return 0;
    long calls = 0;
    if (pread(CALLS, &calls, sizeof calls, 0) < 0)
        return 0;
    calls++;
    if (pwrite(CALLS, &calls, sizeof calls, 0) != sizeof calls)
        return 0;
    const long wanted = atol(which);
    return calls == wanted || (calls > wanted && strchr(which, '+'));
}
void *mmap(void *at, size_t length, int access, int flags, int fd, off_t offset)
{
    if (fails()) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, length, access, flags, fd, offset);
}
void *mmap64(void *at, size_t length, int access, int flags, int fd, off_t offset)
{
    return mmap(at, length, access, flags, fd, offset);
}
void *mremap(void *at, size_t length, size_t wanted, int flags, ...)
{
    if (fails()) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mremap, at, length, wanted, flags, NULL);
}

static void *in_thread(void *unused)
{
    region("thread", 3);
    return unused;
}

/* Threads, forks within regions, new names, a program executed; what the program itself cannot have it does without. */
static int program(void)
{
    pthread_t thread[3];
    char name[40];
    int status;
    td_region_begin("outer");
    if (dlopen(NULL, RTLD_NOW) == NULL)
        puts("no dlopen");
    for (int k = 0; k < 3; k++) {
        if (pthread_create(&thread[k], NULL, in_thread, NULL) == 0)
            pthread_join(thread[k], NULL);
    }
    for (int k = 0; k < 100; k++) {
        snprintf(name, sizeof name, "name %d", k);
        region(name, 1);
    }
    pid_t child = fork();
    if (child == 0) {
        region("child", 2);
        exit(5);
    }
    if (waitpid(child, &status, 0) != child || status != 5 << 8)
        printf("the child's status is %#x\n", status);
    td_region_end("outer");
    puts("done");
    return 7;
}

static const char *said(const char *name) { return preload_text(name); }

/* Where figures go, and functions that are hooked. */
struct way {
    const char *output, *regions;
};

/* Runs the program; its status. What it said is in two files. */
static int run(const char *library, const struct way *way, const char *failing, rlim_t limit)
{
    int status;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char path[PATH_MAX + 20];
        for (int fd = 1; fd < 3; fd++) {
            snprintf(path, sizeof path, "%s/%s", preload_scratch, fd == 1 ? "out" : "err");
            CHECK_EQ(dup2(open(path, O_CREAT | O_WRONLY | O_TRUNC | O_APPEND, 0644), fd), fd);
        }
        setenv("TOPDOWN_SIMULATE", REAL ? "0" : "1", 1);
        setenv("TMPDIR", preload_scratch, 1);
        setenv("TOPDOWN_OUTPUT", way->output, 1);
        if (way->regions)
            setenv("TOPDOWN_REGIONS", way->regions, 1);
        unsetenv("XDG_RUNTIME_DIR");
        if (library)
            setenv("LD_PRELOAD", library, 1);
        if (failing)
            setenv("MEMORY_FAILS", failing, 1);
        struct rlimit none = {0, 0}, memory = {limit, limit};
        setrlimit(RLIMIT_CORE, &none);
        if (limit)
            CHECK_EQ(setrlimit(RLIMIT_AS, &memory), 0);
        execl(own_path(), own_path(), "program", (char *)NULL);
        _exit(126);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    return status;
}

/* Whether these are lines of the library, of the dynamic linker that does without it, or a report; and nothing of an abort. */
static int is_fine(const char *errors, int report)
{
    if (strstr(errors, "panicked") || strstr(errors, "memory allocation") || strstr(errors, "fatal") || strstr(errors, "Fatal"))
        return 0;
    for (const char *line = errors; *line && !report; line += strcspn(line, "\n"), line += *line == '\n') {
        if (strncmp(line, "topdown: ", 9) && strncmp(line, "ERROR: ld.so: object", 20))
            return 0;
    }
    return 1;
}

static void same(const char *what, const struct way *way, int status, int without, const char *out)
{
    if (status != without || strcmp(said("out"), out) || !is_fine(said("err"), !*way->output))
        FAIL("%s, TOPDOWN_OUTPUT='%s': status %#x instead of %#x; said\n%s%s", what, way->output, status, without, said("out"), said("err"));
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "program"))
        return program();
    char directory[PATH_MAX], library[2 * PATH_MAX], csv[PATH_MAX + 20], raw[PATH_MAX + 20], what[60];
    snprintf(directory, sizeof directory, "%s", own_path());
    snprintf(library, sizeof library, "%s/../release/libtopdown-preload.so", dirname(directory));
    if (access(library, R_OK))
        SKIP("%s is not there", library);
    unsetenv("LD_PRELOAD");
    strcpy(preload_scratch, "/tmp/preload.XXXXXX");
    CHECK(mkdtemp(preload_scratch) != NULL);
    atexit(preload_clean);
    snprintf(csv, sizeof csv, "%s/report.csv", preload_scratch);
    snprintf(raw, sizeof raw, "%s/run.topdown", preload_scratch);
    const struct way WAYS[] = {{csv, NULL}, {raw, NULL}, {"", NULL}, {csv, "*:puts,libc*:fo*,libm*:e*,*:nowhere"}};
    enum { COUNT = REAL ? 1 : sizeof WAYS / sizeof *WAYS };
    const int calls = memfd_create("calls", 0);
    CHECK(calls >= 0 && dup2(calls, CALLS) == CALLS);
    close(calls);

    /* each call in turn, alone and with all after it */
    int failed = 0;
    for (int k = 0; k < COUNT; k++) {
        const int without = run(NULL, &WAYS[k], NULL, 0);
        const char *out = said("out");
        CHECK(without == 7 << 8 && !strcmp(out, "done\n"));
        long all = 0;
        for (long n = 0; n <= all; n += n > 0 && in_gate() ? 2 : 1) {
            for (int after = REAL ? n > 0 : 0; after < 2; after++) {
                char failing[30];
                const long none = 0;
                CHECK_EQ(pwrite(CALLS, &none, sizeof none, 0), (ssize_t)sizeof none);
                snprintf(failing, sizeof failing, "%ld%s", n, after && n ? "+" : ""); /* at first none, to count them */
                snprintf(what, sizeof what, "call %s fails", failing);
                same(what, &WAYS[k], run(library, &WAYS[k], failing, 0), without, out);
                if (n == 0)
                    CHECK_EQ(pread(CALLS, &all, sizeof all, 0), (ssize_t)sizeof all);
                failed++;
            }
        }
        CHECK(all > 10);
    }
    fprintf(stderr, "%d runs with calls that failed\n", failed);

    /* ulimit -v */
    int limited = 0;
    for (rlim_t megabytes = 20; megabytes <= 400 && !REAL; megabytes += megabytes < 60 ? 2 : 20) {
        for (int k = 0; k < COUNT; k++) {
            const int without = run(NULL, &WAYS[k], NULL, megabytes << 20);
            const char *out = said("out");
            snprintf(what, sizeof what, "%ju MiB", (uintmax_t)megabytes);
            same(what, &WAYS[k], run(library, &WAYS[k], NULL, megabytes << 20), without, out);
            limited++;
        }
    }
    fprintf(stderr, "%d runs with less memory\n", limited);
    return 0;
}
