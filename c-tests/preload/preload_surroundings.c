/* Whatever a program's surroundings are, and whatever it does to its descriptors, limits and rights: it runs as without
 * the library. */
#include "preload.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* The lowest free descriptor is what it would be, in a thread and a child, too. */
static int lowest(void)
{
    const int fd = open("/dev/null", O_RDONLY);
    close(fd);
    return fd;
}
static void *lowest_in_thread(void *unused) { region("thread", 1); printf("%d\n", lowest()); return unused; }
static int descriptors(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    printf("%d of %ju, %ju\n", lowest(), (uintmax_t)limit.rlim_cur, (uintmax_t)limit.rlim_max);
    region("main", 1);
    join_thread(start_thread(lowest_in_thread, NULL));
    getrlimit(RLIMIT_NOFILE, &limit);
    printf("%d of %ju, %ju\n", lowest(), (uintmax_t)limit.rlim_cur, (uintmax_t)limit.rlim_max);
    fflush(stdout);
    if (fork() == 0) {
        printf("%d\n", lowest());
        exit(0);
    }
    wait(NULL);
    return 0;
}
static void descriptors_report(const char *csv) { EXECUTED(csv, "thread", 1); }

/* Every descriptor that the program can find is closed, in three ways. */
static int closes(void)
{
    region("before", 100);
    fflush(stdout);
    for (int way = 0; way < 3; way++) {
        if (way == 0)
            closefrom(3);
        else if (way == 1)
            syscall(SYS_close_range, 3, ~0u, 0);
        else {
            DIR *directory = opendir("/proc/self/fd");
            for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
                if (atoi(entry->d_name) > 2 && atoi(entry->d_name) != dirfd(directory))
                    close(atoi(entry->d_name));
            }
            closedir(directory);
        }
        int pipes[2];
        CHECK_EQ(pipe(pipes), 0);
        printf("%d %d\n", pipes[0], pipes[1]);
        region("closed", 100);
        join_thread(start_thread(lowest_in_thread, NULL));
        CHECK_EQ(write(pipes[1], "x", 1), 1);
        char byte;
        CHECK_EQ(read(pipes[0], &byte, 1), 1);
    }
    return 0;
}
static void closes_report(const char *csv) { EXECUTED(csv, "before", 100); }

static int low_limits(void)
{
    static const int LIMITS[] = {RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_MEMLOCK, RLIMIT_NPROC};
    region("before", 100);
    for (size_t k = 0; k < sizeof LIMITS / sizeof *LIMITS; k++) {
        struct rlimit limit = {LIMITS[k] == RLIMIT_NOFILE ? 8 : 0, LIMITS[k] == RLIMIT_NOFILE ? 8 : 0};
        CHECK_EQ(setrlimit(LIMITS[k], &limit), 0);
        for (int n = 0; n < 100; n++) {
            char name[20];
            snprintf(name, sizeof name, "%zu %d", k, n);
            region(name, 1);
        }
    }
    region("before", 100);
    return 0;
}
static void low_limits_report(const char *csv)
{
    EXECUTED(csv, "before", 200);
    EXECUTED(csv, "0 99", 1);
}

/* No memory: what was begun goes on, the rest is not counted. */
static int no_memory(void)
{
    region("before", 100);
    struct rlimit limit = {1 << 20, 1 << 20};
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    for (int n = 0; n < 1000; n++) {
        char name[20];
        snprintf(name, sizeof name, "new %d", n);
        region(name, 1);
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, lowest_in_thread, NULL) == 0)
        join_thread(thread);
    region("before", 100);
    fflush(stdout);
    _exit(0);
}
static void no_memory_report(const char *csv) { EXECUTED(csv, "before", 200); }

/* Somewhere else, as somebody else. */
static int elsewhere(void)
{
    region("before", 100);
    if (chroot("/proc/self") || chdir("/") || setgid(65534) || setuid(65534))
        printf("not root\n");
    for (int n = 0; n < 100; n++) {
        char name[20];
        snprintf(name, sizeof name, "new %d", n);
        region(name, 1);
    }
    join_thread(start_thread((void *(*)(void *))lowest_in_thread, NULL));
    fflush(stdout);
    if (fork() == 0) {
        region("child", 1);
        _exit(0);
    }
    wait(NULL);
    region("before", 100);
    return 0;
}

