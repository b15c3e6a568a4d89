/* A program's own faults and signals are with the library's handler of SIGSEGV what they are without: for each kind, and each
 * shape of handler, a child that has no handle is what one must be like that opened a handle after or before it installed its
 * handler. Compared are what the handler is given, where on the stack and under which mask it runs, what the thread
 * finds when it has recovered, and how the child ends. RDPMC is taken away meanwhile, so it faults, too. */
#include "pmu.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>

enum { PAGE = 4096, MOST = 4, SLOTS = 0x40000003 };

/* what happens */
enum way { JUMP, CALL, RETURN, READ, WRITE, MISALIGNED, OVERFLOW, RAISE, KILL, QUEUE, LIKE_THE_KERNEL };
static struct kind {
    const char *name;
    enum way way;
    uint64_t address;
} kinds[40];
static int count;

static void kind(const char *name, enum way way, uint64_t address)
{
    CHECK(count < 40);
    kinds[count++] = (struct kind){name, way, address};
}

/* (far from where the kernel places mappings by itself: there what is not mapped stays so) */
static char *pages(int protection)
{
    static char *next = (char *)(1ull << 40);
    char *at = (char *)mmap(next, PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(at == next);
    next += 4 * PAGE;
    return at;
}

/* code at the very end of a page behind which there is nothing */
static uint64_t code(const char *bytes, size_t size, int protection)
{
    char *at = pages(PROT_READ | PROT_WRITE);
    memcpy(at + PAGE - size, bytes, size);
    CHECK_EQ(mprotect(at, PAGE, protection), 0);
    return (uint64_t)(uintptr_t)(at + PAGE - size);
}

static void all_kinds(void)
{
    const uint64_t none = (uintptr_t)pages(PROT_NONE), data = (uintptr_t)pages(PROT_READ | PROT_WRITE);
    const uint64_t unmapped = (uintptr_t)pages(PROT_NONE), constant = (uintptr_t)pages(PROT_READ);
    const uint64_t wild[] = {0, 8, (uint64_t)1 << 62, ((uint64_t)1 << 47) + 1, none, unmapped, 0xffffffff81000000, 0xffffffffff600001};
    const char *const called[] = {"call of NULL", "call of 8", "call of a non-canonical address", "call of the first non-canonical address",
                                  "call of PROT_NONE", "call of what is not mapped", "call of the kernel", "call of the vsyscall page"};
    const char *const read[] = {"read of NULL", "read of 8", "read of a non-canonical address", "read of the first non-canonical address",
                                "read of PROT_NONE", "read of what is not mapped", "read of the kernel", "read of the vsyscall page"};
    CHECK_EQ(munmap((void *)(uintptr_t)unmapped, PAGE), 0);
    for (int i = 0; i < 8; i++) {
        kind(called[i], CALL, wild[i]);
        kind(read[i], READ, wild[i]);
    }
    kind("jump to a non-canonical address", JUMP, wild[2]);
    kind("return to a non-canonical address", RETURN, wild[2]);
    kind("return to NULL", RETURN, 0);
    kind("call of data", CALL, data);
    kind("write to NULL", WRITE, 0);
    kind("write to a non-canonical address", WRITE, wild[2]);
    kind("write to PROT_NONE", WRITE, none);
    kind("write to PROT_READ", WRITE, constant);
    kind("HLT", CALL, code("\xf4", 1, PROT_READ | PROT_EXEC));
    kind("HLT that cannot be read", CALL, code("\xf4", 1, PROT_EXEC));
    kind("RDPMC", CALL, code("\x0f\x33", 2, PROT_READ | PROT_EXEC));
    kind("RDPMC that cannot be read", CALL, code("\x0f\x33", 2, PROT_EXEC));
    kind("RDPMC before a NOP", CALL, code("\x0f\x33\x0f\x1f\x80", 5, PROT_READ | PROT_EXEC));
    kind("RDPMC of no counter", CALL, code("\x83\xc9\xff\x0f\x33", 5, PROT_READ | PROT_EXEC));
    kind("half an instruction", CALL, code("\x0f", 1, PROT_READ | PROT_EXEC));
    kind("UD2", CALL, code("\x0f\x0b", 2, PROT_READ | PROT_EXEC));
    kind("misaligned", MISALIGNED, data + 1);
    kind("stack overflow", OVERFLOW, 0);
    kind("raise", RAISE, 0);
    kind("kill", KILL, 0);
    kind("sigqueue", QUEUE, 0);
    kind("queued as the kernel's", LIKE_THE_KERNEL, 0);
}

/* What is done about it */
static const struct shape {
    const char *name;
    int flags;
    enum { DEFAULT, IGNORED, RECOVERS, SKIPS, RETURNS_TO_DEFAULT } does;
} shapes[] = {
    {"default", 0, DEFAULT},
    {"ignored", 0, IGNORED},
    {"plain", 0, RECOVERS},
    {"plain, SA_NODEFER", SA_NODEFER, RECOVERS},
    {"SA_SIGINFO", SA_SIGINFO, RECOVERS},
    {"SA_SIGINFO, SA_ONSTACK", SA_SIGINFO | SA_ONSTACK, RECOVERS},
    {"SA_ONSTACK", SA_ONSTACK, RECOVERS},
    {"SA_SIGINFO, SA_RESETHAND", SA_SIGINFO | SA_RESETHAND, RECOVERS},
    {"SA_SIGINFO that skips", SA_SIGINFO | SA_RESTART, SKIPS},
    {"SA_SIGINFO, SA_ONSTACK, SA_NODEFER that skips", SA_SIGINFO | SA_ONSTACK | SA_NODEFER, SKIPS},
    {"SA_SIGINFO that installs the default", SA_SIGINFO | SA_ONSTACK, RETURNS_TO_DEFAULT},
};
static const struct shape *shape;

/* What a child shows */
static struct seen {
    int arrived, recovered;
    struct arrival {
        uint64_t signal, code, address, trap, error, rip, rsp, was_blocked; /* with SA_SIGINFO */
        uint64_t frame, blocked, on_stack;
    } arrival[MOST];
    uint64_t blocked_after[MOST];
} *seen;

static sigjmp_buf back;
static volatile uint64_t resume_at, resume_stack;

static uint64_t blocked(void)
{
    uint64_t set = 0;
    CHECK_EQ(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &set, sizeof set), 0);
    return set;
}

