/* A program that declares functions of the library before its headers, as it may, and defines others of these names behind
 * them: it calls its own, and the library's for the rest. own_resolver_cpp.cpp is the same in C++. */
#include <linux/perf_event.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif
struct jevent_extra;
struct eventlist;
int resolve_event(const char *name, struct perf_event_attr *attr);
int jevent_name_to_attr_extra(const char *str, struct perf_event_attr *attr, struct jevent_extra *extra);
int parse_events(struct eventlist *el, char *events);
int setup_events(struct eventlist *el, bool measure_all, int measure_pid);
#ifdef __cplusplus
}
#endif

#include <jsession.h>

#include "expect.h"
#include <string.h>

static int asked;

int resolve_event(const char *name, struct perf_event_attr *attr)
{
    asked++;
    memset(attr, 0, sizeof *attr);
    attr->config = strlen(name);
    return 7;
}

int setup_events(struct eventlist *el, bool measure_all, int measure_pid)
{
    return el->num_cpus > 0 && measure_all ? measure_pid : -1;
}

int main(void)
{
    struct perf_event_attr attr;
    struct jevent_extra extra;
    char text[] = "software/config=2,name=faults/";
    CHECK_EQ(resolve_event("four", &attr), 7);
    CHECK_EQ(attr.config, 4);
    CHECK_EQ(jevent_name_to_attr_extra(text, &attr, &extra), 0);
    CHECK_EQ(attr.config, 2);
    CHECK(strcmp(extra.name, "faults") == 0);
    jevent_free_extra(&extra);
    struct eventlist *el = alloc_eventlist();
    CHECK_EQ(parse_events(el, text), 0); /* by the library's own resolver */
    CHECK_EQ(el->eventlist->attr.config, 2);
    CHECK(strcmp(el->eventlist->event, text) == 0);
    CHECK_EQ(setup_events(el, true, 42), 42);
    free_eventlist(el);
    CHECK_EQ(asked, 1);
    return 0;
}
