/* jevents.h: events by name. Lists of events (perfmon JSON) and the kernel's own (sysfs) become struct
 * perf_event_attr. The interface is libjevents'; docs/jevents.md says what each function does.
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

/* Files of events. */
int read_events(const char *fn);
int json_events(const char *fn, int (*func)(void *data, char *name, char *event, char *desc, char *pmu), void *data);
int walk_events(int (*func)(void *data, char *name, char *event, char *desc), void *data);
int walk_perf_events(int (*func)(void *data, char *name, char *event, char *desc), void *data);
int rmap_event(unsigned event, char **name, char **desc);
char *get_cpu_str(void);
char *get_cpu_str_type(char *type, char **idstr_step);

/* Names to attrs. */
int resolve_event(const char *name, struct perf_event_attr *attr) JEVENTS_SYMBOL(resolve_event);
int resolve_event_extra(const char *name, struct perf_event_attr *attr, struct jevent_extra *extra)
    JEVENTS_SYMBOL(resolve_event_extra);
int jevent_name_to_attr(const char *str, struct perf_event_attr *attr) JEVENTS_SYMBOL(jevent_name_to_attr);
int jevent_name_to_attr_extra(const char *str, struct perf_event_attr *attr, struct jevent_extra *extra)
    JEVENTS_SYMBOL(jevent_name_to_attr_extra);
int jevents_update_qual(const char *qual, struct perf_event_attr *attr, const char *str);

/* Events that several PMUs count. */
int jevent_next_pmu(struct jevent_extra *extra, struct perf_event_attr *attr);
char *jevent_pmu_name(struct jevent_extra *extra, int num, int *next_num);
void jevent_free_extra(struct jevent_extra *extra);
void jevent_copy_extra(struct jevent_extra *dst, struct jevent_extra *src);
bool jevent_pmu_uncore(const char *str);

/* The way back, and the kernel. */
char *format_raw_event(struct perf_event_attr *attr, char *name);
char *resolve_pmu(int type);
int perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags);
int jevents_socket_cpus(int *lenp, int **socket_cpus);
void jevent_print_attr(FILE *f, struct perf_event_attr *attr);

/* Why. A code is what a function returned; the details are of the last failure in this thread, until the next. */
enum jevents_error { JEV_GENERIC_ERROR = -1, JEV_NO_PMU_EVENTS_FILE = -2 };
const char *jevent_error_to_string(int error_code);
const char *jevent_get_error_details(void);

#ifdef __cplusplus
}
#endif

#endif