static struct arrival *arrives(int signal, void *frame)
{
    stack_t stack;
    if (seen->arrived == MOST)
        _exit(8);
    struct arrival *arrival = &seen->arrival[seen->arrived++];
    arrival->signal = (uint64_t)signal;
    arrival->frame = (uintptr_t)frame;
    arrival->blocked = blocked();
    CHECK_EQ(sigaltstack(NULL, &stack), 0);
    arrival->on_stack = (uint64_t)stack.ss_flags;
    return arrival;
}

static void plain(int signal)
{
    arrives(signal, __builtin_frame_address(0));
    siglongjmp(back, 1);
}

static void informed(int signal, siginfo_t *information, void *context)
{
    ucontext_t *const interrupted = (ucontext_t *)context;
    greg_t *const registers = interrupted->uc_mcontext.gregs;
    struct arrival *const arrival = arrives(signal, __builtin_frame_address(0));
    const int sent = information->si_code <= 0;
    arrival->code = (uint64_t)(int64_t)information->si_code;
    arrival->address = sent ? (uint64_t)information->si_value.sival_int : (uintptr_t)information->si_addr;
    arrival->trap = sent ? 0 : (uint64_t)registers[REG_TRAPNO]; /* else of some earlier fault */
    arrival->error = sent ? 0 : (uint64_t)registers[REG_ERR];
    arrival->rip = (uint64_t)registers[REG_RIP];
    arrival->rsp = (uint64_t)registers[REG_RSP];
    memcpy(&arrival->was_blocked, &interrupted->uc_sigmask, sizeof arrival->was_blocked);
    if (shape->does == RECOVERS)
        siglongjmp(back, 1);
    if (shape->does == RETURNS_TO_DEFAULT) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        CHECK_EQ(sigaction(signal, &action, NULL), 0);
    }
    if (shape->does == SKIPS && resume_at != 0) {
        registers[REG_RIP] = (greg_t)resume_at;
        registers[REG_RSP] = (greg_t)resume_stack;
        registers[REG_EFL] &= ~(greg_t)(1 << 18);
    }
}

