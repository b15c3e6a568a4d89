/* A program like `perf stat`: parse_events, setup_events for a child from its exec on, read_all_events, and the printing
 * functions. What the child causes is known, so the counts are; what is printed is what was counted. */
#define _GNU_SOURCE
#include "expect.h"
#include <fcntl.h>
#include <inttypes.h>
#include <jsession.h>
#include <locale.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *self;

/* The child: page faults, so many, half of them in a process of its own, which runs on another CPU if there is one. */
static int touch(int pages)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, (size_t)pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    madvise(memory, (size_t)pages * page, MADV_NOHUGEPAGE);
    const pid_t child = fork();
    CHECK(child >= 0);
    cpu_set_t all, one;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && (child == 0 || CPU_COUNT(&one) == 0)) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one); /* the first, or for the child the last */
        }
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    for (int i = child == 0 ? 0 : pages / 2; i < (child == 0 ? pages / 2 : pages); i++)
        memory[(size_t)i * page] = 1;
    if (child == 0)
        _exit(0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    return 0;
}

/* Counts `events` over a child that touches so many pages. */
static struct eventlist *measured(const char *events, const char *pages)
{
    struct eventlist *el = alloc_eventlist();
    int go[2], ready[2];
    char byte = 0;
    CHECK(el != NULL);
    CHECK_EQ(parse_events(el, (char *)events), 0);
    CHECK_EQ(pipe2(go, O_CLOEXEC), 0);
    CHECK_EQ(pipe2(ready, O_CLOEXEC), 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(go[1]);
        if (write(ready[1], &byte, 1) == 1 && read(go[0], &byte, 1) == 1)
            execl(self, self, "touch", pages, (char *)NULL);
        _exit(1);
    }
    /* A sanitizer starts a thread of its own in the child. Events that are inherited may change places with the thread's when the
     * kernel switches between the two (perf_event_context_sched_out in kernel/events/core.c), and a group that is then half
     * open takes no more members. */
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    CHECK_EQ(setup_events(el, false, child), 0);
    CHECK_EQ(read_all_events(el), 0);
    for (struct event *e = el->eventlist; e != NULL; e = e->next)
        for (int cpu = 0; cpu < el->num_cpus; cpu++)
            CHECK_EQ(event_scaled_value(e, cpu), 0); /* not before exec */
    CHECK_EQ(write(go[1], "x", 1), 1);
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    close(go[0]);
    close(go[1]);
    CHECK_EQ(read_all_events(el), 0);
    return el;
}

/* On all CPUs. An event of software is counted all the time, so nothing is to be scaled, though the child was on one CPU
 * while it could have been on another. */
static uint64_t total(const struct eventlist *el, struct event *e)
{
    uint64_t sum = 0, scaled = 0;
    for (int cpu = 0; cpu < el->num_cpus; cpu++) {
        sum += e->efd[cpu].val[0];
        scaled += event_scaled_value(e, cpu);
    }
    CHECK_EQ(scaled, sum);
    return sum;
}

static void check_counts(void)
{
    struct eventlist *few = measured("software/config=2/,software/config=1/", "200");
    struct eventlist *many = measured("software/config=2/,software/config=1/", "4200");
    const uint64_t more = total(many, many->eventlist) - total(few, few->eventlist);
    if (more < 3900 || more > 4100 * (1 + SHADOW_PAGES))
        FAIL("4000 pages more are %" PRIu64 " faults more", more);
    CHECK(total(many, many->eventlist->next) > 0); /* task-clock */
    CHECK(total(few, few->eventlist) > 200);
    free_eventlist(few);
    free_eventlist(many);
}

