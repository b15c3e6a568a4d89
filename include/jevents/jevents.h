/* jevents.h: events by name. Lists of events (perfmon JSON) and the kernel's own (sysfs) become struct
 * perf_event_attr. The interface is libjevents'; docs/jevents.md says what each function does.
 *
 * The same library serves programs compiled with any <linux/perf_event.h>: the functions that write a whole
 * struct perf_event_attr learn its size from this header (JEVENTS_SIZED). */
#ifndef JEVENTS_H
#define JEVENTS_H 1

#include <glob.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A pointer that also says how large the caller's struct perf_event_attr is, in units of 8 bytes above bit 57,
 * where addresses of programs have zeros. */
#ifdef __cplusplus
#define JEVENTS_SIZED(type, pointer) \
    (reinterpret_cast<type *>(reinterpret_cast<uintptr_t>(pointer) | (sizeof(struct perf_event_attr) / 8) << 57))
#else
#define JEVENTS_SIZED(type, pointer) \
    ((type *)((uintptr_t)(pointer) | (sizeof(struct perf_event_attr) / 8) << 57))
#endif
/* The function NAME is inline, has a local symbol of its own if it is not inlined, and calls the library's symbol
 * NAME by the C name jevents_plain_NAME. */
#define JEVENTS_PLAIN(name) __asm__(#name)
#define JEVENTS_INLINE(name) __asm__("jevents_sized_" #name)

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
char *get_cpu_str_type(const char *type, char **idstr_step);

/* Names to attrs. */
int jevents_plain_resolve_event(const char *name, struct perf_event_attr *attr) JEVENTS_PLAIN(resolve_event);
int jevents_plain_resolve_event_extra(const char *name, struct perf_event_attr *attr, struct jevent_extra *extra)
    JEVENTS_PLAIN(resolve_event_extra);
int jevents_plain_jevent_name_to_attr(const char *str, struct perf_event_attr *attr) JEVENTS_PLAIN(jevent_name_to_attr);
int jevents_plain_jevent_name_to_attr_extra(const char *str, struct perf_event_attr *attr, struct jevent_extra *extra)
    JEVENTS_PLAIN(jevent_name_to_attr_extra);

static __inline__ int resolve_event(const char *name, struct perf_event_attr *attr) JEVENTS_INLINE(resolve_event);
static __inline__ int resolve_event(const char *name, struct perf_event_attr *attr)
{
    return jevents_plain_resolve_event(name, JEVENTS_SIZED(struct perf_event_attr, attr));
}

static __inline__ int resolve_event_extra(const char *name, struct perf_event_attr *attr, struct jevent_extra *extra)
    JEVENTS_INLINE(resolve_event_extra);
static __inline__ int resolve_event_extra(const char *name, struct perf_event_attr *attr, struct jevent_extra *extra)
{
    return jevents_plain_resolve_event_extra(name, JEVENTS_SIZED(struct perf_event_attr, attr), extra);
}

static __inline__ int jevent_name_to_attr(const char *str, struct perf_event_attr *attr)
    JEVENTS_INLINE(jevent_name_to_attr);
static __inline__ int jevent_name_to_attr(const char *str, struct perf_event_attr *attr)
{
    return jevents_plain_jevent_name_to_attr(str, JEVENTS_SIZED(struct perf_event_attr, attr));
}

static __inline__ int jevent_name_to_attr_extra(const char *str, struct perf_event_attr *attr,
                                                struct jevent_extra *extra) JEVENTS_INLINE(jevent_name_to_attr_extra);
static __inline__ int jevent_name_to_attr_extra(const char *str, struct perf_event_attr *attr,
                                                struct jevent_extra *extra)
{
    return jevents_plain_jevent_name_to_attr_extra(str, JEVENTS_SIZED(struct perf_event_attr, attr), extra);
}

int jevents_update_qual(const char *qual, struct perf_event_attr *attr, const char *str);

/* Events that several PMUs count. */
int jevent_next_pmu(struct jevent_extra *extra, struct perf_event_attr *attr);
char *jevent_pmu_name(struct jevent_extra *extra, int num, int *next_num);
void jevent_free_extra(struct jevent_extra *extra);
void jevent_copy_extra(struct jevent_extra *dst, struct jevent_extra *src);
bool jevent_pmu_uncore(const char *str);

/* The way back, and the kernel. */
char *format_raw_event(struct perf_event_attr *attr, const char *name);
char *resolve_pmu(int type);
int perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags);
int jevents_socket_cpus(int *lenp, int **socket_cpus);
void jevent_print_attr(FILE *f, struct perf_event_attr *attr);

#ifdef __cplusplus
}
#endif

#endif
