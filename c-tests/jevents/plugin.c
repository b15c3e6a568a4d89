/* A program like a monitoring daemon's plugin: it makes each struct event itself, links it, opens it on the CPUs that it
 * wants, and lets free_eventlist free it. Its standard input, which is what an event of calloc seems to be open as,
 * survives. */
#define _GNU_SOURCE
#include "expect.h"
#include <errno.h>
#include <fcntl.h>
#include <jsession.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* An event of one's own; `closed`: on no CPU, which a program may leave out. */
static struct event *new_event(struct eventlist *el, const char *text, bool closed)
{
    struct event *e = calloc(1, sizeof *e + sizeof(struct efd) * (size_t)el->num_cpus);
    CHECK(e != NULL);
    for (int cpu = 0; closed && cpu < el->num_cpus; cpu++)
        e->efd[cpu].fd = -1;
    e->event = strdup(text);
    return e;
}

static void link_in(struct eventlist *el, struct event *e)
{
    if (el->eventlist == NULL)
        el->eventlist = e;
    if (el->eventlist_last != NULL)
        el->eventlist_last->next = e;
    el->eventlist_last = e;
}

/* By type and number, without a name's help. */
static void add_plain(struct eventlist *el, const char *text, uint32_t type, uint64_t config)
{
    struct event *e = new_event(el, text, false);
    e->attr.type = type;
    e->attr.config = config;
    e->attr.size = PERF_ATTR_SIZE_VER0;
    link_in(el, e);
}

static void add_group(struct eventlist *el, const char *const *names, int count)
{
    struct event *leader = NULL;
    for (int i = 0; i < count; i++) {
        struct event *e = new_event(el, names[i], true);
        CHECK_EQ(resolve_event_extra(names[i], &e->attr, &e->extra), 0);
        CHECK(e->extra.decoded != NULL && !e->extra.multi_pmu);
        e->uncore = jevent_pmu_uncore(e->extra.decoded);
        e->group_leader = leader == NULL;
        e->ingroup = true;
        e->end_group = i == count - 1;
        leader = leader != NULL ? leader : e;
        link_in(el, e);
    }
}

/* As for an event that several PMUs count. */
static void add_clones(struct eventlist *el, struct event *of, int count)
{
    while (count-- > 0) {
        struct event *e = new_event(el, of->event, true);
        e->attr = of->attr;
        e->orig = of;
        e->uncore = of->uncore;
        of->num_clones++;
        jevent_copy_extra(&e->extra, &of->extra);
        CHECK(strcmp(e->extra.decoded, of->extra.decoded) == 0 && e->extra.decoded != of->extra.decoded);
        link_in(el, e);
    }
}

static int set_up(struct eventlist *el, int first_cpu)
{
    struct event *leader = NULL;
    int opened = 0;
    for (struct event *e = el->eventlist; e != NULL; e = e->next) {
        for (int cpu = first_cpu; cpu < el->num_cpus; cpu++)
            opened += setup_event(e, cpu, leader, true, -1) == 0 && e->efd[cpu].fd >= 0;
        if (e->group_leader)
            leader = e;
        if (e->end_group)
            leader = NULL;
    }
    return opened;
}

int main(void)
{
    /* what stands on standard input, and is neither read nor closed */
    int input[2];
    CHECK_EQ(pipe2(input, O_NONBLOCK), 0);
    CHECK_EQ(dup2(input[0], 0), 0);

    struct eventlist *el = alloc_eventlist();
    CHECK(el != NULL);
    add_plain(el, "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
    add_plain(el, "context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES);
    static const char *const group[] = {"software/config=1/", "software/config=2,name=faults/", "msr/tsc/"};
    add_group(el, group, 3);
    struct event *last = el->eventlist_last;
    add_clones(el, el->eventlist_last, 2);
    CHECK_EQ(parse_events(el, "software/config=3/"), 0); /* behind what is there */
    struct event *parsed = el->eventlist_last;
    CHECK(last->next->next->next == parsed && parsed->next == NULL);
    CHECK_EQ(parsed->efd[0].fd, -1);

    const int first_cpu = el->num_cpus > 1; /* not all CPUs are wanted */
    if (set_up(el, first_cpu) == 0)
        SKIP("no event can be opened on all of a CPU");
    for (struct event *e = el->eventlist; e != NULL; e = e->next)
        for (int cpu = first_cpu; cpu < el->num_cpus; cpu++) {
            CHECK(e->efd[cpu].fd > 0);
            CHECK_EQ(read_event(e, cpu), 0);
            CHECK(e->efd[cpu].val[1] > 0);
        }
    CHECK_EQ(read_all_events(el), 0); /* leaves standard input alone */
    for (int cpu = first_cpu; cpu < el->num_cpus; cpu++) {
        const uint64_t clones = event_scaled_value(last->next, cpu) + event_scaled_value(last->next->next, cpu);
        CHECK(event_scaled_value(last->next, cpu) > 0);
        CHECK_EQ(event_scaled_value_sum(last, cpu), event_scaled_value(last, cpu) + clones);
    }
    char *text = NULL;
    size_t length = 0;
    FILE *f = open_memstream(&text, &length);
    CHECK(f != NULL);
    print_event_list_attr(el, f);
    session_print_csv(f, el, NULL);
    fclose(f);
    CHECK(strstr(text, "page-faults:\ntype: 1\n") != NULL && strstr(text, "name: faults\nperf: software/") != NULL);
    CHECK(first_cpu == 0 || strstr(text, "  0;page-faults;") == NULL); /* not open there */
    CHECK(strstr(text, ";page-faults;") != NULL);
    free(text);

    /* no descriptor left: errno says so */
    struct rlimit limit, low;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = limit;
    low.rlim_cur = 3;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    struct event *more = new_event(el, "more", true);
    more->attr = el->eventlist->attr;
    link_in(el, more);
    errno = 0;
    CHECK_EQ(setup_event(more, 0, NULL, true, -1), -1);
    CHECK_EQ(errno, EMFILE);
    CHECK_EQ(more->efd[0].fd, -1);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);

    const int fd = parsed->efd[el->num_cpus - 1].fd;
    free_eventlist(el);
    CHECK_EQ(fcntl(fd, F_GETFD), -1);
    char byte = 0;
    CHECK_EQ(write(input[1], "x", 1), 1);
    CHECK_EQ(read(0, &byte, 1), 1);
    CHECK_EQ(byte, 'x');
    return 0;
}