static void check_group(void)
{
    struct eventlist *el =
        measured("{software/config=2,name=faults/,software/config=5/,software/config=6/},software/config=2/,", "1000");
    struct event *all = el->eventlist, *minor = all->next, *major = minor->next, *single = major->next;
    CHECK(single->next == NULL && el->eventlist_last == single);
    CHECK(all->group_leader && all->ingroup && !all->end_group);
    CHECK(!minor->group_leader && minor->ingroup && !minor->end_group);
    CHECK(!major->group_leader && major->ingroup && major->end_group);
    CHECK(!single->group_leader && !single->ingroup && !single->end_group);
    CHECK(strcmp(all->event, "software/config=2,name=faults/") == 0);
    CHECK(strcmp(all->extra.name, "faults") == 0);
    CHECK(total(el, all) > 1000);
    CHECK_EQ(total(el, minor) + total(el, major), total(el, all));
    CHECK_EQ(total(el, single), total(el, all));
    free_eventlist(el);
}

/* What a printing function says. */
static char *printed(void (*print)(FILE *, struct eventlist *, struct session_print *), struct eventlist *el,
                     struct session_print *arg)
{
    char *text = NULL;
    size_t length = 0;
    FILE *f = open_memstream(&text, &length);
    CHECK(f != NULL);
    print(f, el, arg);
    CHECK_EQ(fclose(f), 0);
    return text;
}

static void prints(void (*print)(FILE *, struct eventlist *, struct session_print *), struct eventlist *el,
                   struct session_print *arg, const char *expected)
{
    char *text = printed(print, el, arg);
    if (strcmp(text, expected) != 0)
        FAIL("it prints\n%sand not\n%s", text, expected);
    free(text);
}

/* Each line of CSV is one open event on one CPU, in order, with what is in its efd. */
static void check_csv_of_counts(void)
{
    struct eventlist *el = measured("software/config=2,name=faults/,software/config=1/", "1000");
    char *text = printed(session_print_csv, el, NULL), *line = text;
    int cpu, end;
    char name[64];
    uint64_t value, enabled, running;
    for (struct event *e = el->eventlist; e != NULL; e = e->next)
        for (int i = 0; i < el->num_cpus; i++) {
            if (e->efd[i].fd < 0)
                continue;
            end = 0;
            CHECK_EQ(sscanf(line, "%d;%63[^;];%" SCNu64 ";%" SCNu64 ";%" SCNu64 "\n%n", &cpu, name, &value, &enabled,
                            &running, &end), 5);
            CHECK_EQ(cpu, i);
            CHECK(strcmp(name, e->extra.name ? e->extra.name : e->event) == 0);
            CHECK_EQ(value, event_scaled_value(e, i));
            CHECK_EQ(enabled, e->efd[i].val[1]);
            CHECK_EQ(running, e->efd[i].val[2]);
            line += end;
        }
    CHECK_EQ(*line, 0);
    free(text);
    free_eventlist(el);
}

static void put(struct event *e, int cpu, uint64_t value, uint64_t enabled, uint64_t running)
{
    e->efd[cpu].fd = open("/dev/null", O_RDONLY);
    CHECK(e->efd[cpu].fd > 0);
    e->efd[cpu].val[0] = value, e->efd[cpu].val[1] = enabled, e->efd[cpu].val[2] = running;
}

/* Sets one with 1,234; makes it if it can, where this machine has none. */
static bool grouping_locale(void)
{
    char directory[] = "/tmp/session-locale-XXXXXX", command[256];
    if (setlocale(LC_NUMERIC, "en_US.UTF-8") != NULL)
        return true;
    CHECK(mkdtemp(directory) != NULL);
    snprintf(command, sizeof command, "localedef -i en_US -f UTF-8 %s/en_US.UTF-8 > /dev/null 2>&1", directory);
    bool set = false;
    if (system(command) == 0) {
        setenv("LOCPATH", directory, 1);
        set = setlocale(LC_NUMERIC, "en_US.UTF-8") != NULL;
    }
    if (!set)
        fprintf(stderr, "no locale that groups digits\n");
    snprintf(command, sizeof command, "rm -r %s", directory);
    CHECK_EQ(system(command), 0);
    return set;
}

