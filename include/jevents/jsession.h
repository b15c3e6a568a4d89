/* jsession.h: lists of events, measured together, on every CPU. The interface is libjevents'; docs/jevents.md says what
 * each function does. Programs read and write these structs; the library may also be given ones that a program made. */
#ifndef JSESSION_H
#define JSESSION_H 1

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "jevents.h"

#ifdef __cplusplus
extern "C" {
#endif

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

struct eventlist *alloc_eventlist(void);
void session_print_timestamp(char *buf, int bufs, double ts);

/* Each of the rest learns from this header where the members of struct event are that follow attr. */
int jevents_plain_parse_events(struct eventlist *el, const char *events) JEVENTS_PLAIN(parse_events);
int jevents_plain_setup_events(struct eventlist *el, bool measure_all, int measure_pid) JEVENTS_PLAIN(setup_events);
int jevents_plain_setup_events_cpumask(struct eventlist *el, int measure_pid, const char *cpumask, int flags)
    JEVENTS_PLAIN(setup_events_cpumask);
int jevents_plain_setup_event(struct event *e, int cpu, struct event *leader, bool measure_all, int measure_pid)
    JEVENTS_PLAIN(setup_event);
int jevents_plain_setup_event_flags(struct event *e, int cpu, struct event *leader, int measure_pid, int flags)
    JEVENTS_PLAIN(setup_event_flags);
int jevents_plain_read_event(struct event *e, int cpu) JEVENTS_PLAIN(read_event);
int jevents_plain_read_all_events(struct eventlist *el) JEVENTS_PLAIN(read_all_events);
uint64_t jevents_plain_event_scaled_value(struct event *e, int cpu) JEVENTS_PLAIN(event_scaled_value);
uint64_t jevents_plain_event_scaled_value_sum(struct event *e, int cpu) JEVENTS_PLAIN(event_scaled_value_sum);
void jevents_plain_free_eventlist(struct eventlist *el) JEVENTS_PLAIN(free_eventlist);
void jevents_plain_print_event_list_attr(struct eventlist *el, FILE *f) JEVENTS_PLAIN(print_event_list_attr);
void jevents_plain_session_print_csv(FILE *outfh, struct eventlist *el, struct session_print *arg)
    JEVENTS_PLAIN(session_print_csv);
void jevents_plain_session_print_aggr(FILE *outfh, struct eventlist *el, struct session_print *arg)
    JEVENTS_PLAIN(session_print_aggr);
void jevents_plain_session_print(FILE *outfh, struct eventlist *el, struct session_print *arg)
    JEVENTS_PLAIN(session_print);

static __inline__ int parse_events(struct eventlist *el, const char *events) JEVENTS_INLINE(parse_events);
static __inline__ int parse_events(struct eventlist *el, const char *events)
{
    return jevents_plain_parse_events(JEVENTS_SIZED(struct eventlist, el), events);
}

static __inline__ int setup_events(struct eventlist *el, bool measure_all, int measure_pid)
    JEVENTS_INLINE(setup_events);
static __inline__ int setup_events(struct eventlist *el, bool measure_all, int measure_pid)
{
    return jevents_plain_setup_events(JEVENTS_SIZED(struct eventlist, el), measure_all, measure_pid);
}

static __inline__ int setup_events_cpumask(struct eventlist *el, int measure_pid, const char *cpumask, int flags)
    JEVENTS_INLINE(setup_events_cpumask);
static __inline__ int setup_events_cpumask(struct eventlist *el, int measure_pid, const char *cpumask, int flags)
{
    return jevents_plain_setup_events_cpumask(JEVENTS_SIZED(struct eventlist, el), measure_pid, cpumask, flags);
}

static __inline__ int setup_event(struct event *e, int cpu, struct event *leader, bool measure_all, int measure_pid)
    JEVENTS_INLINE(setup_event);
static __inline__ int setup_event(struct event *e, int cpu, struct event *leader, bool measure_all, int measure_pid)
{
    return jevents_plain_setup_event(JEVENTS_SIZED(struct event, e), cpu, leader, measure_all, measure_pid);
}

static __inline__ int setup_event_flags(struct event *e, int cpu, struct event *leader, int measure_pid, int flags)
    JEVENTS_INLINE(setup_event_flags);
static __inline__ int setup_event_flags(struct event *e, int cpu, struct event *leader, int measure_pid, int flags)
{
    return jevents_plain_setup_event_flags(JEVENTS_SIZED(struct event, e), cpu, leader, measure_pid, flags);
}

static __inline__ int read_event(struct event *e, int cpu) JEVENTS_INLINE(read_event);
static __inline__ int read_event(struct event *e, int cpu)
{
    return jevents_plain_read_event(JEVENTS_SIZED(struct event, e), cpu);
}

static __inline__ int read_all_events(struct eventlist *el) JEVENTS_INLINE(read_all_events);
static __inline__ int read_all_events(struct eventlist *el)
{
    return jevents_plain_read_all_events(JEVENTS_SIZED(struct eventlist, el));
}

static __inline__ uint64_t event_scaled_value(struct event *e, int cpu) JEVENTS_INLINE(event_scaled_value);
static __inline__ uint64_t event_scaled_value(struct event *e, int cpu)
{
    return jevents_plain_event_scaled_value(JEVENTS_SIZED(struct event, e), cpu);
}

static __inline__ uint64_t event_scaled_value_sum(struct event *e, int cpu) JEVENTS_INLINE(event_scaled_value_sum);
static __inline__ uint64_t event_scaled_value_sum(struct event *e, int cpu)
{
    return jevents_plain_event_scaled_value_sum(JEVENTS_SIZED(struct event, e), cpu);
}

static __inline__ void free_eventlist(struct eventlist *el) JEVENTS_INLINE(free_eventlist);
static __inline__ void free_eventlist(struct eventlist *el)
{
    jevents_plain_free_eventlist(JEVENTS_SIZED(struct eventlist, el));
}

static __inline__ void print_event_list_attr(struct eventlist *el, FILE *f) JEVENTS_INLINE(print_event_list_attr);
static __inline__ void print_event_list_attr(struct eventlist *el, FILE *f)
{
    jevents_plain_print_event_list_attr(JEVENTS_SIZED(struct eventlist, el), f);
}

static __inline__ void session_print_csv(FILE *outfh, struct eventlist *el, struct session_print *arg)
    JEVENTS_INLINE(session_print_csv);
static __inline__ void session_print_csv(FILE *outfh, struct eventlist *el, struct session_print *arg)
{
    jevents_plain_session_print_csv(outfh, JEVENTS_SIZED(struct eventlist, el), arg);
}

static __inline__ void session_print_aggr(FILE *outfh, struct eventlist *el, struct session_print *arg)
    JEVENTS_INLINE(session_print_aggr);
static __inline__ void session_print_aggr(FILE *outfh, struct eventlist *el, struct session_print *arg)
{
    jevents_plain_session_print_aggr(outfh, JEVENTS_SIZED(struct eventlist, el), arg);
}

static __inline__ void session_print(FILE *outfh, struct eventlist *el, struct session_print *arg)
    JEVENTS_INLINE(session_print);
static __inline__ void session_print(FILE *outfh, struct eventlist *el, struct session_print *arg)
{
    jevents_plain_session_print(outfh, JEVENTS_SIZED(struct eventlist, el), arg);
}

#ifdef __cplusplus
}
#endif

#endif
