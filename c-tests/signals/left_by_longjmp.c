/* A signal handler that leaves a call of the library by siglongjmp, as timeouts do: the handle works on, by whatever call it
 * was left and however often; td_close closes, from its owner, from the handler, and from another thread. */
#include "check.h"
#include <topdown_inline.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#ifndef OPEN
#define OPEN(td) open_simulated(td) /* pmu_left_by_longjmp.c has another */
#define DESCRIPTORS 0
#endif

enum { LEFT = 40 };
static sigjmp_buf back;
static td_t *td, *volatile closing;
static struct td_mark mark;
static struct td_sum sum;
static volatile sig_atomic_t armed, close_there;

#if DESCRIPTORS == 0
static int open_simulated(td_t **out)
{
    struct td_options options;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.flags = TD_FLAG_SIMULATE;
    return td_open(out, &options);
}
#endif

static void handler(int unused)
{
    (void)unused;
    if (!armed)
        return;
    armed = 0;
    if (close_there)
        td_close(td);
    siglongjmp(back, 1);
}

static void read_it(void)
{
    struct td_sample now;
    td_must(td_read(td, &now));
}

static void slots_only(void)
{
    td_must(td_sum_begin(td, &sum));
    td_must(td_sum_end(td, &sum));
}

static void sample_it(void)
{
    struct td_sample now;
    const int code = td_mark_sample(td, &mark, &now);
    CHECK(code == 0 || code == TD_ESTALE);
}

static void ask(void)
{
    struct td_info info;
    td_must(td_get_info(td, &info));
}

static void reset(void) { td_must(td_reset(td)); }

static void open_and_close(void)
{
    closing = td; /* not lost, wherever the handler comes */
    td = NULL;
    td_close(closing);
    CHECK_EQ(OPEN(&td), 0);
}

/* Calls until the handler leaves it, a random time from now. */
static void left(void (*call)(void), uint64_t *seed)
{
    struct itimerval once = {{0, 0}, {0, 1 + (long)(next_random(seed) % 40)}};
    if (sigsetjmp(back, 1) == 0) {
        armed = 1;
        CHECK_EQ(setitimer(ITIMER_REAL, &once, NULL), 0);
        for (;;)
            call();
    }
    td_close(closing); /* or again, which does nothing */
    closing = NULL;
}

/* The handle works as ever. */
static void works(void)
{
    struct td_sample before, after;
    struct td_l1 l1;
    td_must(td_read(td, &before));
    work(200000);
    td_must(td_read(td, &after));
    td_must(td_decode_l1(&before, &after, &l1));
    CHECK(after.slots > before.slots);
    CHECK(l1.error <= 1);
    ask();
    reset();
    td_must(td_read(td, &after));
    CHECK_EQ(td_decode_l1(&before, &after, &l1), TD_ESTALE);
}

static void *close_it(void *unused)
{
    td_close(td);
    return unused;
}

int main(int argc, char **argv)
{
    void (*const calls[])(void) = {reset, read_it, slots_only, sample_it, ask, open_and_close};
    struct sigaction action;
    uint64_t seed = seed_of(argc, argv);
    printf("seed %llu\n", (unsigned long long)seed);
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    sum.size = sizeof sum;
    for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++) {
        for (int ending = 0; ending < 3; ending++) {
#ifdef __SANITIZE_THREAD__ /* it takes each free in a handler for unsafe; what this one interrupts takes no memory */
            if (ending == 1)
                continue;
#endif
            CHECK_EQ(OPEN(&td), 0);
            CHECK_EQ(perf_descriptors() != 0, DESCRIPTORS != 0);
            for (int i = 0; i < LEFT; i++) {
                td_must(td_mark_read_slowly(td, &mark));
                left(calls[c], &seed);
                if (td == NULL) /* between td_close and td_open */
                    CHECK_EQ(OPEN(&td), 0);
                works();
            }
            close_there = ending == 1;
            left(calls[c], &seed);
            close_there = 0;
            if (ending == 0)
                td_close(td);
            else if (ending == 2)
                join_thread(start_thread(close_it, NULL));
            td = NULL;
            CHECK_EQ(perf_descriptors(), 0);
        }
    }
    return 0;
}
