/* stepped.h: a stretch of a program that a debugger steps through, an instruction at a time. At each stop the kernel takes the
 * counters away and gives them back, so a reader that waits for a moment without that waits for ever. */
#ifndef STEPPED_H
#define STEPPED_H
#include "expect.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* shared by the child and who steps it */
static volatile int *step_done;

static inline void step_from_here(void) { CHECK_EQ(raise(SIGSTOP), 0); }
static inline void step_to_here(void) { *step_done = 1; }

/* Runs `stretches` in a child, which calls step_from_here and step_to_here as often as it likes, each time in this order.
 * Fails if one takes more than `limit` instructions, or if the child does not end well. Returns the instructions of the longest. */
static inline long stepped(void (*stretches)(void), long limit)
{
    int status = -1;
    long longest = 0;
    step_done = (volatile int *)mmap(NULL, sizeof *step_done, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(step_done != MAP_FAILED);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK_EQ(ptrace(PTRACE_TRACEME, 0, NULL, NULL), 0);
        stretches();
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP) {
        long steps = 0;
        for (*step_done = 0; !*step_done && steps < limit; steps++) {
            CHECK_EQ(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
            CHECK_EQ(waitpid(child, &status, 0), child);
            if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
                FAIL("the child came to an end after %ld steps: status %#x", steps, (unsigned)status);
        }
        if (!*step_done) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            FAIL("no end within %ld instructions", limit);
        }
        longest = steps > longest ? steps : longest;
        CHECK_EQ(ptrace(PTRACE_CONT, child, NULL, NULL), 0);
        CHECK_EQ(waitpid(child, &status, 0), child);
    }
    CHECK_EQ(status, 0);
    return longest;
}
#endif
