/* The handler of SIGSEGV that comes with RDPMC lets a program's own faults end as they would without it: each kind of
 * previous action, each kind of SIGSEGV. */
#include "pmu.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static sigjmp_buf back;
static volatile sig_atomic_t code, arrived, masked;
static char *nowhere;

static void with_information(int signal, siginfo_t *information, void *context)
{
    sigset_t mask;
    CHECK(signal == SIGSEGV && context != NULL);
    code = information->si_code;
    arrived++;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    masked = sigismember(&mask, SIGUSR1);
    if (code == SEGV_MAPERR || code == SEGV_ACCERR) {
        CHECK(information->si_addr == (void *)nowhere);
        siglongjmp(back, 1);
    }
}

static void plain(int signal)
{
    CHECK_EQ(signal, SIGSEGV);
    arrived++;
    siglongjmp(back, 1);
}

static void action_is(void (*handler)(int), void (*informed)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    if (informed != NULL)
        action.sa_sigaction = informed;
    else
        action.sa_handler = handler;
    action.sa_flags = flags | (informed != NULL ? SA_SIGINFO : 0);
    sigaddset(&action.sa_mask, SIGUSR1);
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
}

static void fault(void) { *(volatile char *)nowhere = 1; }
static void general_protection(void)
{
#if defined(__x86_64__)
    const uint64_t not_canonical = (uint64_t)1 << 62;
    __asm__ volatile("movb $1, (%0)" : : "r"(not_canonical) : "memory");
#else
    fault();
#endif
}
static void send(void) { CHECK_EQ(kill(getpid(), SIGSEGV), 0); }
static void throw(void) { CHECK_EQ(raise(SIGSEGV), 0); }

/* what becomes of a child that opens a handle under this action and then does this: its wait status */
static int end_of(void (*before)(void), void (*deed)(void))
{
    int status = -1;
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        before();
        td_t *td = measured(NULL);
        deed();
        td_close(td);
        _exit(7);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return status;
}

static void nothing(void) {}
static void by_default(void) { action_is(SIG_DFL, NULL, 0); }
static void ignored(void) { action_is(SIG_IGN, NULL, 0); }
static void handled(void) { action_is(NULL, with_information, 0); }
static void handled_plainly(void) { action_is(plain, NULL, SA_NODEFER); }
static void handled_once(void) { action_is(NULL, with_information, SA_RESETHAND); }

/* in the child, under a handler */
static void recovers(void)
{
    for (int i = 1; i <= 3; i++) {
        if (sigsetjmp(back, 1) == 0)
            fault();
        CHECK_EQ(arrived, i);
    }
    send();
    while (arrived < 4)
        work(100);
    CHECK_EQ(code, SI_USER);
    CHECK_EQ(masked, 1);
}

static void recovers_plainly(void)
{
    if (sigsetjmp(back, 0) == 0)
        general_protection();
    CHECK_EQ(arrived, 1);
    if (sigsetjmp(back, 0) == 0)
        fault();
    CHECK_EQ(arrived, 2);
}

static void twice(void)
{
    send();
    while (arrived < 1)
        work(100);
    send();
}

static int killed_by_segv(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV; }
static int ended_well(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 7; }

int main(void)
{
    void (*const deeds[])(void) = {fault, general_protection, send, throw};
    nowhere = (char *)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(nowhere != MAP_FAILED);
    const int can = end_of(nothing, nothing); /* not here: what opens first installs the handler */
    if (WIFEXITED(can) && WEXITSTATUS(can) == 77)
        SKIP("no counters to open");
    CHECK(ended_well(can));
    for (int i = 0; i < 4; i++)
        CHECK(killed_by_segv(end_of(by_default, deeds[i])));
    CHECK(killed_by_segv(end_of(ignored, fault)));
    CHECK(killed_by_segv(end_of(ignored, general_protection)));
    CHECK(ended_well(end_of(ignored, send)));
    CHECK(ended_well(end_of(handled, recovers)));
    CHECK(ended_well(end_of(handled_plainly, recovers_plainly)));
    CHECK(killed_by_segv(end_of(handled_once, twice)));
    return 0;
}
