/* Compiled against struct perf_event_attr of several sizes (-DATTR_SIZE=112 to 144, attr/linux/perf_event.h), this has
 * struct event in as many layouts, and works with the one library: nothing beyond the caller's attr is written, all in
 * it is, and the library finds what follows it. */
#define _GNU_SOURCE
#include "expect.h"
#include <jsession.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#ifndef ATTR_SIZE /* the system's headers */
#define ATTR_SIZE sizeof(struct perf_event_attr)
#endif
_Static_assert(sizeof(struct perf_event_attr) == ATTR_SIZE, "the headers are others than these");
_Static_assert(offsetof(struct event, event) == 8 + ATTR_SIZE, "attr is in the middle");
_Static_assert(offsetof(struct event, efd) == 272 - 128 + ATTR_SIZE, "all behind it moves");

enum { GUARD = 512 };

struct guarded {
    unsigned char before[GUARD];
    struct perf_event_attr attr;
    unsigned char behind[GUARD];
};

/* all bytes 0xa5, so that what is cleared is seen, and what is not to be written */
static struct guarded fresh(void)
{
    struct guarded guarded;
    memset(&guarded, 0xa5, sizeof guarded);
    return guarded;
}

static void check_guarded(const struct guarded *guarded)
{
    for (int i = 0; i < GUARD; i++)
        if (guarded->before[i] != 0xa5 || guarded->behind[i] != 0xa5)
            FAIL("byte %d from the attr of %zu is written", i, sizeof guarded->attr);
    struct perf_event_attr expected;
    memset(&expected, 0, sizeof expected);
    expected.type = PERF_TYPE_SOFTWARE;
    expected.size = guarded->attr.size;
    expected.config = PERF_COUNT_SW_PAGE_FAULTS;
    expected.exclude_kernel = expected.exclude_hv = 1;
    struct perf_event_attr attr = guarded->attr;
    memset((char *)&attr + offsetof(struct perf_event_attr, read_format) + 8, 0, 8); /* the flags of :u */
    memset((char *)&expected + offsetof(struct perf_event_attr, read_format) + 8, 0, 8);
    CHECK_EQ(memcmp(&attr, &expected, sizeof attr), 0);
    CHECK(guarded->attr.exclude_kernel && guarded->attr.exclude_hv && !guarded->attr.exclude_user);
    CHECK(guarded->attr.size >= 64 && guarded->attr.size <= sizeof guarded->attr);
}

static void check_resolvers(void)
{
    const char *name = "software/config=2/u";
    struct jevent_extra extra;
    struct guarded guarded = fresh();
    CHECK_EQ(resolve_event(name, &guarded.attr), 0);
    check_guarded(&guarded);
    guarded = fresh();
    CHECK_EQ(jevent_name_to_attr(name, &guarded.attr), 0);
    check_guarded(&guarded);
    guarded = fresh();
    memset(&extra, 0xa5, sizeof extra);
    CHECK_EQ(resolve_event_extra(name, &guarded.attr, &extra), 0);
    check_guarded(&guarded);
    CHECK(strcmp(extra.decoded, name) == 0 && extra.name == NULL);
    jevent_free_extra(&extra);
    guarded = fresh();
    CHECK_EQ(jevent_name_to_attr_extra(name, &guarded.attr, &extra), 0);
    check_guarded(&guarded);
    jevent_free_extra(&extra);
    int (*const pointer)(const char *, struct perf_event_attr *) = resolve_event;
    guarded = fresh();
    CHECK_EQ(pointer(name, &guarded.attr), 0);
    check_guarded(&guarded);
}

/* An event of one's own between guards. */
static struct event *new_event(int cpus)
{
    struct event *e = calloc(1, sizeof *e + sizeof(struct efd) * (size_t)cpus);
    CHECK(e != NULL);
    for (int cpu = 0; cpu < cpus; cpu++)
        e->efd[cpu].fd = -1;
    e->attr.type = PERF_TYPE_SOFTWARE;
    e->attr.size = sizeof e->attr;
    e->attr.config = PERF_COUNT_SW_PAGE_FAULTS;
    e->event = strdup("own");
    return e;
}

