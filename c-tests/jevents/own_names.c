/* A program that has no use for jsession.h but for its names: a struct event, and functions of its own with other
 * arguments. It links with the library, and each uses its own. */
#include "expect.h"
#include <jevents.h>
#include <linux/perf_event.h>
#include <string.h>

struct event {
    const char *name;
    struct event *left, *right;
};

static int parsed, set_up;

/* not static: the names are the program's for all libraries */
const char *parse_events(double weight, struct event *root);
void setup_event_flags(const char *name);
int perf_fd_open_other(void);
struct event read_event(struct event e, long count);
long event_scaled_value(void);

const char *parse_events(double weight, struct event *root)
{
    parsed++;
    return weight > 0.5 ? root->name : root->right->name;
}

void setup_event_flags(const char *name)
{
    set_up += (int)strlen(name);
}

struct event read_event(struct event e, long count)
{
    e.name += count;
    return e;
}

long event_scaled_value(void)
{
    return 42;
}

int perf_fd_open_other(void)
{
    return 43;
}

/* the library's, which do what those of the names above would have done */
int setup_event(void *e, int cpu, void *leader, bool measure_all, int measure_pid);
int perf_fd_open(void *fd, struct perf_event_attr *attr, int buf_size_shift);

int main(void)
{
    struct event leaf = {"leaf", NULL, NULL}, root = {"root", NULL, &leaf};
    struct perf_event_attr attr;
    struct jevent_extra extra;
    CHECK(strcmp(parse_events(0.25, &root), "leaf") == 0);
    setup_event_flags("four");
    CHECK_EQ(perf_fd_open_other(), 43);
    CHECK(strcmp(read_event(root, 2).name, "ot") == 0);
    CHECK_EQ(event_scaled_value(), 42);

    memset(&attr, 0xff, sizeof attr);
    CHECK_EQ(resolve_event("software/config=2/u", &attr), 0);
    CHECK_EQ(attr.type, PERF_TYPE_SOFTWARE);
    CHECK_EQ(attr.config, PERF_COUNT_SW_PAGE_FAULTS);
    CHECK_EQ(attr.exclude_kernel, 1);
    CHECK_EQ(attr.inherit, 0);
    CHECK_EQ(resolve_event_extra("software/config=1/", &attr, &extra), 0);
    CHECK(strcmp(extra.decoded, "software/config=1/") == 0);
    jevent_free_extra(&extra);
    CHECK_EQ(setup_event(NULL, 0, NULL, false, 0), -1);
    CHECK_EQ(perf_fd_open(NULL, &attr, 0), -1);
    CHECK_EQ(parsed, 1); /* the library did not call the program's */
    CHECK_EQ(set_up, 4);
    return 0;
}
