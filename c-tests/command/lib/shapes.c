/* shapes.c: programs of many shapes, whose slots all divide alike (MIX) but for those before main. `shapes NAME` is one of them; it
 * executes UNITS units of work in user mode, and little else. */
#define _GNU_SOURCE
#include "shapes.h"
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <topdown_region.h>

static const char *self;
static char **given; /* arguments */

static void work(int units)
{
    uint64_t turns = (uint64_t)units * UNIT / 2;
    vm_mix_set(MIX, 0, 0, 0);
    __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(turns) : : "cc");
}

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

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*program)(void);
    } all[] = {
        {"plain", plain}, {"threads", many_threads}, {"sleeps", sleeps}, {"children", children}, {"killed", killed},
        {"crashes", crashes}, {"closes all", closes_all}, {"leaves at once", leaves_at_once}, {"clones", clones},
        {"execs", execs}, {"half", half}, {"sandboxed", sandboxed}, {"leaves a daemon", leaves_a_daemon},
        {"waits for a daemon", waits_for_a_daemon}, {"migrates", migrates}, {"regions", regions}, {"calls", calls},
    };
    self = argv[0];
    given = argv + 2;
    for (size_t k = 0; argc > 1 && k < sizeof all / sizeof *all; k++) {
        if (strcmp(argv[1], all[k].name) == 0)
            return all[k].program();
    }
    return 125;
}
