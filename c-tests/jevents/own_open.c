/* A program with a perf_event_open of its own: the library opens events by it, too. */
#define _GNU_SOURCE
#include "expect.h"
#include <errno.h>
#include <jsession.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static int calls, last_pid, last_cpu, last_group;
static uint64_t last_config;

int perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags)
{
    calls++;
    last_pid = pid, last_cpu = cpu, last_group = group_fd, last_config = attr->config;
    if (attr->config == 0x5a || attr->config == 0x5b) {
        errno = attr->config == 0x5a ? EBUSY : EINVAL;
        return -1;
    }
    return (int)syscall(SYS_perf_event_open, attr, pid, cpu, group_fd, flags);
}

int main(void)
{
    struct eventlist *el = alloc_eventlist();
    CHECK(el != NULL);
    CHECK_EQ(parse_events(el, "{software/config=1/,software/config=2/}"), 0);
    CHECK_EQ(calls, 0);
    CHECK_EQ(setup_event(el->eventlist, 0, NULL, true, 0), 0);
    CHECK_EQ(calls, 1);
    CHECK_EQ(last_pid, 0);
    CHECK_EQ(last_cpu, 0);
    CHECK_EQ(last_group, -1);
    CHECK_EQ(last_config, 1);
    CHECK_EQ(setup_event_flags(el->eventlist->next, 0, el->eventlist, 0, 0), 0);
    CHECK_EQ(calls, 2);
    CHECK_EQ(last_group, el->eventlist->efd[0].fd);
    CHECK_EQ(last_config, 2);
    CHECK_EQ(read_all_events(el), 0);
    CHECK_EQ(parse_events(el, "software/config=0x5a/"), 0);
    CHECK_EQ(setup_event(el->eventlist_last, 0, NULL, true, 0), -1);
    CHECK_EQ(errno, EBUSY);
    CHECK_EQ(setup_events(el, false, getpid()), 0);
    CHECK_EQ(calls, 3 + 3 * el->num_cpus);
    free_eventlist(el);

    /* EINVAL is no error on a CPU that is not there, and an error on each that is: on CPU 0, too */
    el = alloc_eventlist();
    CHECK(el != NULL);
    const int none = el->num_cpus++;
    CHECK_EQ(parse_events(el, "software/config=0x5b/"), 0);
    el->eventlist->efd[none].fd = 99;
    CHECK_EQ(setup_event(el->eventlist, none, NULL, true, 0), 0);
    CHECK_EQ(el->eventlist->efd[none].fd, -1);
    for (int cpu = 0; cpu < none; cpu++) {
        CHECK_EQ(setup_event(el->eventlist, cpu, NULL, true, 0), -1);
        CHECK_EQ(errno, EINVAL);
    }
    free_eventlist(el);
    return 0;
}
