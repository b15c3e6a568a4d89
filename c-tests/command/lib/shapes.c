/* shapes.c: programs of many shapes, whose slots all divide alike (MIX) but for those before main. `shapes NAME` is one of them; it
 * executes UNITS units of work in user mode, and little else. */
#define _GNU_SOURCE
#include "shapes.h"
#include "sandbox.h"
#include <fcntl.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <topdown_region.h>

static const char *self;
static char **given; /* arguments */

static void instructions(uint64_t count)
{
    uint64_t turns = count / 2;
    vm_mix_set(MIX, 0, 0, 0);
    __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(turns) : : "cc");
}
static void work(int units) { instructions((uint64_t)units * UNIT); }

static void ends_by(int signal)
{
    kill(getpid(), signal);
    pause();
}

static void *in_thread(void *units)
{
    for (int k = 0; k < *(int *)units; k++) {
        work(1);
        usleep(50);
    }
    return NULL;
}

static void threads(int count, int units)
{
    pthread_t thread[8];
    for (int k = 0; k < count; k++)
        pthread_create(thread + k, NULL, in_thread, &units);
    for (int k = 0; k < count; k++)
        pthread_join(thread[k], NULL);
}

static int plain(void) { work(UNITS); return 7; }
static int many_threads(void) { threads(4, UNITS / 4); return 0; }
static int sleeps(void)
{
    for (int k = 0; k < UNITS; k++) {
        work(1);
        usleep(200);
    }
    return 0;
}

static int children(void)
{
    for (int k = 0; k < 4; k++) {
        if (fork() == 0) {
            threads(2, UNITS / 8);
            ends_by(SIGKILL);
        }
    }
    while (wait(NULL) > 0) {}
    return 3;
}
static int killed(void) { children(); ends_by(SIGKILL); return 0; }
static int crashes(void) { work(UNITS); __builtin_trap(); }

static int regions(void)
{
    for (int k = 0; k < UNITS; k++) {
        td_region_begin("unit");
        work(1);
        td_region_end("unit");
    }
    return 10;
}

static int closes_all(void)
{
    close_range(0, ~0u, 0);
    work(UNITS);
    return 5;
}

static int leaves_at_once(void) { work(UNITS); syscall(SYS_exit_group, 9); return 0; }

/* a process that wait does not wait for */
static int in_clone(void *unused) { (void)unused; work(UNITS / 2); return 0; }
static int clones(void)
{
    static char stack[65536] __attribute__((aligned(16)));
    const pid_t child = clone(in_clone, stack + sizeof stack, CLONE_VM, NULL);
    work(UNITS / 2);
    return waitpid(child, NULL, __WALL) == child ? 6 : 1;
}

static int execs(void)
{
    work(UNITS / 2);
    execl(self, self, "half", (char *)NULL);
    return 1;
}
static int execs_in_a_sandbox(void)
{
    char *const arguments[] = {(char *)self, "half", NULL};
    struct sock_filter steps[64];
    const struct sock_fprog filter = sandbox_filter(steps, SANDBOX_OTHERS, SANDBOX_OTHER_CALLS, 0);
    work(UNITS / 2);
    sandbox_execute(&filter, arguments, environ);
    return 1;
}
static int half(void) { work(UNITS - UNITS / 2); return 8; }

static int sandboxed(void)
{
    vm_mix_set(MIX, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    uint64_t turns = (uint64_t)UNITS * UNIT / 2;
    __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(turns) : : "cc");
    syscall(SYS_exit, 4);
    return 0;
}

/* leaves a process that does the work, and ends before it, or once it has ended (`later`) */
static int daemon_of(int later)
{
    int over[2];
    char byte;
    if (pipe(over))
        return 1;
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            if (!later)
                usleep(200000);
            work(UNITS);
        }
        _exit(0);
    }
    wait(NULL);
    close(over[1]);
    return later && read(over[0], &byte, 1) != 0 ? 1 : 2;
}
static int leaves_a_daemon(void) { return daemon_of(0); }
static int waits_for_a_daemon(void) { return daemon_of(1); }

/* STORM threads, or processes, one after the other and some at once */
static const uint64_t PART = (uint64_t)UNITS * UNIT / STORM;
static void *part(void *unused) { instructions(PART); return unused; }
static int thread_storm(void)
{
    enum { AT_ONCE = 4 };
    pthread_t thread[AT_ONCE];
    for (int k = 0; k < STORM; k++) {
        if (k >= AT_ONCE)
            pthread_join(thread[k % AT_ONCE], NULL);
        if (pthread_create(&thread[k % AT_ONCE], NULL, part, NULL))
            return 1;
    }
    for (int k = 0; k < AT_ONCE; k++)
        pthread_join(thread[k], NULL);
    return 13;
}
static int fork_storm(void)
{
    for (int k = 0; k < STORM; k++) {
        const pid_t child = fork();
        if (child < 0)
            return 1;
        if (child == 0) {
            instructions(PART);
            _exit(0);
        }
        if (k % 4 == 3)
            while (wait(NULL) > 0) {}
    }
    return 14;
}

