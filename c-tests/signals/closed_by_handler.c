/* A signal handler that comes between any two instructions of a call on a handle closes the handle and returns: the call ends, with
 * -EBADF if it found that; each later one does; nothing stays open, and memory that was given back is not used. */
#include "check.h"
#include <signal.h>
#include <topdown_inline.h>
#include <ucontext.h>
#ifndef OPEN
#define OPEN() simulated(0) /* pmu_closed_by_handler.c has another */
#define MOST 3000           /* instructions */
#endif

enum { TRAP_FLAG = 0x100 };
static td_t *td;
static long left; /* instructions until the handle is closed */

/* What was given back is somebody else's at once. */
static void take_memory(void)
{
    enum { BLOCKS = 128 };
    static unsigned char *blocks[BLOCKS];
    for (size_t k = 0; k < BLOCKS; k++) {
        blocks[k] = malloc(16 * (k + 1));
        CHECK(blocks[k] != NULL);
        memset(blocks[k], 0xa5, 16 * (k + 1));
    }
    for (size_t k = 0; k < BLOCKS; k++)
        free(blocks[k]);
}

static void step(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    if (left-- > 0)
        return;
    if (td != NULL) {
        td_t *const closed = td;
        td = NULL;
        td_close(closed);
        take_memory();
    }
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static void set_trap_flag(int on)
{
    unsigned long flags = __builtin_ia32_readeflags_u64();
    __builtin_ia32_writeeflags_u64(on ? flags | TRAP_FLAG : flags & ~(unsigned long)TRAP_FLAG);
}

static struct td_sample sample;
static struct td_mark mark;
static struct td_sum sum;
static int reading(td_t *of) { return td_read(of, &sample); }
static int marking(td_t *of) { return td_read_mark(of, &mark); }
static int beginning(td_t *of) { return td_sum_begin(of, &sum); }
static int ending(td_t *of) { return td_sum_end(of, &sum); }
static int (*const CALLS[])(td_t *) = {reading, td_reset, marking, beginning, ending};
static const char *const NAMES[] = {"td_read", "td_reset", "td_read_mark", "td_sum_begin", "td_sum_end"};

/* Whether the call had not ended yet when the handle was to be closed. */
static int closed_after(size_t call, long instructions)
{
    struct td_sample later;
    td_t *const of = td = OPEN();
    memset(&sum, 0, sizeof sum);
    td_must(td_read(of, &sample));
    td_must(td_sum_begin(of, &sum));
    if (CALLS[call] != ending)
        td_must(td_sum_end(of, &sum));
    left = instructions;
    set_trap_flag(1);
    const int code = CALLS[call](of);
    set_trap_flag(0);
    const int within = td == NULL;
    if (!within) {
        td_must(code);
        td_close(of);
        td = NULL;
    } else if (code != 0 && code != -EBADF) {
        td_must(code);
    }
    CHECK_EQ(td_read(of, &later), -EBADF);
    CHECK_EQ(td_reset(of), -EBADF);
    return within;
}

int main(int argc, char **argv)
{
    uint64_t seed = seed_of(argc, argv);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = step;
    action.sa_flags = SA_SIGINFO;
    CHECK_EQ(sigaction(SIGTRAP, &action, NULL), 0);
    printf("seed %llu\n", (unsigned long long)seed);
    for (size_t call = 0; call < sizeof CALLS / sizeof CALLS[0]; call++) {
        long most = 0;
        for (long k = 0; k < MOST; k += 1 + (k < 100 ? 0 : (long)(next_random(&seed) % (uint64_t)(k / 8)))) {
            if (!closed_after(call, k))
                break;
            most = k;
        }
        printf("%s: closed after up to %ld instructions\n", NAMES[call], most);
        CHECK(most > 10);
        CHECK_EQ(perf_descriptors(), 0);
    }
    return 0;
}
