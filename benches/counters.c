/* What a reading costs where general counters alone are read, as on AMD's cores and Arm's: nanoseconds of the monotonic clock,
 * which on the emulated machine are instructions. Those of a call of a function that does nothing are taken off. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <topdown.h>
#include <topdown_inline.h>

enum { CALLS = 200, ROUNDS = 50 };

static td_t *td;
static struct td_sample sample, earlier;
static struct td_mark mark;
static struct td_sum sum;
static struct td_l1 l1;
static struct td_l2 l2;
static struct td_node nodes[64];
static struct td_options options;

static __attribute__((noinline)) void nothing(void) { __asm__ volatile(""); }
static __attribute__((noinline)) void a_read(void) { td_read(td, &sample); }
static __attribute__((noinline)) void a_mark(void) { td_read_mark(td, &mark); }
static __attribute__((noinline)) void a_reset(void) { td_reset(td); }
static __attribute__((noinline)) void decode_l1(void) { td_decode_l1(&earlier, &sample, &l1); }
static __attribute__((noinline)) void decode_l2(void) { td_decode_l2(&earlier, &sample, &l2); }
static __attribute__((noinline)) void decode_tree(void)
{
    uint32_t count;
    td_decode_tree(&earlier, &sample, nodes, sizeof nodes / sizeof *nodes, &count);
}
static __attribute__((noinline)) void open_and_close(void)
{
    td_t *other;
    if (td_open(&other, &options) == 0)
        td_close(other);
}
static __attribute__((noinline)) void sum_pair(void)
{
    td_sum_begin(td, &sum);
    td_sum_end(td, &sum);
}

static td_turns_t *turns;
static __attribute__((noinline)) void turns_pair(void)
{
    td_turns_begin(turns);
    td_turns_end(turns);
}
/* Some 0.1 ms. */
static __attribute__((noinline)) void work(void)
{
    for (int k = 0; k < 50000; k++)
        __asm__ volatile("");
}
static __attribute__((noinline)) void turns_and_work(void)
{
    td_turns_begin(turns);
    work();
    td_turns_end(turns);
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The least of many rounds: what a call costs when nothing interrupts. */
static double of_calls(void (*what)(void), int rounds, int calls)
{
    double least = 1e18;
    for (int round = 0; round < rounds; round++) {
        const double begun = now_ns();
        for (int k = 0; k < calls; k++)
            what();
        const double took = (now_ns() - begun) / calls;
        least = took < least ? took : least;
    }
    return least;
}

static void row(const char *what, void (*call)(void))
{
    printf("| %s | %.0f |\n", what, of_calls(call, ROUNDS, CALLS) - of_calls(nothing, ROUNDS, CALLS));
}

static int opens(void)
{
    char why[1000];
    const int code = td_open(&td, &options);
    if (code == 0)
        return 1;
    td_last_error(why, sizeof why);
    fprintf(stderr, "counters: %s\n", why);
    return 0;
}

int main(void)
{
    struct td_info info;
    options.size = sizeof options;
    if (!opens())
        return 77;
    td_get_info(td, &info);
    printf("%s, level %u, %u counters, %s\n\n| | instructions |\n|---|---|\n", info.core, info.level, info.counters,
           info.path == TD_PATH_READ ? "by read(2)" : "in user space");
    td_read(td, &earlier);
    row("`td_read_mark`, inlined", a_mark);
    row("`td_read`", a_read);
    row("`td_sum_begin` and `td_sum_end`, each measured", sum_pair);
    row("`td_decode_l1`", decode_l1);
    if (info.level > 1)
        row("`td_decode_l2`", decode_l2);
    row("`td_decode_tree`", decode_tree);
    row("`td_reset`", a_reset);
    td_close(td);
    printf("| `td_open` and `td_close` | %.0f |\n", of_calls(open_and_close, 10, 1));
    if (td_turns_open(&turns, &options, TD_TURNS_DRILL) == 0) {
        row("`td_turns_begin` and `td_turns_end`, within a turn", turns_pair);
        /* (as long as several turns, and all that begin in it) */
        const double took = of_calls(turns_and_work, 1, 20000), alone = of_calls(work, ROUNDS, CALLS);
        printf("| the same of regions of %.0f instructions, drilled for 20,000 of them, with all ends of turns | %.0f |\n", alone, took - alone);
        td_turns_close(turns);
    }
    options.flags = TD_FLAG_NO_RDPMC;
    if (!opens())
        return 77;
    row("`td_read` by read(2) (`TD_FLAG_NO_RDPMC`)", a_read);
    td_close(td);
    return 0;
}
