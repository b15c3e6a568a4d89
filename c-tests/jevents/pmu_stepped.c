/* A debugger that steps through rdpmc_read instruction by instruction sees it return: each stop takes the event off its
 * counter and puts it back, so the control page never is the same before and behind RDPMC. */
#include <rdpmc.h>

#include "counters.h"
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

enum { MOST = 20000 };

int main(void)
{
    struct perf_event_attr attr = attr_of(PERF_TYPE_RAW, INSTRUCTIONS);
    int status, steps = 0;
    needs_known_counts();
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        struct rdpmc_ctx ctx;
        CHECK_EQ(ptrace(PTRACE_TRACEME, 0, NULL, NULL), 0);
        CHECK_EQ(rdpmc_open_attr(&attr, &ctx, NULL), 0);
        rdpmc_read(&ctx); /* what the linker does first is done */
        raise(SIGSTOP);   /* the parent steps from here */
        const uint64_t before = rdpmc_read(&ctx), after = rdpmc_read(&ctx);
        kill(getpid(), SIGUSR1);
        CHECK(after > before && after - before < MOST);
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    do {
        if (steps++ == MOST) {
            kill(child, SIGKILL);
            FAIL("two readings take more than %d instructions", MOST);
        }
        CHECK_EQ(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFSTOPPED(status));
    } while (WSTOPSIG(status) == SIGTRAP);
    CHECK_EQ(WSTOPSIG(status), SIGUSR1);
    CHECK_EQ(ptrace(PTRACE_CONT, child, NULL, NULL), 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    printf("%d steps\n", steps);
    return 0;
}
