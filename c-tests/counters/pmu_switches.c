/* Counters are switched with the thread, fifty thousand times, and lose nothing by it: the truth is within `error`, which has nothing
 * for switches. Of a thread that sleeps, in kernel mode, too, and inherited; of two that take turns on a CPU, each by itself, and
 * both as a whole, inherited.
 * needs: counters or general-counters */
#include "pmu.h"

enum { SWITCHES = 50000 };
static long most; /* or as the first argument says */
static int cpu;              /* all runs there */

/* As code divides that says nothing else, and all of the kernel's (set_phase in qemu-intel-pmu.patch). */
static const struct vm_mix USUAL = {26, 6, 13, 4, 12, 8, 10};

/* (turns are random, so that what they count is no whole number of any event, nor the same part of one each time) */
enum { TURN = 400, OTHER_TURN = 300 };
static uint64_t seed;
static long turn(long length) { return length + (long)(next_random(&seed) % 64); }

/* `exact`: besides, it is off by less than the time from one call to another. */
static void is_true(const char *what, const struct td_l1 *l1, struct vm_mix mix, int exact)
{
    const struct truth truth = truth_of(mix);
    double share[4], slots = (double)l1->slots;
    l1_array(l1, share);
    fprintf(stderr, "%s: %.0f slots, error %g; off by slots per switch:", what, slots, l1->error);
    for (int k = 0; k < 4; k++)
        fprintf(stderr, " %.4f", (share[k] - truth.l1[k]) * slots / (double)most);
    fprintf(stderr, "\n");
    l1_is(l1, mix, exact ? 256 / slots : 1);
    CHECK(l1->error < 0.01 && l1->running == 1);
}

static void sleeps(uint32_t flags, struct vm_mix mix)
{
    const struct timespec moment = {0, 1000};
    const struct td_options options = options_of(flags, 0);
    struct td_sample first, last;
    struct td_l1 l1;
    td_t *td = measured(&options);
    mix_is(mix);
    td_must(td_read(td, &first));
    for (long i = 0; i < most; i++) {
        work(turn(TURN));
        nanosleep(&moment, NULL);
    }
    td_must(td_read(td, &last));
    td_must(td_decode_l1(&first, &last, &l1));
    is_true(flags & TD_FLAG_KERNEL ? "sleeps, with the kernel" : flags & TD_FLAG_INHERIT ? "sleeps, inherited" : "sleeps", &l1, mix, 1);
    td_close(td);
}

static void turns(int in, int out, long length)
{
    char byte = 0;
    seed = (uint64_t)length;
    for (long i = 0; i < most / 2; i++) {
        CHECK(read(in, &byte, 1) == 1);
        work(turn(length));
        CHECK(write(out, &byte, 1) == 1);
    }
}

static void take_turns(int inherited, struct vm_mix mix)
{
    const struct td_options options = options_of(TD_FLAG_COUNTERS | (inherited ? TD_FLAG_INHERIT : 0), 0);
    struct td_sample first, last;
    struct td_l1 l1;
    int there[2], back[2];
    td_t *td = NULL;
    CHECK(pipe(there) == 0 && pipe(back) == 0);
    mix_is(mix);
    if (inherited) {
        td = measured(&options);
        td_must(td_read(td, &first));
    }
    const pid_t child = fork();
    CHECK(child >= 0);
    move_to(0, cpu);
    if (!inherited) {
        td = measured(&options);
        td_must(td_read(td, &first));
    }
    if (child == 0)
        turns(there[0], back[1], TURN);
    else {
        CHECK(write(there[1], "", 1) == 1);
        turns(back[0], there[1], OTHER_TURN);
    }
    if (child != 0 && inherited)
        child_is_well(child);
    if (child == 0 && inherited)
        _exit(0);
    td_must(td_read(td, &last));
    td_must(td_decode_l1(&first, &last, &l1));
    /* (parts of events, which only emulated counters have, go from one to the other) */
    is_true(inherited ? "both" : child ? "one of two" : "the other", &l1, mix, inherited);
    td_close(td);
    if (child == 0)
        _exit(0);
    if (!inherited)
        child_is_well(child);
}

int main(int argc, char **argv)
{
    most = argc > 1 ? atol(argv[1]) : repeats(SWITCHES);
    cpu = p_core() < 0 ? 0 : p_core();
    move_to(0, cpu);
    td_close(counted());
    needs_known_mix();
    sleeps(TD_FLAG_COUNTERS, MIXES[0]);
    sleeps(TD_FLAG_COUNTERS | TD_FLAG_INHERIT, MIXES[0]);
    sleeps(TD_FLAG_COUNTERS | TD_FLAG_KERNEL, USUAL);
    take_turns(0, MIXES[0]);
    take_turns(1, MIXES[0]);
    return 0;
}