/* executes itself, LINKS times */
static int chain(void)
{
    static char left[16];
    const int links = given[0] ? atoi(given[0]) : LINKS;
    instructions((uint64_t)UNITS * UNIT / LINKS);
    if (links == 1)
        return 15;
    snprintf(left, sizeof left, "%d", links - 1);
    execl(self, self, "chain", left, (char *)NULL);
    return 1;
}

/* half of the work in a process of posix_spawn, half in one of vfork */
static int spawns(void)
{
    char *const quarters[] = {(char *)self, "half", NULL};
    pid_t child;
    int status, wrong = posix_spawn(&child, self, NULL, NULL, quarters, environ);
    wrong |= wrong || waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 8;
    child = vfork();
    if (child == 0) {
        execve(self, quarters, environ);
        _exit(1);
    }
    return wrong || waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 8 ? 1 : 16;
}

/* counts its own instructions (where it may), by a fixed counter */
static int counts(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE, .size = sizeof attr, .config = PERF_COUNT_HW_INSTRUCTIONS,
                                   .exclude_kernel = 1, .exclude_hv = 1};
    const int event = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    uint64_t before = 0, after = 0;
    if (event < 0 || read(event, &before, sizeof before) != sizeof before)
        return 1;
    work(UNITS);
    if (read(event, &after, sizeof after) != sizeof after)
        return 1;
    const uint64_t more = after - before - (uint64_t)UNITS * UNIT;
    return more < UNIT ? 17 : 1;
}

/* may write no file any more (landlock), where the kernel has that */
static int may_write_nothing(void)
{
    const struct { uint64_t handled; } rules = {1 << 1 /* LANDLOCK_ACCESS_FS_WRITE_FILE */};
    const int set = syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || (set >= 0 && syscall(SYS_landlock_restrict_self, set, 0)))
        return 1;
    threads(2, UNITS / 2);
    return 18;
}

/* half of the work on either of two CPUs */
static void on_cpu(const char *number)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(number), &set);
    if (sched_setaffinity(0, sizeof set, &set))
        _exit(1);
}
static int migrates(void)
{
    on_cpu(given[0]);
    work(UNITS / 2);
    on_cpu(given[1]);
    work(UNITS / 2);
    return 11;
}

/* half of the work in another program */
static int calls(void)
{
    work(UNITS / 2);
    if (fork() == 0) {
        execl(given[0], given[0], "half", (char *)NULL);
        _exit(1);
    }
    wait(NULL);
    return 12;
}

/* CALLS short programs, beside as much work of its own; before them, with a second argument, a process for which nobody waits */
static int unit(void) { work(1); return 20; }
static int calls_often(void)
{
    if (given[1] && fork() == 0) {
        if (fork() == 0) {
            while (getppid() != 1)
                usleep(100);
            work(CALLS);
        }
        _exit(0);
    }
    while (wait(NULL) > 0) {}
    for (int k = 0; k < CALLS; k++) {
        work(1);
        if (fork() == 0) {
            execl(given[0], given[0], "unit", (char *)NULL);
            _exit(1);
        }
        wait(NULL);
    }
    if (given[1])
        usleep(1000 * CALLS); /* (so long the process of its own may take) */
    return 19;
}

/* Turns of a known number of instructions, which are counted in a file that others map, until somebody kills all of it: a child, threads,
 * and now and then a sleep. */
static void *tally(void *of)
{
    uint64_t *const turns = of;
    vm_mix_set(MIX, 0, 0, 0);
    for (;;) {
        uint64_t many = 300, spins;
        __asm__ volatile("1: mov %3, %1\n\t2: dec %1\n\tjnz 2b\n\tincq %2\n\tdec %0\n\tjnz 1b"
                         : "+r"(many), "=&r"(spins), "+m"(*turns) : "i"((TURN - 4) / 2) : "cc");
        usleep(100);
    }
    return NULL;
}
static int tallies(void)
{
    const int file = open(given[0], O_RDWR);
    struct tally *const all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    pthread_t thread;
    if (all == MAP_FAILED || setpgid(0, 0))
        return 1;
    all->group = getpid();
    const int child = fork() == 0;
    pthread_create(&thread, NULL, tally, (void *)&all->turns[2 * child]);
    tally((void *)&all->turns[2 * child + 1]);
    return 1;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*program)(void);
    } all[] = {
        {"plain", plain}, {"threads", many_threads}, {"sleeps", sleeps}, {"children", children}, {"killed", killed},
        {"crashes", crashes}, {"closes all", closes_all}, {"leaves at once", leaves_at_once}, {"clones", clones},
        {"execs", execs}, {"execs in a sandbox", execs_in_a_sandbox}, {"half", half}, {"sandboxed", sandboxed}, {"leaves a daemon", leaves_a_daemon},
        {"waits for a daemon", waits_for_a_daemon}, {"migrates", migrates}, {"regions", regions}, {"calls", calls},
        {"tallies", tallies}, {"thread storm", thread_storm}, {"fork storm", fork_storm}, {"chain", chain}, {"spawns", spawns},
        {"counts", counts}, {"unit", unit}, {"calls often", calls_often}, {"may write nothing", may_write_nothing},
    };
    self = argv[0];
    given = argv + 2;
    for (size_t k = 0; argc > 1 && k < sizeof all / sizeof *all; k++) {
        if (strcmp(argv[1], all[k].name) == 0)
            return all[k].program();
    }
    return 125;
}