/* Runs a case of this program with this environment, and something for standard error; returns what it said there. */
static const char *runs(const char *name, const char *errors, int status)
{
    int code;
    char path[PATH_MAX + 100];
    snprintf(path, sizeof path, "%s/%s", preload_scratch, errors);
    pid_t child = fork();
    if (child == 0) {
        close(2);
        if (*errors)
            CHECK_EQ(open(path, O_CREAT | O_RDWR | O_TRUNC, 0600), 2);
        execl(own_path(), "x", name, preload_scratch, NULL);
        _exit(126);
    }
    CHECK_EQ(waitpid(child, &code, 0), child);
    CHECK_EQ(code, status << 8);
    return *errors ? preload_text(errors) : "";
}

/* The same, with a standard error that cannot be written; its signal, if it has one, ignored or not. */
static void ends_as_ever(int errors, void (*pipe_handler)(int))
{
    int code;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGPIPE, pipe_handler);
        CHECK_EQ(dup2(errors, 2), 2);
        execl(own_path(), "x", "quiet", preload_scratch, NULL);
        _exit(126);
    }
    CHECK_EQ(waitpid(child, &code, 0), child);
    CHECK_EQ(code, 7 << 8);
}

static int quiet(void)
{
    region("inside", 1);
    return 7;
}
static int another_stderr_inside(void)
{
    char path[PATH_MAX + 10];
    snprintf(path, sizeof path, "%s/own", preload_scratch);
    close(2);
    CHECK_EQ(open(path, O_CREAT | O_RDWR | O_TRUNC, 0600), 2);
    return quiet();
}
static int one_line(const char *text, const char *word)
{
    const char *end = strchr(text, '\n');
    return !preloaded() ? !*text : end && !end[1] && strstr(text, word);
}

/* Where reports and lines go, and where they do not. */
static int says(void)
{
    setenv("TOPDOWN_OUTPUT", "", 1);
    unsetenv("TOPDOWN_SECCOMP_FILTERS"); /* each is the first program that is measured: others say nothing */
    CHECK(strstr(runs("quiet", "errors", 7), "inside") || !preloaded()); /* the report */
    runs("quiet", "", 7);                                                /* nowhere */
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    close(ends[0]);
    ends_as_ever(ends[1], SIG_DFL); /* nobody reads */
    ends_as_ever(ends[1], SIG_IGN);
    ends_as_ever(open("/dev/full", O_WRONLY), SIG_DFL);
    CHECK(!*runs("another stderr inside", "errors", 7));
    CHECK(!*preload_text("own"));
    setenv("TMPDIR", "/nowhere", 1);
    CHECK(one_line(runs("quiet", "errors", 7), "/nowhere"));
    runs("another stderr inside", "errors", 7);
    CHECK(!*preload_text("own"));
    setenv("TMPDIR", preload_scratch, 1); /* tables can be made, and the report cannot */
    setenv("TOPDOWN_OUTPUT", "/nowhere/report.csv", 1);
    CHECK(one_line(runs("quiet", "errors", 7), "/nowhere"));
    setenv("TOPDOWN_OUTPUT", "/proc/report.csv", 1);
    CHECK(one_line(runs("quiet", "errors", 7), "/proc"));
    struct rlimit one_page = {5000, 5000};
    setrlimit(RLIMIT_FSIZE, &one_page);
    char path[PATH_MAX + 10];
    snprintf(path, sizeof path, "%s/x.topdown", preload_scratch);
    setenv("TOPDOWN_OUTPUT", path, 1);
    CHECK(!*runs("quiet", "errors", 7));
    return 0;
}

/* A program is executed where the library is not, by this process or a child: its loader has nothing to say about that. */
static int another_root(void)
{
    char line[4 * PATH_MAX], root[PATH_MAX + 10];
    snprintf(root, sizeof root, "%s/root", preload_scratch);
    snprintf(line, sizeof line, "for f in /bin/sh $(ldd /bin/sh | grep -o '/[^ ]*'); do mkdir -p %s${f%%/*} && cp -L $f %s$f; done", root, root);
    CHECK_EQ(system(line), 0);
    region("before", 100);
    if (chroot(root) || chdir("/")) {
        printf("not root\n");
        return 3;
    }
    fflush(stdout);
    for (int child = 1; child >= 0; child--) {
        if (child && fork()) {
            wait(NULL);
            continue;
        }
        execl("/bin/sh", "sh", "-c", "echo in another root; exit 3", NULL);
    }
    return 2;
}
static void another_root_report(const char *csv) { EXECUTED(csv, "before", 100); }

/* The table is full. (A new name is compared with all others below the same region, so there are not too many below one.) */
static int full(void)
{
    region("before", 100);
    static char name[60], outer[60];
    for (int n = 0; n < 40000;) {
        snprintf(outer, sizeof outer, "of %d", n);
        td_region_begin(outer);
        do {
            snprintf(name, sizeof name, "%d", n);
            region(name, 1);
        } while (++n % 200);
        td_region_end(outer);
    }
    region("before", 100);
    return 0;
}

