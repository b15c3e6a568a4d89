/* Each function is what libjevents declares: a program keeps it in a pointer of that type. types_cpp.cpp is the same in C++,
 * where no other type passes. */
#include <linux/perf_event.h>
#include <interrupts.h>
#include <jevents.h>
#include <jsession.h>
#include <measure.h>
#include <perf-iter.h>
#include <rdpmc.h>

#include "expect.h"
#include <string.h>

#ifdef ATTR_SIZE
typedef char is_of_this_size[sizeof(struct perf_event_attr) == ATTR_SIZE ? 1 : -1];
#endif

#define IS(name, result, arguments) \
    { \
        result(*function) arguments = name; \
        CHECK(function != NULL); \
        count++; \
    }

int main(void)
{
    int count = 0;
    IS(json_events, int, (const char *, int (*)(void *, char *, char *, char *, char *), void *))
    IS(get_cpu_str, char *, (void))
    IS(get_cpu_str_type, char *, (char *, char **))
    IS(jevent_free_extra, void, (struct jevent_extra *))
    IS(jevent_copy_extra, void, (struct jevent_extra *, struct jevent_extra *))
    IS(jevent_next_pmu, int, (struct jevent_extra *, struct perf_event_attr *))
    IS(jevent_name_to_attr, int, (const char *, struct perf_event_attr *))
    IS(jevent_name_to_attr_extra, int, (const char *, struct perf_event_attr *, struct jevent_extra *))
    IS(jevent_pmu_name, char *, (struct jevent_extra *, int, int *))
    IS(resolve_event, int, (const char *, struct perf_event_attr *))
    IS(resolve_event_extra, int, (const char *, struct perf_event_attr *, struct jevent_extra *))
    IS(read_events, int, (const char *))
    IS(jevents_update_qual, int, (const char *, struct perf_event_attr *, const char *))
    IS(walk_events, int, (int (*)(void *, char *, char *, char *), void *))
    IS(walk_perf_events, int, (int (*)(void *, char *, char *, char *), void *))
    IS(format_raw_event, char *, (struct perf_event_attr *, char *))
    IS(rmap_event, int, (unsigned, char **, char **))
    IS(perf_event_open, int, (struct perf_event_attr *, pid_t, int, int, unsigned long))
    IS(resolve_pmu, char *, (int))
    IS(jevent_pmu_uncore, bool, (const char *))
    IS(jevents_socket_cpus, int, (int *, int **))
    IS(jevent_print_attr, void, (FILE *, struct perf_event_attr *))
    IS(jevent_error_to_string, const char *, (int))
    IS(jevent_get_error_details, const char *, (void))
    IS(parse_events, int, (struct eventlist *, char *))
    IS(setup_events, int, (struct eventlist *, bool, int))
    IS(setup_events_cpumask, int, (struct eventlist *, int, char *, int))
    IS(setup_event, int, (struct event *, int, struct event *, bool, int))
    IS(setup_event_flags, int, (struct event *, int, struct event *, int, int))
    IS(read_event, int, (struct event *, int))
    IS(read_all_events, int, (struct eventlist *))
    IS(alloc_eventlist, struct eventlist *, (void))
    IS(event_scaled_value, uint64_t, (struct event *, int))
    IS(event_scaled_value_sum, uint64_t, (struct event *, int))
    IS(free_eventlist, void, (struct eventlist *))
    IS(print_event_list_attr, void, (struct eventlist *, FILE *))
    IS(session_print_csv, void, (FILE *, struct eventlist *, struct session_print *))
    IS(session_print_aggr, void, (FILE *, struct eventlist *, struct session_print *))
    IS(session_print, void, (FILE *, struct eventlist *, struct session_print *))
    IS(session_print_timestamp, void, (char *, int, double))
    IS(rdpmc_open, int, (unsigned, struct rdpmc_ctx *))
    IS(rdpmc_open_attr, int, (struct perf_event_attr *, struct rdpmc_ctx *, struct rdpmc_ctx *))
    IS(rdpmc_close, void, (struct rdpmc_ctx *))
    IS(rdpmc_read, unsigned long long, (struct rdpmc_ctx *))
    IS(measure_group_init, void, (struct measure *, char *))
    IS(measure_group_start, void, (void))
    IS(measure_group_stop, void, (void))
    IS(measure_group_finish, void, (void))
    IS(measure_print_all, void, (FILE *))
    IS(measure_free_all, void, (void))
    IS(interrupts_init, void, (void))
    IS(interrupts_exit, void, (void))
    IS(get_interrupts, unsigned long long, (void))
    IS(perf_fd_open, int, (struct perf_fd *, struct perf_event_attr *, int))
    IS(perf_fd_open_other, int, (struct perf_fd *, struct perf_event_attr *, int, int, int))
    IS(perf_fd_close, void, (struct perf_fd *))
    IS(perf_iter_continue, void, (struct perf_iter *))
    IS(perf_buffer_read, struct perf_event_header *, (struct perf_iter *, void *, int))
    IS(perf_iter_init, void, (struct perf_iter *, struct perf_fd *))
    IS(perf_enable, int, (struct perf_fd *))
    IS(perf_disable, int, (struct perf_fd *))
    IS(perf_mmap_size, unsigned, (int))
    IS(perf_aux_map, int, (struct perf_fd *, struct perf_aux_map *, int, bool))
    IS(perf_aux_unmap, void, (struct perf_fd *, struct perf_aux_map *))
    CHECK_EQ(count, 64);

    /* a pointer calls the function for this program's attr, as the name does */
    struct {
        struct perf_event_attr attr;
        unsigned char behind[64];
    } own;
    int (*const resolve)(const char *, struct perf_event_attr *) = resolve_event;
    memset(&own, 0xaa, sizeof own);
    CHECK_EQ(resolve("software/config=2/", &own.attr), 0);
    for (size_t i = 72; i < sizeof own; i++)
        CHECK_EQ(((unsigned char *)&own)[i], i < sizeof own.attr ? 0 : 0xaa);
    return 0;
}
