/* competing.h: competing groups, which know nothing of the library, and what a handle has to say beside them. */
#ifndef COMPETING_H
#define COMPETING_H
#include "perf.h"
#include "pmu.h"
#include "levels.h"

/* An event that nothing rotates away, of the P-cores of a hybrid CPU. */
static inline struct perf_event_attr pinned_event(uint64_t config)
{
    struct perf_event_attr attr = event_of(PERF_TYPE_RAW, config);
    attr.pinned = 1;
    return attr;
}

/* A group of SLOTS and the level 1 metric events that counts from now on: of a thread (0: this one), or with pid -1 of a
 * CPU. Pinned, it is never rotated away. */
static inline struct perf_group competing_group(pid_t pid, int cpu, int pinned)
{
    struct perf_group group = {{0}, 0};
    add_topdown(&group, pinned ? pinned_event(SLOTS_EVENT) : event_of(PERF_TYPE_RAW, SLOTS_EVENT), 1, pid, cpu);
    group_runs(&group);
    return group;
}

/* a CPU that has the counters; this thread runs there from now on */
static inline int stay_on_a_cpu(void)
{
    const int cpu = p_core() < 0 ? 0 : p_core();
    move_to(0, cpu);
    return cpu;
}

static inline uint64_t thread_ns(void)
{
    struct timespec now;
    CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What `shares` should be, times `weight`: what ran in all, counted or not. */
static inline void add_truth(struct truth *sum, struct vm_mix mix, double weight)
{
    const struct truth truth = truth_of(mix);
    for (int k = 0; k < 4; k++)
        sum->l1[k] += truth.l1[k] * weight;
    for (int k = 0; k < 8; k++)
        sum->l2[k] += truth.l2[k] * weight;
}

/* Between these samples ran so much of each mix, and `slack` of unknown mix: both levels are within their bound. */
static inline struct td_l1 whole_is(const struct td_sample *from, const struct td_sample *to, const struct truth *sum,
                                    double weight, double slack)
{
    double share[8];
    struct td_l1 l1;
    struct td_l2 l2;
    td_must(td_decode_l1(from, to, &l1));
    l1_array(&l1, share);
    for (int k = 0; k < 4; k++)
        CHECK_NEAR(share[k], sum->l1[k] / weight, l1.error + slack);
    if (has_level_2(from, to)) {
        td_must(td_decode_l2(from, to, &l2));
        CHECK_NEAR(l2.running, l1.running, 1e-9);
        l2_array(&l2, share);
        for (int k = 0; k < 8; k++)
            CHECK_NEAR(share[k], sum->l2[k] / weight, l2.error + slack);
    }
    return l1;
}

static inline void goes_on(const struct td_sample *last, const struct td_sample *now)
{
    CHECK(now->slots >= last->slots);
    CHECK(now->time_enabled_ns >= last->time_enabled_ns);
    CHECK(now->time_running_ns >= last->time_running_ns);
    CHECK(now->time_running_ns <= now->time_enabled_ns);
}

/* So many regions, a multiple of four, of mixes in turn. Each is within its bound at both levels, or says that nothing was
 * counted; totals and times go on. Returns what the whole says, whose `running` is 0 if nothing was counted. */
static inline struct td_l1 regions(td_t *td, int count, uint64_t instructions)
{
    struct td_sample first, before, now;
    struct truth all;
    struct td_l1 l1;
    struct td_l2 l2;
    memset(&all, 0, sizeof all);
    td_must(td_read(td, &first));
    now = first;
    for (int i = 0; i < count; i++) {
        mix_is(MIXES[i % 4]);
        td_must(td_read(td, &before));
        goes_on(&now, &before);
        work(instructions);
        td_must(td_read(td, &now));
        goes_on(&before, &now);
        const int code = td_decode_l1(&before, &now, &l1);
        if (code == 0) {
            l1_is(&l1, MIXES[i % 4], l1.error);
            CHECK(l1.running >= 0 && l1.running <= 1);
        } else {
            CHECK_EQ(code, TD_ENOTCOUNTING);
            CHECK(last_error_with("others hold the counters"));
        }
        if (code == 0 && has_level_2(&before, &now)) {
            td_must(td_decode_l2(&before, &now, &l2));
            l2_is(&l2, MIXES[i % 4], l2.error);
        }
        add_truth(&all, MIXES[i % 4], 1);
    }
    memset(&l1, 0, sizeof l1);
    return now.slots == first.slots ? l1 : whole_is(&first, &now, &all, count, 10000.0 / (double)instructions);
}
#endif
