/* perf.h: perf events that a test opens itself. */
#ifndef PERF_H
#define PERF_H
#include "check.h"
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* configs of SLOTS and of the first metric event (the next are 0x100 apart); the numbers by which RDPMC reads the registers */
enum { SLOTS_EVENT = 0x400, METRIC_EVENT = 0x8000 };
#define RDPMC_SLOTS (1u << 30 | 3)
#define RDPMC_METRICS (1u << 29)

#if defined(__x86_64__)
static inline uint64_t rdpmc(uint32_t counter)
{
    uint32_t low, high;
    __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(counter) : "memory");
    return (uint64_t)high << 32 | low;
}
#endif

/* On a hybrid CPU PERF_TYPE_RAW means the P-cores. */
static inline struct perf_event_attr event_of(uint32_t type, uint64_t config)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.type = type;
    attr.size = sizeof attr;
    attr.config = config;
    return attr;
}

static inline struct perf_event_attr in_user_mode(struct perf_event_attr attr)
{
    attr.exclude_kernel = attr.exclude_hv = attr.exclude_guest = 1;
    return attr;
}

/* One or more groups of events; an event without a leader (-1) counts from group_runs on, with its members. */
struct perf_group {
    int fd[16], count;
};

/* Opens one more event: of a thread (0: this one), or with pid -1 of a CPU. */
static inline int add_event(struct perf_group *group, struct perf_event_attr attr, pid_t pid, int cpu, int leader)
{
    attr.disabled = leader < 0;
    const int fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, leader, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        FAIL("perf_event_open of %#llx: %s", (unsigned long long)attr.config, strerror(errno));
    CHECK(group->count < (int)(sizeof group->fd / sizeof group->fd[0]));
    return group->fd[group->count++] = fd;
}

/* Opens a group of SLOTS and the metric events of so many levels, all with the mode of `leader`. */
static inline void add_topdown(struct perf_group *group, struct perf_event_attr leader, unsigned level, pid_t pid, int cpu)
{
    struct perf_event_attr member = leader;
    const int fd = add_event(group, leader, pid, cpu, -1);
    member.pinned = 0; /* only a leader may be */
    for (unsigned k = 0; k < 4 * level; k++) {
        member.config = METRIC_EVENT + 0x100 * k;
        add_event(group, member, pid, cpu, fd);
    }
}

/* The control page of an event, which permits RDPMC. */
static inline struct perf_event_mmap_page *control_page(int fd)
{
    void *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd, 0);
    CHECK(page != MAP_FAILED);
    return (struct perf_event_mmap_page *)page;
}

static inline void group_runs(struct perf_group *group)
{
    for (int i = 0; i < group->count; i++)
        CHECK_EQ(ioctl(group->fd[i], PERF_EVENT_IOC_ENABLE, 0), 0);
}

static inline void group_stops(struct perf_group *group)
{
    for (int i = 0; i < group->count; i++)
        CHECK_EQ(ioctl(group->fd[i], PERF_EVENT_IOC_DISABLE, 0), 0);
}

static inline void group_ends(struct perf_group *group)
{
    while (group->count > 0)
        close(group->fd[--group->count]);
}
#endif
