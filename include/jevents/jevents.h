/* jevents.h: events by name. Lists of events (perfmon JSON) and the kernel's own (sysfs) become struct
 * perf_event_attr. The interface is libjevents'.
 *
 * Returns 0, or what is named, and in failure a negative value, NULL or false. Lines on standard error say why, and
 * jevent_get_error_details; after a failed open errno is the kernel's. NULL where a pointer is needed is a failure.
 *
 * Memory that a caller receives comes from malloc(3), and is freed by free(3), or by the function that is named. Memory
 * that a caller passes to be freed must come from malloc(3), too.
 *
 * Threads: any thread may call. Lists of events are loaded once, by the thread that needs them first. Two threads must
 * not use one `struct event`, `rdpmc_ctx` or `perf_fd` at the same time. Groups of measure.h, interrupts and counters
 * belong to the thread that opened them. Cancellation of a thread takes effect at its next cancellation point after a
 * call. A C++ exception may leave a callback of walk_events, walk_perf_events or json_events, and no other.
 *
 * struct perf_event_attr grows with the kernel's headers, and a program may have its own copy of these: it is declared here, no
 * more. The functions that write all of it, or that take a struct with one inside, are declared as ever; with another size than
 * that of Linux 5.14 to 6.2 (jevents-attr.h) the declaration names, as that of a C library does for 64-bit file offsets, the
 * library's function for this size (JEVENTS_SYMBOL). */
#ifndef JEVENTS_H
#define JEVENTS_H 1

#include <glob.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include "jevents-attr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is known of an event besides its attr. */
struct jevent_extra {
    char *name;     /* from a name= term, or NULL */
    char *decoded;  /* what was resolved, as PMU/terms/ */
    bool multi_pmu; /* several PMUs count it: see jevent_next_pmu */
    glob_t pmus;    /* sysfs paths of the PMUs */
    int next_pmu;   /* the next one */
};

/* Replaces the list of events by that of a file (perfmon JSON), or of the files for this CPU if `fn` is NULL.
 * Returns 0, or as json_events. */
int read_events(const char *fn);
/* Calls back for each event of a file, or of the files for this CPU if `fn` is NULL. Returns what `func` returned if
 * that is not 0, which ends it; -EIO if a file cannot be read (errno has why, EIO if it is no list of events),
 * -ENOMEM if nothing says where to look. */
int json_events(const char *fn, int (*func)(void *data, char *name, char *event, char *desc, char *pmu), void *data);
/* Calls back for each event of the list, by name. Returns what `func` returned if that is not 0, which ends it; -1
 * if there is no list. */
int walk_events(int (*func)(void *data, char *name, char *event, char *desc), void *data);
/* The same of each event that the kernel names in sysfs; -1 if there are none. */
int walk_perf_events(int (*func)(void *data, char *name, char *event, char *desc), void *data);
/* Name and description of an event by its number (bits 0 to 7) and umask (8 to 15). Returns 0, or -1 if there is
 * none. The texts are not to be freed. */
int rmap_event(unsigned event, char **name, char **desc);
/* VENDOR-FAMILY-MODEL-core of this CPU, to be freed. */
char *get_cpu_str(void);
/* VENDOR-FAMILY-MODEL of this CPU and a suffix, and the same with the stepping into `idstr_step` if that is not
 * NULL; both to be freed. */
char *get_cpu_str_type(char *type, char **idstr_step);

/* An event by its name in the list, in sysfs, or by terms (`cpu/event=0xc0/u`), as an attr. */
int resolve_event(const char *name, struct perf_event_attr *attr) JEVENTS_SYMBOL(resolve_event);
/* As resolve_event, and what else is known of it: jevent_free_extra frees that. */
int resolve_event_extra(const char *name, struct perf_event_attr *attr, struct jevent_extra *extra)
    JEVENTS_SYMBOL(resolve_event_extra);
/* An event by its name in sysfs or by terms, as an attr. */
int jevent_name_to_attr(const char *str, struct perf_event_attr *attr) JEVENTS_SYMBOL(jevent_name_to_attr);
/* As jevent_name_to_attr, and what else is known of it: jevent_free_extra frees that. */
int jevent_name_to_attr_extra(const char *str, struct perf_event_attr *attr, struct jevent_extra *extra)
    JEVENTS_SYMBOL(jevent_name_to_attr_extra);
/* Applies qualifiers (`uk`, `ppp`) to an attr; one that they do not fit stays as it is. */
int jevents_update_qual(const char *qual, struct perf_event_attr *attr, const char *str);

/* Makes `attr` count on the next PMU of an event. Returns 1; 0 if there is none, -1 if its type cannot be read. */
int jevent_next_pmu(struct jevent_extra *extra, struct perf_event_attr *attr);
/* Name of a PMU of an event, or NULL behind the last; `next_num` receives the number of the next. */
char *jevent_pmu_name(struct jevent_extra *extra, int num, int *next_num);
/* Frees what is in it; it is empty then. */
void jevent_free_extra(struct jevent_extra *extra);
/* Makes `dst`, which has nothing to be freed, a copy of `src`. */
void jevent_copy_extra(struct jevent_extra *dst, struct jevent_extra *src);
/* Whether an event is counted once a socket. */
bool jevent_pmu_uncore(const char *str);

/* Text by which perf counts what an attr says, to be freed. */
char *format_raw_event(struct perf_event_attr *attr, char *name);
/* Name of the first PMU of a type, to be freed. */
char *resolve_pmu(int type);
/* The system call: perf_event_open(2). */
int perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags);
/* The first CPU of each socket, to be freed, and how many these are. */
int jevents_socket_cpus(int *lenp, int **socket_cpus);
/* Prints an attr. */
void jevent_print_attr(FILE *f, struct perf_event_attr *attr);

/* Why. A code is what a function returned; the details are of the last failure in this thread, until the next. */
enum jevents_error { JEV_GENERIC_ERROR = -1, JEV_NO_PMU_EVENTS_FILE = -2 };
/* Text of a code that a function of this library returned. Static. */
const char *jevent_error_to_string(int error_code);
/* What was wrong when a function last failed in this thread; "" if none did. */
const char *jevent_get_error_details(void);

#ifdef __cplusplus
}
#endif

#endif
