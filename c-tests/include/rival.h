/* rival.h: others at the counters, who know nothing of the library, and what a handle has to say beside them. */
#ifndef RIVAL_H
#define RIVAL_H
#include "pmu.h"
#include <linux/perf_event.h>
#include <sys/ioctl.h>

struct rival {
    int fd[16], count;
};

static inline void rival_event_of(struct rival *rival, uint32_t pmu, uint64_t config, pid_t pid, int cpu, int leader, int pinned)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.type = pmu;
    attr.size = sizeof attr;
    attr.config = config;
    attr.disabled = leader < 0;
    attr.pinned = leader < 0 && pinned;
    const int fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, leader, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        FAIL("rival: perf_event_open of %#llx: %s", (unsigned long long)config, strerror(errno));
    rival->fd[rival->count++] = fd;
}

static inline void rival_event(struct rival *rival, uint64_t config, pid_t pid, int cpu, int leader, int pinned)
{
    rival_event_of(rival, PERF_TYPE_RAW, config, pid, cpu, leader, pinned); /* on a hybrid CPU, the P-cores */
}

static inline void rival_runs(struct rival *rival)
{
    for (int i = 0; i < rival->count; i++)
        CHECK_EQ(ioctl(rival->fd[i], PERF_EVENT_IOC_ENABLE, 0), 0);
}

/* A group of SLOTS and the level 1 metric events that counts from now on: of a thread (0: this one), or with pid -1 of a
 * CPU. Pinned, it is never rotated away. */
static inline struct rival rival_starts(pid_t pid, int cpu, int pinned)
{
    struct rival rival = {{0}, 0};
    rival_event(&rival, 0x400, pid, cpu, -1, pinned);
    for (uint64_t config = 0x8000; config <= 0x8300; config += 0x100)
        rival_event(&rival, config, pid, cpu, rival.fd[0], 0);
    rival_runs(&rival);
    return rival;
}

static inline void rival_ends(struct rival *rival)
{
    while (rival->count > 0)
        close(rival->fd[--rival->count]);
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
    if (to->base.level == 2) {
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
        if (code == 0 && now.base.level == 2) {
            td_must(td_decode_l2(&before, &now, &l2));
            l2_is(&l2, MIXES[i % 4], l2.error);
        }
        add_truth(&all, MIXES[i % 4], 1);
    }
    memset(&l1, 0, sizeof l1);
    return now.slots == first.slots ? l1 : whole_is(&first, &now, &all, count, 10000.0 / (double)instructions);
}
#endif