static void touch(int pages)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < pages; i++) {
        void *memory = NULL;
        CHECK_EQ(posix_memalign(&memory, page, 256 * page), 0); /* so large a block is mapped afresh */
        *(volatile char *)memory = 1;
        free(memory);
    }
}

static void check_session(void)
{
    struct eventlist *el = alloc_eventlist();
    CHECK(el != NULL);
    CHECK_EQ(parse_events(el, "{software/config=2,name=parsed/,software/config=1/}"), 0);
    struct event *parsed = el->eventlist, *clock = parsed->next, *own = new_event(el->num_cpus);
    CHECK(el->eventlist_last == clock && clock->next == NULL);
    CHECK_EQ(parsed->attr.type, PERF_TYPE_SOFTWARE);
    CHECK_EQ(parsed->attr.config, PERF_COUNT_SW_PAGE_FAULTS);
    CHECK(parsed->group_leader && parsed->ingroup && !parsed->end_group && clock->end_group && !clock->group_leader);
    CHECK(!parsed->uncore && parsed->orig == NULL && parsed->num_clones == 0);
    CHECK(strcmp(parsed->event, "software/config=2,name=parsed/") == 0 && strcmp(parsed->extra.name, "parsed") == 0);
    CHECK(strcmp(clock->extra.decoded, "software/config=1/") == 0);
    for (int cpu = 0; cpu < el->num_cpus; cpu++)
        CHECK_EQ(parsed->efd[cpu].fd, -1);

    clock->next = own;
    el->eventlist_last = own;
    const size_t all = offsetof(struct event, efd) + sizeof(struct efd) * (size_t)el->num_cpus;
    struct event *copy = malloc(all);
    CHECK(copy != NULL);
    memcpy(copy, own, all);
    cpu_set_t set; /* an event of another CPU is enabled all the same, and would be scaled */
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    CHECK_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    for (int cpu = 0; cpu < el->num_cpus; cpu++) {
        struct event *leader = NULL;
        for (struct event *e = el->eventlist; e != NULL; e = e->next) {
            CHECK_EQ(setup_event_flags(e, cpu, leader, 0, 0), 0);
            CHECK(e->efd[cpu].fd >= 0);
            leader = e->end_group ? NULL : e->group_leader ? e : leader;
        }
    }
    touch(100);
    CHECK_EQ(read_all_events(el), 0);
    uint64_t faults = 0, own_faults = 0, time = 0;
    for (int cpu = 0; cpu < el->num_cpus; cpu++) {
        faults += event_scaled_value(parsed, cpu);
        own_faults += event_scaled_value_sum(own, cpu);
        time += event_scaled_value(clock, cpu);
        CHECK_EQ(event_scaled_value(parsed, cpu), parsed->efd[cpu].val[0]);
    }
    CHECK(faults >= 100 && own_faults >= 100 && time > 0);
    CHECK_EQ(read_event(own, 0), 0);

    /* setup changes what it says it changes, and no byte else */
    CHECK_EQ(own->attr.inherit, 1);
    CHECK_EQ(own->attr.read_format, PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
    copy->attr.inherit = 1;
    copy->attr.read_format = own->attr.read_format;
    CHECK_EQ(memcmp(copy, own, offsetof(struct event, efd)), 0);
    free(copy);

    char *text = NULL, line[128];
    size_t length = 0;
    FILE *f = open_memstream(&text, &length);
    CHECK(f != NULL);
    print_event_list_attr(el, f);
    session_print_csv(f, el, NULL);
    session_print_aggr(f, el, NULL);
    session_print(f, el, NULL);
    fclose(f);
    CHECK(strstr(text, "own:\ntype: 1\nconfig: 2\n") != NULL);
    CHECK(strstr(text, "software/config=1/:\nperf: software/config=1/\ntype: 1\nconfig: 1\n") != NULL);
    snprintf(line, sizeof line, "  0;parsed;%llu;", (unsigned long long)parsed->efd[0].val[0]);
    CHECK(strstr(text, line) != NULL);
    snprintf(line, sizeof line, "\n%-30s %15llu", "own", (unsigned long long)own_faults);
    CHECK(el->num_cpus > 1 || strstr(text, line) != NULL); /* read_event has read CPU 0 once more */
    free(text);
    free_eventlist(el);
}

int main(void)
{
    check_resolvers();
    check_session();
    return 0;
}