/* Numbers put in by hand, as if the PMU had been shared. */
static void check_print(void)
{
    struct eventlist *el = alloc_eventlist();
    CHECK(el != NULL);
    CHECK_EQ(parse_events(el, "software/config=2,name=faults/,software/config=1/"), 0);
    if (el->num_cpus < 2)
        SKIP("this takes two CPUs");
    el->num_cpus = 2;
    struct event *first = el->eventlist, *second = first->next;
    put(first, 0, 1000, 90, 30);
    put(first, 1, 5, 10, 10);
    put(second, 1, 1234567, 8, 8);
    CHECK_EQ(event_scaled_value(first, 0), 3000);
    CHECK_EQ(event_scaled_value(first, 1), 5);
    CHECK_EQ(event_scaled_value_sum(first, 0), 3000);

    struct session_print arg = {.size = sizeof arg, .sep = ",", .prefix = "> "}, none = {.prefix = "> ", .sep = "|"};
    prints(session_print, el, &arg,
           ">   0 faults                                    3000 [33.33%]\n"
           ">   1 faults                                       5\n"
           ">   1 software/config=1/                     1234567\n");
    prints(session_print_aggr, el, NULL,
           "faults                                    3005 [40.00%]\n"
           "software/config=1/                     1234567\n");
    prints(session_print_csv, el, &arg, ">   0,faults,3000,90,30\n>   1,faults,5,10,10\n>   1,software/config=1/,1234567,8,8\n");
    prints(session_print_csv, el, &none, ">   0|faults|3000|90|30\n>   1|faults|5|10|10\n>   1|software/config=1/|1234567|8|8\n");
    arg.size = offsetof(struct session_print, prefix); /* a struct of a time without the rest */
    prints(session_print_csv, el, &arg, "  0,faults,3000,90,30\n  1,faults,5,10,10\n  1,software/config=1/,1234567,8,8\n");
    arg.size = sizeof arg.size;
    prints(session_print_csv, el, &arg, "  0;faults;3000;90;30\n  1;faults;5;10;10\n  1;software/config=1/;1234567;8;8\n");

    /* enabled, and never on the PMU: that is said of the sum, too */
    struct efd ran = second->efd[1];
    second->efd[1].val[0] = second->efd[1].val[2] = 0;
    prints(session_print_aggr, el, NULL,
           "faults                                    3005 [40.00%]\n"
           "software/config=1/                           0 [0.00%]\n");
    second->efd[1] = ran;

    /* digits are grouped as the program's locale says */
    if (grouping_locale()) {
        char *text = printed(session_print_aggr, el, NULL);
        CHECK(strstr(text, "1,234,567\n") != NULL && strstr(text, "3,005 [40.00%]") != NULL);
        free(text);
        text = printed(session_print, el, NULL);
        CHECK(strstr(text, "1,234,567\n") != NULL);
        free(text);
        text = printed(session_print_csv, el, NULL);
        CHECK(strstr(text, ";1234567;") != NULL); /* columns are for programs */
        free(text);
    }
    setlocale(LC_NUMERIC, "C");

    /* an event and the clone of it that a program made: one line if merged */
    second->orig = first;
    first->num_clones = 1;
    CHECK_EQ(event_scaled_value_sum(first, 1), 5 + 1234567);
    CHECK_EQ(event_scaled_value_sum(second, 1), 1234567);
    struct session_print merge = {.merge = true};
    prints(session_print, el, &merge,
           "  0 faults                                    3000 [33.33%]\n"
           "  1 faults                                 1234572\n");
    prints(session_print_aggr, el, &merge, "faults                                 1237572 [44.44%]\n");
    prints(session_print_csv, el, &merge, "  0;faults;3000;90;30\n  1;faults;1234572;18;18\n");
    free_eventlist(el);

    char stamp[SESSION_TIMESTAMP_LEN];
    session_print_timestamp(stamp, sizeof stamp, 1.5);
    CHECK(strcmp(stamp, " 1.500000000\t") == 0);
    session_print_timestamp(stamp, 5, 123.25);
    CHECK(strcmp(stamp, " 123") == 0);
}