#define REFUSED(why, call) (errno = 0, CHECK_EQ(call, -1), CHECK_EQ(errno, why))

/* A filter lets the C library's own end through, and has this action for all other system calls. */
static void filters(unsigned action, int by_syscall)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
    fflush(stdout);
    CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL), -1); /* is there such a thing? */
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(by_syscall ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}
static int is_killed_for_calls(int by_syscall)
{
    region("before", 100);
    filters(SECCOMP_RET_KILL_PROCESS, by_syscall);
    region("after", 100);
    region("before", 100);
    CHECK_EQ(write(1, "alive\n", 6), 6);
    return 3;
}
static int killed_by_prctl(void) { return is_killed_for_calls(0); }
static int killed_by_syscall(void) { return is_killed_for_calls(1); }
static void killed_report(const char *csv) { EXECUTED(csv, "before", 100); }

/* One that kills for nothing leaves all as it is. */
static int has_a_harmless_filter(void)
{
    region("before", 100);
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mkdirat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
    region("before", 100);
    join_thread(start_thread(lowest_in_thread, NULL));
    return 0;
}
static void harmless_report(const char *csv)
{
    EXECUTED(csv, "before", 200);
    EXECUTED(csv, "thread", 1);
}

/* A hooked function is first called when the filter is there, or strict mode. */
static void starts_again_with_hooks(const char *name)
{
    if (preloaded() && !getenv("TOPDOWN_REGIONS")) {
        setenv("TOPDOWN_REGIONS", "swab", 1);
        execl(own_path(), own_path(), name, preload_scratch, NULL);
    }
}
static void calls_hooked(void)
{
    char from[2] = "ab", to[3] = "";
    swab(from, to, 2);
    CHECK(to[0] == 'b');
    region("after", 100);
    CHECK_EQ(write(1, "alive\n", 6), 6);
}
static int hooked_and_killed(void)
{
    starts_again_with_hooks("hooked, killed");
    region("before", 100);
    filters(SECCOMP_RET_KILL_PROCESS, 0);
    calls_hooked();
    return 3;
}
static int hooked_and_strict(void)
{
    starts_again_with_hooks("hooked, strict");
    region("before", 100);
    fflush(stdout);
    CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT), 0);
    calls_hooked();
    syscall(SYS_exit, 3);
    return 4;
}

/* What the kernel refuses changes nothing. */
static int refused_filters(void)
{
    struct sock_filter kill[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    struct sock_filter unknown[] = {BPF_STMT(0xffff, 0)};
    const struct sock_fprog killing = {1, kill}, empty = {0, kill}, strange = {1, unknown}, nowhere = {1, (void *)8};
    region("before", 100);
    if (geteuid() != 0)
        REFUSED(EACCES, prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &killing));
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    REFUSED(EFAULT, prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (void *)8));
    REFUSED(EFAULT, syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (void *)8));
    REFUSED(EFAULT, prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &nowhere));
    REFUSED(EINVAL, prctl(PR_SET_SECCOMP, 3, (void *)8));
    REFUSED(EINVAL, prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &empty));
    REFUSED(EINVAL, prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &strange));
    REFUSED(EINVAL, syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL));
    region("before", 100);
    return 0;
}
static void refused_report(const char *csv) { EXECUTED(csv, "before", 200); }

static const struct preload_case CASES[] = {
    {"hooked, killed", hooked_and_killed, killed_report, NULL}, {"hooked, strict", hooked_and_strict, killed_report, NULL},
    {"refused filters", refused_filters, refused_report, NULL},
    {"killed by prctl", killed_by_prctl, killed_report, NULL}, {"killed by syscall", killed_by_syscall, killed_report, NULL},
    {"harmless filter", has_a_harmless_filter, harmless_report, NULL},
    {"descriptors", descriptors, descriptors_report, NULL}, {"close all", closes, closes_report, NULL},
    {"low limits", low_limits, low_limits_report, NULL}, {"no memory", no_memory, no_memory_report, NULL},
    {"elsewhere", elsewhere, NULL, NULL}, {"another root", another_root, another_root_report, NULL}, {"says", says, NULL, NULL}, {"full table", full, NULL, NULL},
    {"quiet", quiet, NULL, NULL}, {"another stderr inside", another_stderr_inside, NULL, NULL},
};
PRELOAD_MAIN(CASES)
