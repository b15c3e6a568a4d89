/* Events that several PMUs count, by PMUs made for it: directories over those of the kernel, in a mount namespace of our
 * own, whose type is that of a PMU which is there. A clone for each PMU, groups by PMU, sums, and nothing leaks. */
#define _GNU_SOURCE
#include "expect.h"
#include <fcntl.h>
#include <inttypes.h>
#include <jsession.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEVICES "/sys/bus/event_source/devices"

static void put(const char *pmu, const char *file, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, DEVICES "/%s", pmu);
    mkdir(path, 0755);
    snprintf(path, sizeof path, DEVICES "/%s/%s", pmu, file);
    FILE *f = fopen(path, "w");
    CHECK(f != NULL);
    fputs(text, f);
    CHECK_EQ(fclose(f), 0);
}

static void make_pmus(void)
{
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("pmus", DEVICES, "tmpfs", 0, NULL) != 0)
        SKIP("this takes the right to mount");
    put("software", "type", "1\n");
    for (int i = 0; i < 3; i++) {
        char name[32], type[8];
        snprintf(name, sizeof name, "uncore_soft_%d", i); /* counts, once a socket */
        put(name, "type", "1\n");
        put(name, "cpumask", "0\n");
        snprintf(name, sizeof name, "odd_%d", i);
        snprintf(type, sizeof type, "%d\n", 41 + i);
        put(name, "type", type);
        snprintf(name, sizeof name, "uncore_odd_%d", i);
        put(name, "type", type);
        if (i < 2) {
            snprintf(name, sizeof name, "uncore_pair_%d", i);
            put(name, "type", "1\n");
        }
    }
    put("uncore_none_0", "type", "1\n");
    put("uncore_none_1", "cpumask", "0\n");
}

static struct eventlist *parsed(const char *text)
{
    struct eventlist *el = alloc_eventlist();
    CHECK(el != NULL);
    CHECK_EQ(parse_events(el, (char *)text), 0);
    return el;
}

/* The list as text: type of the PMU, config, and the place in a group. */
static void shape(const char *text, const char *expected)
{
    char shape[512] = "";
    struct eventlist *el = parsed(text);
    for (struct event *e = el->eventlist; e != NULL; e = e->next) {
        CHECK_EQ(e->ingroup || !(e->group_leader || e->end_group), 1);
        sprintf(shape + strlen(shape), "%s%u:%" PRIu64 "%s ", e->group_leader ? "{" : "", e->attr.type,
                (uint64_t)e->attr.config, e->end_group ? "}" : "");
        CHECK(e->next != NULL || e == el->eventlist_last);
    }
    if (strcmp(shape, expected) != 0)
        FAIL("%s is %s, not %s", text, shape, expected);
    free_eventlist(el);
}