static void print_attr(FILE *f, struct eventlist *el, struct session_print *arg)
{
    (void)arg;
    print_event_list_attr(el, f);
}

static void check_print_attr(void)
{
    struct eventlist *el = alloc_eventlist();
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    CHECK(el != NULL && f != NULL);
    CHECK_EQ(parse_events(el, "software/config=2,name=faults/u,msr/tsc/"), 0);
    struct perf_event_attr *faults = &el->eventlist->attr, *tsc = &el->eventlist->next->attr;
    CHECK_EQ(faults->type, PERF_TYPE_SOFTWARE);
    CHECK_EQ(faults->config, 2);
    CHECK_EQ(faults->exclude_kernel, 1);
    fputs("software/config=2,name=faults/u:\nname: faults\nperf: software/config=2,name=faults/u\n", f);
    jevent_print_attr(f, faults);
    fputs("pmu0: software\n\nmsr/tsc/:\nperf: msr/tsc/\n", f);
    jevent_print_attr(f, tsc);
    fputs("pmu0: msr\n\n", f);
    CHECK_EQ(fclose(f), 0);
    prints(print_attr, el, NULL, text);
    free(text);
    free_eventlist(el);
}

/* What a descriptor gives that is not three numbers. */
static void check_short(void)
{
    struct eventlist *el = alloc_eventlist();
    uint64_t number = 17;
    int ends[2];
    CHECK(el != NULL);
    CHECK_EQ(parse_events(el, "software/config=1/"), 0);
    struct event *e = el->eventlist;
    put(e, 0, 5, 6, 7);
    CHECK_EQ(read_event(e, 0), -1); /* none, as from a pinned event that found no room: what is old is not read anew */
    CHECK_EQ(read_all_events(el), -1);
    CHECK_EQ(e->efd[0].val[0], 5);
    close(e->efd[0].fd);
    CHECK_EQ(pipe(ends), 0);
    e->efd[0].fd = ends[0];
    CHECK_EQ(write(ends[1], &number, sizeof number), (ssize_t)sizeof number);
    CHECK_EQ(read_event(e, 0), 0); /* one, of an event opened without times */
    CHECK_EQ(event_scaled_value(e, 0), 17);
    CHECK_EQ(e->efd[0].val[1] + e->efd[0].val[2], 0);
    close(ends[1]);
    free_eventlist(el);
}

static int length(const struct eventlist *el)
{
    int count = 0;
    for (const struct event *e = el->eventlist; e != NULL; e = e->next)
        count++;
    return count;
}

