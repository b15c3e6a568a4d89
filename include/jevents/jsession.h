/* jsession.h: lists of events, measured together, on every CPU. The interface is libjevents'. Programs read
 * and write these structs; the library may also be given ones that a program made. */
#ifndef JSESSION_H
#define JSESSION_H 1

#ifndef PERF_ATTR_SIZE_VER0 /* of a copy that the program has */
#include <linux/perf_event.h>
#endif
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "jevents.h"
#include "jevents-attr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An array of no size if its macros say another, or if jevents-attr.h does not know them. */
typedef char jevents_does_not_know_this_perf_event_attr[sizeof(struct perf_event_attr) == JEVENTS_ATTR_SIZE ? 1 : -1];

struct event {
    struct event *next;
    struct perf_event_attr attr;
    char *event;                           /* its text; freed by free_eventlist */
    bool end_group, group_leader, ingroup; /* {leader,in,...,end} */
    bool uncore;                           /* counted once a socket */
    struct event *orig;                    /* of a clone: the event that it is one PMU of */
    int num_clones;                        /* of such an event: how many there are */
    struct jevent_extra extra;
    __extension__ struct efd {
        int fd;          /* -1: not open */
        uint64_t val[3]; /* value, time enabled, time running (ns) */
    } efd[0];            /* one a CPU: num_cpus of the list */
};

struct eventlist {
    struct event *eventlist;
    struct event *eventlist_last;
    int num_cpus;
    int num_sockets;
    int *socket_cpus; /* the first CPU of each socket */
};

#define SE_ENABLE_ON_EXEC (1 << 0)
#define SE_MEASURE_ALL (1 << 1)

struct session_print {
    int size;     /* 0, or that of this struct */
    char *sep;    /* session_print_csv: between columns; NULL: ";" */
    char *prefix; /* at the start of each line, or NULL */
    bool merge;   /* one line for an event that several PMUs count */
};

#define SESSION_TIMESTAMP_LEN 30

/* An empty list, or NULL. free_eventlist frees it. */
struct eventlist *alloc_eventlist(void);
/* Writes seconds, as a prefix of a line, into `buf` of `bufs` bytes. */
void session_print_timestamp(char *buf, int bufs, double ts);

/* The members of struct event that follow attr are elsewhere for each size of it: JEVENTS_SYMBOL. */

/* Appends events to a list: names with commas between them, groups in braces. What comes before the first part that
 * fails stays; a group comes whole or not at all. */
int parse_events(struct eventlist *el, char *events) JEVENTS_SYMBOL(parse_events);
/* Opens all events on all CPUs, for a process from its exec on, or for all processes. */
int setup_events(struct eventlist *el, bool measure_all, int measure_pid) JEVENTS_SYMBOL(setup_events);
/* The same on a list of CPUs (`0-3,8`), or all for NULL, with SE_* flags. */
int setup_events_cpumask(struct eventlist *el, int measure_pid, char *cpumask, int flags)
    JEVENTS_SYMBOL(setup_events_cpumask);
/* Opens one event on a CPU, in the group of `leader` if that is not NULL. */
int setup_event(struct event *e, int cpu, struct event *leader, bool measure_all, int measure_pid)
    JEVENTS_SYMBOL(setup_event);
/* The same with SE_* flags. */
int setup_event_flags(struct event *e, int cpu, struct event *leader, int measure_pid, int flags)
    JEVENTS_SYMBOL(setup_event_flags);
/* Reads value and times of one event and CPU. */
int read_event(struct event *e, int cpu) JEVENTS_SYMBOL(read_event);
/* Reads all that are open, up to the first error. */
int read_all_events(struct eventlist *el) JEVENTS_SYMBOL(read_all_events);
/* What was read, scaled to the time in which it was enabled. */
uint64_t event_scaled_value(struct event *e, int cpu) JEVENTS_SYMBOL(event_scaled_value);
/* The same of an event and its clones. */
uint64_t event_scaled_value_sum(struct event *e, int cpu) JEVENTS_SYMBOL(event_scaled_value_sum);
/* Closes and frees all. */
void free_eventlist(struct eventlist *el) JEVENTS_SYMBOL(free_eventlist);
/* Prints what each event was resolved to. */
void print_event_list_attr(struct eventlist *el, FILE *f) JEVENTS_SYMBOL(print_event_list_attr);
/* Prints a line for each event and CPU: CPU, name, value, time enabled, time running. */
void session_print_csv(FILE *outfh, struct eventlist *el, struct session_print *arg) JEVENTS_SYMBOL(session_print_csv);
/* Prints a line for each event: the sum over all CPUs. */
void session_print_aggr(FILE *outfh, struct eventlist *el, struct session_print *arg)
    JEVENTS_SYMBOL(session_print_aggr);
/* Prints a line for each event and CPU. */
void session_print(FILE *outfh, struct eventlist *el, struct session_print *arg) JEVENTS_SYMBOL(session_print);

#ifdef __cplusplus
}
#endif

#endif
