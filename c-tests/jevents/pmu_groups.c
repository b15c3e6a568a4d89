/* Groups across PMUs: every member runs, and counts, on each CPU. System-wide by setup_events and by setup_event, where
 * the leader already counts when the others join it; and for a process, from its exec on. */
#define _GNU_SOURCE
#include "expect.h"
#include <inttypes.h>
#include <jsession.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Some time on a CPU, in user mode and in the kernel. */
static void work(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    CHECK_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    for (volatile int i = 0; i < 3000000; i++)
        if (i % 1000 == 0)
            getppid();
}

/* Whether this is a core of a hybrid CPU that is not of the event's kind. */
static bool lacks(int cpu, const struct event *e)
{
    FILE *file = fopen("/sys/bus/event_source/devices/cpu_core/cpus", "r");
    int first = 0, last = 0;
    if (file == NULL)
        return false;
    const int read = fscanf(file, "%d-%d", &first, &last);
    CHECK(read > 0);
    fclose(file);
    return e->attr.type == PERF_TYPE_RAW && (cpu < first || cpu > (read == 1 ? first : last));
}

static void check_running(struct eventlist *el, const char *group)
{
    CHECK_EQ(read_all_events(el), 0);
    for (struct event *e = el->eventlist; e != NULL; e = e->next)
        for (int cpu = 0; cpu < el->num_cpus; cpu++) {
            const uint64_t *val = e->efd[cpu].val;
            if (lacks(cpu, e))
                CHECK_EQ(e->efd[cpu].fd, -1);
            else if (e->efd[cpu].fd < 0 || val[0] == 0 || val[2] == 0)
                FAIL("%s: %s/%d is %" PRIu64 ", enabled %" PRIu64 " ns, running %" PRIu64 " ns", group, e->event, cpu,
                     val[0], val[1], val[2]);
        }
}

static void measure(const char *group, bool each)
{
    struct eventlist *el = alloc_eventlist();
    struct event *leader = NULL;
    CHECK(el != NULL);
    CHECK_EQ(parse_events(el, (char *)group), 0);
    if (!each)
        CHECK_EQ(setup_events(el, true, -1), 0);
    for (struct event *e = each ? el->eventlist : NULL; e != NULL; e = e->next) {
        for (int cpu = 0; cpu < el->num_cpus; cpu++)
            CHECK_EQ(setup_event(e, cpu, leader, true, -1), lacks(cpu, e) ? -1 : 0);
        leader = e->end_group ? NULL : e->group_leader ? e : leader;
    }
    for (int cpu = 0; cpu < el->num_cpus; cpu++)
        work(cpu);
    check_running(el, group);
    free_eventlist(el);
}

static void measure_child(const char *group, char *self)
{
    struct eventlist *el = alloc_eventlist();
    int go[2];
    char byte = 0;
    CHECK(el != NULL);
    CHECK_EQ(parse_events(el, (char *)group), 0);
    CHECK_EQ(pipe(go), 0);
    const pid_t child = fork();
    if (child == 0) {
        close(go[1]);
        if (read(go[0], &byte, 1) == 1)
            execl(self, self, "work", (char *)NULL);
        _exit(1);
    }
    CHECK_EQ(setup_events(el, false, child), 0);
    CHECK_EQ(write(go[1], "x", 1), 1);
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    close(go[0]);
    close(go[1]);
    check_running(el, group);
    free_eventlist(el);
}

/* A leader that its program wants disabled stays so. */
static void leader_disabled(void)
{
    struct eventlist *el = alloc_eventlist();
    CHECK(el != NULL);
    CHECK_EQ(parse_events(el, "{software/config=0/,software/config=1/}"), 0);
    el->eventlist->attr.disabled = 1;
    CHECK_EQ(setup_events(el, true, -1), 0);
    work(0);
    CHECK_EQ(read_all_events(el), 0);
    CHECK_EQ(event_scaled_value(el->eventlist, 0), 0);
    CHECK_EQ(event_scaled_value(el->eventlist->next, 0), 0);
    free_eventlist(el);
}

/* One event too many for the PMU is an error on every CPU, and is not open. */
static void too_many(void)
{
    struct eventlist *el = alloc_eventlist();
    int refused = 0;
    CHECK(el != NULL);
    for (int i = 0; i < 40; i++)
        CHECK_EQ(parse_events(el, i % 2 ? "cpu/instructions/" : "cycles"), 0);
    for (int cpu = 0; cpu < el->num_cpus; cpu++, refused = 0)
        for (struct event *e = el->eventlist; e != NULL; e = e->next) {
            const int code = setup_event(e, cpu, e == el->eventlist ? NULL : el->eventlist, true, -1);
            CHECK_EQ(code, e->efd[cpu].fd < 0 ? -1 : 0);
            refused += code < 0;
            CHECK(e->next != NULL || refused > 0);
        }
    free_eventlist(el);
}

/* Whether this machine has, and permits, an event. */
static bool counts(const char *event)
{
    struct eventlist *el = alloc_eventlist();
    CHECK(el != NULL);
    const bool opens = parse_events(el, (char *)event) == 0 && setup_events(el, true, -1) == 0;
    free_eventlist(el);
    return opens;
}

int main(int argc, char **argv)
{
    static const char *const groups[] = {
        "{software/config=1/,msr/tsc/}",
        "{msr/tsc/,software/config=1/}",
        "{software/config=1/,software/config=0/,msr/tsc/}",
        "{software/config=0/,cycles}",
        "{software/config=0/,cycles,cpu/instructions/}",
        "{cycles,software/config=0/}",
        "{cycles,cpu/instructions/,software/config=0/}",
        "{cycles,cpu/instructions/}",
        "{software/config=0/,msr/tsc/,cycles}",
    };
    const int cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
    if (argc > 1) {
        for (int cpu = 0; cpu < cpus; cpu++)
            work(cpu);
        return 0;
    }
    if (!counts("msr/tsc/"))
        SKIP("the time stamp counter cannot be counted on all of a CPU");
    const bool cycles = counts("cycles");
    leader_disabled();
    if (cycles)
        too_many();
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        if (strstr(groups[i], "cycles") != NULL && !cycles)
            continue;
        measure(groups[i], false);
        measure(groups[i], true);
        measure_child(groups[i], argv[0]);
    }
    return 0;
}