static void check_errors(void)
{
    struct eventlist *el = alloc_eventlist();
    const char *bad[] = {",", "software/config=2/,,", " software/config=2/", "software/config=2/, software/config=2/",
                         "no-such-event", "{software/config=2/,no-such-event}", "software/config=2", "{}", "/"};
    CHECK(el != NULL);
    CHECK_EQ(el->num_cpus, sysconf(_SC_NPROCESSORS_CONF));
    CHECK_EQ(parse_events(el, ""), 0);
    CHECK_EQ(length(el), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const bool resolves = strcmp(bad[i], "software/config=2") == 0; /* the last slash may be missing */
        if (parse_events(el, (char *)bad[i]) != (resolves ? 0 : -1))
            FAIL("parse_events(\"%s\")", bad[i]);
    }
    CHECK_EQ(length(el), 3); /* what came before the errors, outside of a group, and the one without its slash */
    CHECK_EQ(parse_events(el, "{software/config=2/,software/config=3/}:u"), 0);
    CHECK(el->eventlist_last->attr.exclude_kernel && el->eventlist_last->end_group);
    CHECK_EQ(length(el), 5);

    CHECK_EQ(setup_events_cpumask(el, getpid(), "x", 0), -1);
    CHECK_EQ(setup_events_cpumask(el, getpid(), "99999", 0), 0); /* none of these CPUs, none failed */
    for (struct event *e = el->eventlist; e != NULL; e = e->next)
        for (int cpu = 0; cpu < el->num_cpus; cpu++)
            CHECK_EQ(e->efd[cpu].fd, -1);
    CHECK_EQ(setup_events_cpumask(el, getpid(), "0", 0), 0);
    for (struct event *e = el->eventlist; e != NULL; e = e->next)
        for (int cpu = 0; cpu < el->num_cpus; cpu++)
            CHECK_EQ(e->efd[cpu].fd >= 0, cpu == 0);
    CHECK_EQ(read_event(el->eventlist, 0), 0);
    CHECK_EQ(read_event(el->eventlist, el->num_cpus - 1), el->num_cpus == 1 ? 0 : -1); /* not open */
    CHECK_EQ(read_event(el->eventlist, -1), -1);
    CHECK_EQ(setup_event(el->eventlist, -1, NULL, true, 0), -1);
    free_eventlist(el);

    /* what the kernel refuses is said, on CPU 0 as on others, and no event counts as open */
    el = alloc_eventlist();
    CHECK(el != NULL);
    CHECK_EQ(parse_events(el, "software/config=0x7777/"), 0);
    for (int cpu = 0; cpu < el->num_cpus; cpu++) {
        CHECK_EQ(setup_event(el->eventlist, cpu, NULL, true, getpid()), -1);
        CHECK_EQ(el->eventlist->efd[cpu].fd, -1);
    }
    el->eventlist->attr.config = 2, el->eventlist->attr.freq = 1, el->eventlist->attr.sample_freq = 1ull << 63; /* EINVAL */
    CHECK_EQ(setup_event(el->eventlist, 0, NULL, true, getpid()), -1);
    CHECK_EQ(el->eventlist->efd[0].fd, -1);
    CHECK_EQ(setup_events(el, false, getpid()), -1);
    free_eventlist(el);
}

static void check_null(void)
{
    struct eventlist *el = alloc_eventlist();
    CHECK(el != NULL);
    CHECK_EQ(parse_events(NULL, "x"), -1);
    CHECK_EQ(parse_events(el, NULL), -1);
    CHECK_EQ(setup_events(NULL, true, -1), -1);
    CHECK_EQ(setup_events_cpumask(NULL, -1, NULL, 0), -1);
    CHECK_EQ(setup_event(NULL, 0, NULL, true, -1), -1);
    CHECK_EQ(setup_event_flags(NULL, 0, NULL, -1, 0), -1);
    CHECK_EQ(read_event(NULL, 0), -1);
    CHECK_EQ(read_all_events(NULL), -1);
    CHECK_EQ(event_scaled_value(NULL, 0), 0);
    CHECK_EQ(event_scaled_value_sum(NULL, 0), 0);
    free_eventlist(NULL);
    print_event_list_attr(el, NULL);
    print_event_list_attr(NULL, stdout);
    session_print(NULL, el, NULL);
    session_print_aggr(stdout, NULL, NULL);
    session_print_csv(stdout, NULL, NULL);
    session_print_timestamp(NULL, 30, 1);
    CHECK_EQ(setup_events(el, true, -1), 0); /* no events, none failed */
    CHECK_EQ(read_all_events(el), 0);
    free_eventlist(el);
}

int main(int argc, char **argv)
{
    self = argv[0];
    if (argc > 2)
        return touch(atoi(argv[2]));
    check_null();
    check_errors();
    check_print_attr();
    check_print();
    check_short();
    check_counts();
    check_group();
    check_csv_of_counts();
    return 0;
}
