/* A debugger steps through readings, an instruction at a time: each of them ends, and what it says is right. */
#include "pmu.h"
#include "stepped.h"
#include <topdown_inline.h>

enum { LIMIT = 60000, REGION = 2000000 };
static uint32_t flags;
static int may_say_nothing; /* readings by read(2) */

/* Within the bound. (Each stop makes the kernel save and restore the registers, which rounds them once more: where readings are
 * stepped through, the bound may say that nothing is known. By read(2) a switch right after it may leave numbers of another
 * thread: they are left out, which may be all.) */
static void is_right(int code, const struct td_l1 *l1)
{
    if (code == TD_ENOTCOUNTING && may_say_nothing)
        return;
    td_must(code);
    l1_is(l1, MIXES[1], 1);
}

static td_t *ready(void)
{
    struct td_options options = options_of(flags, 0);
    struct td_sample sample;
    td_t *td = measured(&options);
    mix_is(MIXES[1]);
    work(REGION);
    td_must(td_read(td, &sample));
    may_say_nothing = flags & TD_FLAG_NO_RDPMC;
    return td;
}

static void reading(void)
{
    struct td_sample before, after;
    struct td_l1 l1;
    td_t *td = ready();
    const uint64_t width = info_of(td).slots_per_cycle;
    step_from_here();
    const int first = td_read(td, &before);
    step_to_here();
    td_must(first);
    work(REGION);
    step_from_here();
    const int second = td_read(td, &after);
    step_to_here();
    td_must(second);
    CHECK(may_say_nothing || after.slots - before.slots >= REGION * width);
    is_right(td_decode_l1(&before, &after, &l1), &l1);
    /* as ever, without the debugger */
    td_must(td_read(td, &before));
    work(REGION);
    td_must(td_read(td, &after));
    td_must(td_decode_l1(&before, &after, &l1));
    l1_is(&l1, MIXES[1], 1);
    CHECK(l1.error < 0.02 || flags & TD_FLAG_NO_RDPMC);
}

static void marks(void)
{
    struct td_mark a, b;
    struct td_sample before, after;
    struct td_l1 l1;
    td_t *td = ready();
    step_from_here();
    const int first = td_read_mark(td, &a);
    step_to_here();
    td_must(first);
    work(REGION);
    step_from_here();
    const int second = td_read_mark(td, &b);
    step_to_here();
    td_must(second);
    step_from_here();
    const int third = td_mark_sample(td, &b, &after);
    step_to_here();
    td_must(third);
    td_must(td_mark_sample(td, &a, &before));
    is_right(td_decode_l1(&before, &after, &l1), &l1);
}

static void sums(void)
{
    struct td_sum sum;
    struct td_l1 l1;
    td_t *td = ready();
    memset(&sum, 0, sizeof sum);
    for (int i = 0; i < 3; i++) {
        step_from_here();
        const int begun = td_sum_begin(td, &sum);
        step_to_here();
        td_must(begun);
        work(REGION);
        step_from_here();
        const int ended = td_sum_end(td, &sum);
        step_to_here();
        td_must(ended);
    }
    is_right(td_sum_l1(&sum, &l1), &l1);
}

static void resets(void)
{
    struct td_sample after;
    struct td_l1 l1;
    td_t *td = ready();
    step_from_here();
    const int reset = td_reset(td);
    step_to_here();
    td_must(reset);
    work(REGION);
    td_must(td_read(td, &after));
    is_right(td_decode_l1(NULL, &after, &l1), &l1);
}

static void opens(void)
{
    struct td_options options = options_of(flags, 0);
    struct td_sample before, after;
    struct td_l1 l1;
    td_t *td = NULL;
    td_close(ready());
    step_from_here();
    const int code = td_open(&td, &options);
    step_to_here();
    td_must(code);
    CHECK_EQ(info_of(td).path, TD_PATH_RDPMC);
    td_must(td_read(td, &before));
    work(REGION);
    td_must(td_read(td, &after));
    is_right(td_decode_l1(&before, &after, &l1), &l1);
    CHECK(l1.error < 0.1 || may_say_nothing);
    step_from_here();
    td_close(td);
    step_to_here();
}

static volatile long traps;
static void on_trap(int signal) { CHECK_EQ(signal, SIGTRAP); if (++traps > LIMIT) FAIL("no end within %d instructions", LIMIT); }
static inline void trap_flag(int on)
{
    if (on)
        __asm__ volatile("sub $128, %%rsp\n\tpushf\n\torl $0x100, (%%rsp)\n\tpopf\n\tadd $128, %%rsp" : : : "memory", "cc");
    else
        __asm__ volatile("sub $128, %%rsp\n\tpushf\n\tandl $~0x100, (%%rsp)\n\tpopf\n\tadd $128, %%rsp" : : : "memory", "cc");
}

/* The program steps through itself: a handler of SIGTRAP runs after each instruction. */
static void by_itself(void)
{
    struct td_sample before, after;
    struct td_l1 l1;
    td_t *td = ready();
    CHECK(signal(SIGTRAP, on_trap) != SIG_ERR);
    trap_flag(1);
    const int first = td_read(td, &before);
    trap_flag(0);
    td_must(first);
    work(REGION);
    trap_flag(1);
    const int second = td_read(td, &after);
    trap_flag(0);
    td_must(second);
    CHECK(traps > 100);
    is_right(td_decode_l1(&before, &after, &l1), &l1);
    CHECK(l1.error < 0.1 || may_say_nothing);
    td_close(td);
}

int main(void)
{
    needs_known_mix();
    if (!pmu_there())
        SKIP("no topdown counters here");
    for (int by_read = 0; by_read < 2; by_read++) {
        flags = by_read ? TD_FLAG_NO_RDPMC : 0;
        /* (in the gate each once, by RDPMC or by read(2); td_open takes ten times as many steps as all others) */
        const int all = !in_gate();
        const long steps[] = {stepped(reading, LIMIT), all || by_read ? stepped(marks, LIMIT) : 0, all || !by_read ? stepped(sums, LIMIT) : 0,
                              all || by_read ? stepped(resets, LIMIT) : 0};
        const pid_t child = fork();
        if (child == 0) {
            by_itself();
            _exit(0);
        }
        child_is_well(child);
        printf("%ld steps through td_read, %ld through td_read_mark, %ld through a sum's ends, %ld through td_reset\n", steps[0],
               steps[1], steps[2], steps[3]);
        fflush(stdout);
    }
    flags = 0;
    if (!in_gate())
        printf("%ld through td_open\n", stepped(opens, 10 * LIMIT));
    return 0;
}
