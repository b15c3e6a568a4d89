/* Programs that fork in every way run as without the library; each child has a table of its own, or none. */
#include "preload.h"
#include <sched.h>
#include <spawn.h>
#include <sys/syscall.h>

extern char **environ;

static void ends_well(pid_t child)
{
    int status = -1;
    CHECK(child > 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

/* Of the parent's open regions a child has what it executes itself, if it ends them. */
static int forks(void)
{
    td_region_begin("around");
    for (int k = 0; k < 50; k++) {
        pid_t child = fork();
        if (child == 0) {
            region("child", 10);
            CHECK_EQ(td_region_end("around"), 0);
            _exit(0);
        }
        ends_well(child);
        region("parent", 1);
    }
    td_region_end("around");
    return 0;
}
static void forks_report(const char *csv)
{
    EXECUTED(csv, "around", 1 + 50);
    CHECK_EQ(figure(csv, "around", "unended"), 0);
    EXECUTED(csv, "child", 500);
    EXECUTED(csv, "parent", 50);
    CHECK_EQ(figure(csv, "around", "unbalanced"), 0);
}

/* Threads begin and end all the while that others fork. */
static volatile int enough;
static void *short_one(void *unused) { region("short", 1); return unused; }
static void *starts_threads(void *unused)
{
    while (!enough)
        join_thread(start_thread(short_one, NULL));
    return unused;
}
static int storms(void)
{
    struct rlimit limit, now;
    getrlimit(RLIMIT_NOFILE, &limit);
    pthread_t starters[3];
    for (int k = 0; k < 3; k++)
        starters[k] = start_thread(starts_threads, NULL);
    for (int k = 0; k < 500; k++) {
        pid_t child = fork();
        if (child == 0) {
            getrlimit(RLIMIT_NOFILE, &now);
            region("child", 1);
            _exit(now.rlim_cur != limit.rlim_cur);
        }
        ends_well(child);
    }
    enough = 1;
    for (int k = 0; k < 3; k++)
        join_thread(starters[k]);
    return 0;
}
static void storms_report(const char *csv) { EXECUTED(csv, "child", 500); }

/* Children that share the parent's memory leave its figures alone. */
static int vforks(void)
{
    td_region_begin("around");
    for (int k = 0; k < 20; k++) {
        pid_t child = vfork();
        if (child == 0) {
            if (k % 2)
                _exit(0);
            execl("/bin/true", "true", NULL);
            _exit(1);
        }
        ends_well(child);
        char *arguments[] = {"sh", "-c", "echo spawned", NULL};
        CHECK_EQ(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ), 0);
        ends_well(child);
    }
    CHECK_EQ(system("echo system; exit 3") >> 8, 3);
    char line[100] = "";
    FILE *pipe = popen("echo popen", "r");
    CHECK(pipe && fgets(line, sizeof line, pipe) && !strcmp(line, "popen\n"));
    CHECK_EQ(pclose(pipe), 0);
    td_region_end("around");
    region("after", 5);
    return 0;
}
static void vforks_report(const char *csv)
{
    EXECUTED(csv, "around", 1);
    EXECUTED(csv, "after", 5);
}

/* A daemon: nothing of it is left that it had at first but its working. */
static int daemonises(void)
{
    int done[2];
    CHECK_EQ(pipe(done), 0);
    pid_t child = fork();
    if (child == 0) {
        setsid();
        if (fork())
            _exit(0);
        CHECK_EQ(chdir("/"), 0);
        int keep = fcntl(done[1], F_DUPFD, 200);
        for (int fd = 0; fd < 1000; fd++) {
            if (fd != keep)
                close(fd);
        }
        char path[PATH_MAX + 10];
        snprintf(path, sizeof path, "%s/log", preload_scratch);
        for (int fd = 0; fd < 3; fd++) /* the lowest there is, and nobody else writes there */
            CHECK_EQ(open(path, O_CREAT | O_RDWR | O_TRUNC, 0600), fd);
        region("daemon", 100);
        struct stat about;
        CHECK(fstat(2, &about) == 0 && about.st_size == 0);
        CHECK_EQ(write(keep, "x", 1), 1);
        exit(0);
    }
    close(done[1]);
    ends_well(child);
    char byte;
    CHECK_EQ(read(done[0], &byte, 1), 1);
    CHECK_EQ(read(done[0], &byte, 1), 0); /* it has ended */
    return 0;
}
static void daemon_report(const char *csv) { EXECUTED(csv, "daemon", 100); }

/* A child that nobody told us of. */
static int forks_by_hand(void)
{
    region("before", 1);
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        region("child", 10);
        pthread_t thread;
        if (pthread_create(&thread, NULL, short_one, NULL) || pthread_join(thread, NULL))
            _exit(1);
        syscall(SYS_exit_group, 0);
    }
    ends_well(child);
    child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        pthread_exit(NULL);
    ends_well(child);
    child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        exit(0);
    ends_well(child);
    region("after", 1);
    return 0;
}
static void by_hand_report(const char *csv)
{
    EXECUTED(csv, "before", 1);
    EXECUTED(csv, "child", -1);
    EXECUTED(csv, "after", 1);
}

/* A thread that is none of the C library's: another's memory, no regions. */
static char stack[1 << 16] __attribute__((aligned(64)));
static int clone_thread(void *unused)
{
    (void)unused;
    syscall(SYS_exit, 0);
    return 0;
}
static int clones(void)
{
    static pid_t tid = 1;
    const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
    CHECK(clone(clone_thread, stack + sizeof stack, flags, NULL, NULL, NULL, &tid) > 0);
    while (__atomic_load_n(&tid, __ATOMIC_ACQUIRE))
        sched_yield();
    region("after", 1);
    return 0;
}

static const struct preload_case CASES[] = {
    {"fork", forks, forks_report, NULL}, {"fork beside threads", storms, storms_report, NULL}, {"vfork", vforks, vforks_report, NULL},
    {"daemon", daemonises, daemon_report, NULL}, {"fork by hand", forks_by_hand, by_hand_report, NULL}, {"clone", clones, NULL, NULL},
};
PRELOAD_MAIN(CASES)
