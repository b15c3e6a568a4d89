/* Whatever way a process starts another: the new program has no descriptor of the library's, a child that shares no
 * memory is as one of fork, and the parent goes on. Called with an argument it is that program. */
#include "check.h"
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#ifndef OPEN
#define OPEN() simulated(0) /* pmu_vfork_clone.c has another */
#endif

extern char **environ;
static td_t *td;
static const char *self;
static char *arguments[] = {(char *)"program", (char *)"started", NULL};

/* what only a child without the parent's memory can do */
static void copied_child(void)
{
    struct td_sample sample;
    struct td_l1 l1;
    CHECK_EQ(td_read(td, &sample), TD_EWRONGTHREAD);
    CHECK(last_error_with("fork"));
    CHECK_EQ(td_reset(td), TD_EWRONGTHREAD);
    td_close(td);
    CHECK_EQ(perf_descriptors(), 0);
    td_t *own = OPEN();
    td_must(td_reset(own));
    work(100000);
    td_must(td_read(own, &sample));
    td_must(td_decode_l1(NULL, &sample, &l1));
    td_close(own);
    _exit(0);
}

static void forks(void)
{
    const pid_t child = fork();
    if (child == 0)
        copied_child();
    child_is_well(child);
}

static void clones_as_fork(void)
{
    const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        copied_child();
    child_is_well(child);
}

static void clones_as_fork_by_clone3(void)
{
    struct clone_args args;
    memset(&args, 0, sizeof args);
    args.exit_signal = SIGCHLD;
    const pid_t child = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (child == 0)
        copied_child();
    if (child < 0 && (errno == ENOSYS || errno == EPERM)) /* Valgrind, containers */
        return;
    child_is_well(child);
}

static void forks_and_execs(void)
{
    const pid_t child = fork();
    if (child == 0) {
        execv(self, arguments);
        _exit(1);
    }
    child_is_well(child);
}

static void vforks(void)
{
    const pid_t child = vfork();
    if (child == 0)
        _exit(0);
    child_is_well(child);
}

static void vforks_and_execs(void)
{
    const pid_t child = vfork();
    if (child == 0) {
        execv(self, arguments);
        _exit(1);
    }
    child_is_well(child);
}

static int execs(void *unused)
{
    (void)unused;
    execv(self, arguments);
    return 1;
}

static void clones_as_vfork(void)
{
    static char stack[256 * 1024] __attribute__((aligned(64)));
    child_is_well(clone(execs, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
}

static void spawns(void)
{
    pid_t child = -1;
    CHECK_EQ(posix_spawn(&child, self, NULL, NULL, arguments, environ), 0);
    child_is_well(child);
}

static const char *command(void)
{
    static char line[4096];
    snprintf(line, sizeof line, "'%s' started", self);
    return line;
}

static void calls_system(void) { CHECK_EQ(system(command()), 0); }

static void opens_pipe(void)
{
    FILE *pipe = popen(command(), "r");
    CHECK(pipe != NULL);
    CHECK_EQ(pclose(pipe), 0);
}

int main(int argc, char **argv)
{
    static void (*const WAYS[])(void) = {forks,  clones_as_fork,   clones_as_fork_by_clone3, forks_and_execs, vforks,
                                         spawns, vforks_and_execs, clones_as_vfork,          calls_system,    opens_pipe};
    if (argc > 1) {
        CHECK_EQ(perf_descriptors(), 0);
        return 0;
    }
    self = argv[0];
    td = OPEN();
    const int descriptors = perf_descriptors();
    struct td_sample before, after;
    struct td_l1 l1;
    for (size_t i = 0; i < 3 * sizeof WAYS / sizeof WAYS[0]; i++) {
        td_must(td_read(td, &before));
        WAYS[i % (sizeof WAYS / sizeof WAYS[0])]();
        td_must(td_read(td, &after));
        CHECK(after.slots > before.slots);
        td_must(td_decode_l1(&before, &after, &l1));
        CHECK_EQ(perf_descriptors(), descriptors);
    }
    td_close(td);
    CHECK_EQ(perf_descriptors(), 0);
    return 0;
}