static void check_clones(void)
{
    struct eventlist *el = parsed("software/config=1/,soft/config=2,name=faults/u");
    struct event *first = el->eventlist->next, *second = first->next, *third = second->next, *orig = first->orig;
    CHECK(third->next == NULL && el->eventlist_last == third);
    CHECK(el->eventlist->orig == NULL && el->eventlist->num_clones == 0 && !el->eventlist->uncore);
    CHECK(orig != NULL && second->orig == orig && third->orig == orig);
    CHECK_EQ(orig->num_clones, 3);
    CHECK(orig->extra.multi_pmu && orig->orig == NULL && orig->uncore);
    for (struct event *e = first; e != NULL; e = e->next) {
        CHECK(e != orig && e->uncore && !e->ingroup && e->num_clones == 0);
        CHECK(e->event != orig->event && strcmp(e->event, "soft/config=2,name=faults/u") == 0);
        CHECK(strcmp(e->extra.name, "faults") == 0 && e->extra.name != orig->extra.name);
        CHECK(!e->extra.multi_pmu && e->attr.exclude_kernel);
        CHECK_EQ(e->extra.pmus.gl_pathc, 3);
    }
    CHECK(strcmp(jevent_pmu_name(&third->extra, 2, NULL), "uncore_soft_2") == 0);

    /* what is counted, summed from the original and in merged lines */
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(el->socket_cpus[0], &set);
    CHECK_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    CHECK_EQ(setup_events_cpumask(el, 0, NULL, 0), 0); /* of this process */
    uint64_t sum = 0, clock = 0;
    for (struct event *e = el->eventlist; e != NULL; e = e->next)
        for (int cpu = 0; cpu < el->num_cpus; cpu++)
            CHECK_EQ(e->efd[cpu].fd >= 0, !e->uncore || cpu == el->socket_cpus[0]);
    for (int i = 0; i < 50; i++) {
        void *memory = NULL;
        CHECK_EQ(posix_memalign(&memory, 4096, 1 << 20), 0);
        *(volatile char *)memory = 1;
        free(memory);
    }
    CHECK_EQ(read_all_events(el), 0);
    for (struct event *e = first; e != NULL; e = e->next) {
        CHECK(event_scaled_value(e, el->socket_cpus[0]) >= 50);
        CHECK_EQ(event_scaled_value_sum(e, el->socket_cpus[0]), event_scaled_value(e, el->socket_cpus[0]));
        sum += event_scaled_value(e, el->socket_cpus[0]);
    }
    CHECK_EQ(event_scaled_value_sum(orig, el->socket_cpus[0]), sum);
    for (int cpu = 0; cpu < el->num_cpus; cpu++)
        clock += event_scaled_value(el->eventlist, cpu);

    char *text = NULL;
    size_t length = 0;
    struct session_print merge = {.merge = true};
    FILE *f = open_memstream(&text, &length);
    CHECK(f != NULL);
    session_print_aggr(f, el, &merge);
    fclose(f);
    unsigned long long printed[2];
    if (sscanf(text, "software/config=1/ %llu%*[^\n]\nfaults %llu", &printed[0], &printed[1]) != 2 &&
        sscanf(text, "software/config=1/ %llu\nfaults %llu", &printed[0], &printed[1]) != 2)
        FAIL("it prints\n%s", text);
    CHECK_EQ(printed[0], clock);
    CHECK_EQ(printed[1], sum);
    CHECK(strchr(strchr(text, '\n') + 1, '\n')[1] == 0); /* two lines */
    free(text);
    free_eventlist(el);
}

static void check_failures(void)
{
    struct eventlist *el = parsed("software/config=1/");
    CHECK_EQ(parse_events(el, "{soft/config=1/,pair/config=1/}"), -1); /* three PMUs and two */
    CHECK_EQ(parse_events(el, "{pair/config=1/,soft/config=1/}"), -1);
    CHECK_EQ(parse_events(el, "none/config=1/"), -1); /* one of them has no type */
    CHECK_EQ(parse_events(el, "{soft/config=1/,no-such-event}"), -1);
    CHECK(el->eventlist->next == NULL && el->eventlist_last == el->eventlist);
    CHECK_EQ(parse_events(el, "pair/config=7/,no-such-event"), -1);
    CHECK(el->eventlist->next != NULL && el->eventlist->next->next == el->eventlist_last);
    free_eventlist(el);
}

/* A program that takes an original into its list frees it there. */
static void check_linked_original(void)
{
    struct eventlist *el = parsed("pair/config=2/");
    struct event *orig = el->eventlist->orig;
    orig->next = el->eventlist;
    el->eventlist = orig;
    free_eventlist(el);
}

int main(void)
{
    make_pmus();
    shape("soft/config=2/", "1:2 1:2 1:2 ");
    shape("odd/config=2/", "41:2 42:2 43:2 ");
    shape("{odd/config=2/}", "{41:2} {42:2} {43:2} ");
    shape("{odd/config=1/,odd/config=2/},software/config=3/", "{41:1 41:2} {42:1 42:2} {43:1 43:2} 1:3 ");
    shape("{odd/config=1/,software/config=7/,odd/config=2/,software/config=8/}",
          "{1:7 1:8} {41:1 41:2} {42:1 42:2} {43:1 43:2} ");
    shape("{pair/config=1/},{software/config=1/,software/config=2/", "{1:1} {1:1} {1:1 1:2} ");
    check_clones();
    check_failures();
    check_linked_original();
    return 0;
}