static void install(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    if (shape->does == DEFAULT)
        return;
    if (shape->does == IGNORED)
        action.sa_handler = SIG_IGN;
    else if (shape->flags & SA_SIGINFO)
        action.sa_sigaction = informed;
    else
        action.sa_handler = plain;
    action.sa_flags = shape->flags;
    sigaddset(&action.sa_mask, SIGUSR1);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(sigaction((const int[]){SIGSEGV, SIGBUS, SIGILL}[i], &action, NULL), 0);
}

/* RCX bears the number of SLOTS: who looks at a fault may take it for an RDPMC. */
#define STRIKE(instructions, ...)                                                                                                \
    __asm__ volatile("lea 1f(%%rip), %%rax\n\t"                                                                                  \
                     "mov %%rax, %[at]\n\t"                                                                                      \
                     "mov %%rsp, %[stack]\n\t"                                                                                   \
                     "sub $128, %%rsp\n\t" instructions "\n\tadd $128, %%rsp\n"                                                  \
                     "1:"                                                                                                        \
                     : [at] "=m"(resume_at), [stack] "=m"(resume_stack), "+c"(slots)                                             \
                     : [to] "r"(to)                                                                                              \
                     : "rax", "rdx", "memory", "cc")

static volatile char sink;
static __attribute__((noinline)) void overflow(int depth)
{
    volatile char frame[512];
    frame[0] = (char)depth;
    if (depth >= 0)
        overflow(depth + 1);
    sink = frame[0];
}

static __attribute__((noinline)) void strike(const struct kind *kind)
{
    const uint64_t to = kind->address;
    uint64_t slots = SLOTS;
    union sigval value;
    siginfo_t information;
    resume_at = 0;
    switch (kind->way) {
    case CALL: STRIKE("call *%[to]"); break;
    case JUMP: STRIKE("jmp *%[to]"); break;
    case RETURN: STRIKE("push %[to]\n\tret"); break;
    case READ: STRIKE("movb (%[to]), %%al"); break;
    case WRITE: STRIKE("movb $1, (%[to])"); break;
    case MISALIGNED: STRIKE("pushf\n\torl $0x40000, (%%rsp)\n\tpopf\n\tmov (%[to]), %%eax"); break;
    case OVERFLOW: overflow(0); break;
    case RAISE: CHECK_EQ(raise(SIGSEGV), 0); break;
    case KILL: CHECK_EQ(kill(getpid(), SIGSEGV), 0); break;
    case QUEUE: value.sival_int = 42; CHECK_EQ(sigqueue(getpid(), SIGSEGV, value), 0); break;
    case LIKE_THE_KERNEL:
        memset(&information, 0, sizeof information);
        information.si_signo = SIGSEGV;
        information.si_code = 0x80;
        CHECK_EQ(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGSEGV, &information), 0);
    }
}

enum when { NO_HANDLE, HANDLER_FIRST, HANDLE_FIRST };

static void child(const struct kind *kind, enum when when, int cpu)
{
    static char room[65536];
    const stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    static td_t *td;
    struct td_sample sample;
    CHECK_EQ(sigaltstack(&stack, NULL), 0);
    if (when == HANDLE_FIRST)
        td = measured(NULL);
    install();
    if (when == HANDLER_FIRST)
        td = measured(NULL);
    rdpmc_is(0);
    if (cpu >= 0)
        move_to(0, cpu);
    for (int i = 0; i < 3; i++) {
        if (sigsetjmp(back, shape->flags & SA_NODEFER ? 0 : 1) == 0)
            strike(kind);
        seen->blocked_after[i] = blocked();
        seen->recovered++;
    }
    if (p_core() >= 0)
        move_to(0, p_core());
    if (when == HANDLER_FIRST)
        CHECK_EQ(td_read(td, &sample), TD_ENORDPMC); /* the library's own RDPMC is still looked after */
    _exit(7);
}

