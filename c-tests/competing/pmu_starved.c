/* A competing group that is never rotated away starves a handle on registers: it cannot be opened, one that is open says TD_ENOTCOUNTING
 * or how little it ran, and nothing waits for that group to end. After it the totals go on. Groups of all kinds, one at a
 * time, that come and go at random: what the handle says of each stretch, and of the whole, holds; so does what one by default says,
 * which goes over to other counters. */
#include "competing.h"

enum { REGION = 1000000, ROTATION = 5 * REGION };
static int cpu;

static void cannot_open(uint32_t flags)
{
    const struct td_options options = options_of(flags, 0);
    td_t *none = NULL;
    const uint64_t begun = thread_ns();
    CHECK_EQ(td_open(&none, &options), TD_ENOTCOUNTING);
    CHECK(thread_ns() - begun < 100000000u);
    CHECK(none == NULL);
    CHECK(last_error_with("pinned or system-wide"));
}

/* what has become free the kernel gives to those that wait for it only at the next rotation */
static void comes_back(void)
{
    work(2 * ROTATION);
}

static void starves(uint32_t flags)
{
    const struct td_options options = options_of(flags, 0);
    td_t *td = measured(&options);
    const double width = info_of(td).slots_per_cycle;
    struct td_sample before, after;
    struct td_l1 l1;
    for (int pid = -1; pid <= 0; pid++) { /* on the CPU, in this thread */
        td_must(td_reset(td));
        l1 = regions(td, 4, REGION);
        CHECK_NEAR(l1.running, 1, 0.01);
        td_must(td_read(td, &before));
        struct perf_group group = competing_group(pid, pid < 0 ? cpu : -1, 1);
        cannot_open(flags);
        td_must(td_read(td, &after));
        l1 = regions(td, 8, REGION);
        CHECK_NEAR(l1.running, 0, 0.02);
        group_ends(&group);
        td_must(td_read(td, &after));
        comes_back();
        /* what was counted before the group is all there, and of its time next to nothing */
        CHECK(after.slots - before.slots < 100000u * width);
        CHECK_NEAR((double)after.slots, 4 * REGION * width, 0.03 * 4 * REGION * width);
        l1 = regions(td, 4, REGION);
        CHECK_NEAR(l1.running, 1, 0.02);
        CHECK_NEAR((double)l1.slots, 4 * REGION * width, 0.03 * 4 * REGION * width);
    }
    td_close(td);
}

enum { NONE, PINNED_ON_CPU, PINNED, ON_CPU, IN_THREAD, KINDS };

static void come_and_go(uint32_t flags, uint64_t *seed)
{
    const struct td_options options = options_of(flags, 0);
    td_t *td = measured(&options);
    const double width = info_of(td).slots_per_cycle;
    struct td_sample first, before, now;
    struct truth all;
    struct td_l1 l1;
    struct perf_group group = {{0}, 0};
    double worked = 0, alone = 0, shared = 0, others = 0;
    int kind = NONE;
    memset(&all, 0, sizeof all);
    td_must(td_read(td, &first));
    now = first;
    for (int i = 0; i < 100; i++) {
        const uint64_t instructions = 50000 + next_random(seed) % (i % 2 ? 100000 : 4000000);
        const struct vm_mix mix = MIXES[next_random(seed) % 4];
        if (next_random(seed) % 3 == 0) {
            group_ends(&group);
            others += kind != NONE;
            kind = (int)(next_random(seed) % KINDS);
            if (kind != NONE)
                group = kind == PINNED || kind == IN_THREAD ? competing_group(0, -1, kind == PINNED)
                                                            : competing_group(-1, cpu, kind == PINNED_ON_CPU);
        }
        mix_is(mix);
        td_must(td_read(td, &before));
        goes_on(&now, &before);
        work(instructions);
        td_must(td_read(td, &now));
        goes_on(&before, &now);
        if (td_decode_l1(&before, &now, &l1) == 0)
            l1_is(&l1, mix, 1);
        add_truth(&all, mix, (double)instructions);
        worked += (double)instructions;
        alone += kind == NONE ? (double)instructions : 0;
        shared += kind == IN_THREAD ? (double)instructions : 0;
    }
    group_ends(&group);
    l1 = whole_is(&first, &now, &all, worked, 0.02);
    printf("running %.3f; alone %.3f, in rotation with another group %.3f of the time\n", l1.running, alone / worked, shared / worked);
    CHECK(l1.running > (alone - others * ROTATION) / worked - 0.06); /* opening a group takes its time, in the kernel */
    CHECK(l1.running < (flags & TD_FLAG_REGISTERS ? (alone + shared) / worked + 0.06 : 1.0001));
    CHECK_NEAR((double)l1.slots / width / worked, l1.running, 0.08);
    comes_back();
    l1 = regions(td, 4, REGION);
    CHECK_NEAR(l1.running, 1, 0.02);
    td_close(td);
}

int main(int argc, char **argv)
{
    uint64_t seed = seed_of(argc, argv);
    cpu = stay_on_a_cpu();
    td_close(measured(NULL));
    needs_known_mix();
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    starves(TD_FLAG_REGISTERS);
    starves(TD_FLAG_REGISTERS | TD_FLAG_NO_RDPMC);
    for (int i = 0; i < 8; i++)
        come_and_go((i % 2 ? TD_FLAG_NO_RDPMC : 0) | (i < 4 ? TD_FLAG_REGISTERS : 0), &seed);
    return 0;
}