static int end_of(const struct kind *kind, enum when when, int cpu)
{
    int status = -1;
    memset(seen, 0, sizeof *seen);
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        child(kind, when, cpu);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    rdpmc_is(1);
    if (WIFSIGNALED(status))
        unlink("core");
    return status;
}

/* in a process of its own: who opens first installs the handler */
static int can_open(void)
{
    int status = -1;
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        td_close(measured(NULL));
        _exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return status;
}

static int differences;

static void differ(const struct kind *kind, enum when when, const char *what, uint64_t is, uint64_t without)
{
    if (is != without && differences++ < 40)
        fprintf(stderr, "%s, %s, %s td_open: %s is %#llx, without the library %#llx\n", kind->name, shape->name,
                when == HANDLER_FIRST ? "before" : "after", what, (unsigned long long)is, (unsigned long long)without);
}

int main(void)
{
    const struct rlimit small = {65536, 65536};
    char directory[] = "/tmp/own-faults-XXXXXX";
    const int can = can_open();
    if (WIFEXITED(can) && WEXITSTATUS(can) == 77)
        SKIP("no counters to open");
    CHECK_EQ(can, 0);
    rdpmc_is(1);
    CHECK(mkdtemp(directory) != NULL && chdir(directory) == 0);
    CHECK_EQ(setrlimit(RLIMIT_CORE, &small), 0);
    seen = (struct seen *)mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(seen != MAP_FAILED);
    all_kinds();
    int ends[3] = {0, 0, 0};
    for (int k = 0; k < count; k++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int where = 0; where < (e_core() >= 0 ? 2 : 1); where++) {
                shape = &shapes[s];
                if (kinds[k].way == LIKE_THE_KERNEL && shape->does == IGNORED)
                    continue; /* the kernel itself would end the process for a fault that is ignored: docs/failures.md */
                const int cpu = where == 0 ? p_core() : e_core();
                const int without = end_of(&kinds[k], NO_HANDLE, cpu);
                const struct seen expected = *seen;
                ends[WIFSIGNALED(without) ? 0 : WEXITSTATUS(without) == 7 ? 1 : 2]++;
                for (int when = HANDLER_FIRST; when <= HANDLE_FIRST; when++) {
                    const enum when order = (enum when)when;
                    differ(&kinds[k], order, "the wait status", (uint64_t)end_of(&kinds[k], order, cpu), (uint64_t)without);
                    differ(&kinds[k], order, "the number of signals", (uint64_t)seen->arrived, (uint64_t)expected.arrived);
                    differ(&kinds[k], order, "how often it recovered", (uint64_t)seen->recovered, (uint64_t)expected.recovered);
                    for (int i = 0; i < MOST; i++) {
                        static const char *const names[] = {"signal", "si_code", "si_addr", "trap", "error code", "RIP", "RSP", "uc_sigmask",
                                                            "the handler's frame", "the handler's mask", "the handler's stack"};
                        uint64_t is[11], was[11];
                        memcpy(is, &seen->arrival[i], sizeof is);
                        memcpy(was, &expected.arrival[i], sizeof was);
                        for (int j = 0; j < 11; j++)
                            differ(&kinds[k], order, names[j], is[j], was[j]);
                        differ(&kinds[k], order, "the mask afterwards", seen->blocked_after[i], expected.blocked_after[i]);
                    }
                }
            }
    rmdir(directory);
    if (differences > 0)
        FAIL("%d differences", differences);
    /* the comparison was one of different ends */
    CHECK(ends[0] > 100 && ends[1] > 100);
    printf("%d killed, %d recovered, %d other\n", ends[0], ends[1], ends[2]);
    return 0;
}
