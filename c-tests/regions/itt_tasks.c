/* A program instrumented for VTune, with much of what the ITT API has. */
#define INTEL_ITTNOTIFY_API_PRIVATE   /* for __itt_api_version */
#include <ittnotify.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static __itt_domain *domain, *another, *late;

static void *other(void *id)
{
    __itt_thread_set_name("other");
    __itt_region_end(domain, *(__itt_id *)id);      /* begun in the first thread: nothing to end here */
    __itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create("thread"));
    __itt_task_end(domain);
    return NULL;
}

void a_function(void)
{
}

/* A task within itself, more often than there is room for. */
static __attribute__((noinline)) void recursion(__itt_string_handle *task, int deep)
{
    __itt_task_begin(domain, __itt_null, __itt_null, task);
    if (deep > 1)
        recursion(task, deep - 1);
    __itt_task_end(domain);
}

/* Of each kind one that has no end, and then twenty that have: the later ones count. */
static void lost_ends(void)
{
    __itt_string_handle *lost = __itt_string_handle_create("lost task"), *beside = __itt_string_handle_create("beside"),
                        *region = __itt_string_handle_create("lost region"), *over = __itt_string_handle_create("lost overlapped");
    __itt_id id = __itt_id_make(&another, 9);

    for (int i = 0; i <= 20; i++) {
        __itt_task_begin(domain, __itt_null, __itt_null, lost);
        if (i > 0)
            __itt_task_end(domain);
        __itt_task_begin(domain, __itt_null, __itt_null, beside);
        __itt_task_end(domain);
    }
    for (int i = 0; i <= 20; i++) {
        __itt_region_begin(domain, id, __itt_null, region);
        if (i > 0)
            __itt_region_end(domain, id);
    }
    for (int i = 0; i <= 20; i++) {
        __itt_task_begin_overlapped(domain, id, __itt_null, over);
        if (i > 0)
            __itt_task_end_overlapped(domain, id);
    }
    for (int i = 0; i <= 20; i++) {
        __itt_frame_begin_v3(another, &id);
        if (i > 0)
            __itt_frame_end_v3(another, &id);
    }
}

/* What the collector does not have, the static part passes over. */
static void all_the_rest(void)
{
    static unsigned long long number = 3;
    __itt_domain *nothing = NULL;
    __itt_counter counter = __itt_counter_create("counter", "domain");
    __itt_counter counter_3 = __itt_counter_create_v3(domain, "counter", __itt_metadata_u64);
    __itt_histogram *histogram = __itt_histogram_create(domain, "histogram", __itt_metadata_u64, __itt_metadata_u64);
    __itt_clock_domain *clock = __itt_clock_domain_create(NULL, NULL);
    __itt_heap_function heap = __itt_heap_function_create("allocate", "domain");
    __itt_id id = __itt_id_make(&number, 1);

    __itt_counter_inc(counter);
    __itt_counter_set_value(counter, &number);
    __itt_counter_set_value_v3(counter_3, &number);
    __itt_histogram_submit(histogram, 1, &number, &number);
    __itt_id_create(domain, id);
    __itt_metadata_add(domain, id, __itt_string_handle_create("key"), __itt_metadata_u64, 1, &number);
    __itt_metadata_str_add(domain, id, __itt_string_handle_create("key"), "text", 0);
    __itt_formatted_metadata_add(domain, __itt_string_handle_create("%d"), 3);
    __itt_marker(domain, id, __itt_string_handle_create("marker"), __itt_scope_task);
    __itt_relation_add_to_current(domain, __itt_relation_is_child_of, id);
    __itt_task_group(domain, id, __itt_null, __itt_string_handle_create("group"));
    __itt_id_destroy(domain, id);
    __itt_frame_submit_v3(domain, NULL, __itt_get_timestamp(), __itt_timestamp_none);
    __itt_clock_domain_reset();
    __itt_task_begin_ex(domain, (__itt_clock_domain *)&number, 5, __itt_null, __itt_null,
                        __itt_string_handle_create("on a device"));
    __itt_task_end_ex(domain, (__itt_clock_domain *)&number, 6);
    __itt_task_begin_ex(domain, clock, 5, __itt_null, __itt_null, __itt_string_handle_create("by another clock"));
    __itt_task_end_ex(domain, clock, 6);
    __itt_heap_allocate_begin(heap, 8, 0);
    __itt_heap_internal_access_begin();
    __itt_sync_create(&number, "lock", "name", 0);
    __itt_sync_acquired(&number);
    __itt_sync_destroy(&number);
    __itt_suppress_push(__itt_suppress_all_errors);
    __itt_suppress_pop();
    __itt_thread_ignore();
    __itt_model_site_beginA("site");
    __itt_model_site_end_2();
    __itt_module_load(&number, &number + 1, "module");
    __itt_module_unload(&number);
    __itt_task_begin(nothing, __itt_null, __itt_null, NULL);
    __itt_task_end(nothing);
    __itt_task_begin(domain, __itt_null, __itt_null, NULL);
    __itt_task_end(domain);
    __itt_event_start(0);
    __itt_event_end(-1);
    __itt_event_end(12345);
    __itt_domain_create(NULL);
    __itt_string_handle_create(NULL);
    __itt_task_end(domain);                         /* none has begun */
    __itt_detach();
}

int main(void)
{
    __itt_domain *late_again;
    __itt_string_handle *outer, *inner, *x, *x_again;
    __itt_id id, id_2;
    __itt_event event;
    pthread_t thread;

    domain = __itt_domain_create("domain");         /* before the first call loads the collector */
    another = __itt_domain_create("another");
    outer = __itt_string_handle_create("outer");
    inner = __itt_string_handle_create("inner");
    id = __itt_id_make(&domain, 1);
    id_2 = __itt_id_make(&domain, 2);

    for (int i = 0; i < 3; i++) {
        __itt_task_begin(domain, __itt_null, __itt_null, outer);
        __itt_task_begin(domain, __itt_null, __itt_null, inner);
        __itt_task_end(domain);
        __itt_task_end(domain);
    }
    late = __itt_domain_create("late");             /* now the collector makes them */
    late_again = __itt_domain_create("late");
    x = __itt_string_handle_create("x");
    x_again = __itt_string_handle_create("x");
    if (__itt_get_collection_state() == __itt_collection_init_successful &&
        (!late || !late->flags || strcmp(late->nameA, "late") || late != late_again || !x || strcmp(x->strA, "x") ||
         x != x_again)) {
        puts("not the domain that was asked for");
        return 1;
    }
    if (__itt_get_collection_state() == __itt_collection_init_successful && !(__itt_api_version())) {
        puts("no version: OpenCV would take that for no collector");
        return 1;
    }

    __itt_task_begin(domain, __itt_null, __itt_null, outer);           /* tasks of two domains overlap */
    __itt_task_begin(another, __itt_null, __itt_null, __itt_string_handle_create("another's"));
    __itt_task_end(domain);
    __itt_task_end(another);

    __itt_task_begin_fn(late, __itt_null, __itt_null, (void *)(size_t)a_function);
    __itt_task_end(late);
    __itt_task_begin_ex(domain, NULL, 0, __itt_null, __itt_null, __itt_string_handle_create("with a time"));
    __itt_task_end_ex(domain, NULL, 0);

    __itt_task_begin_overlapped(domain, id, __itt_null, __itt_string_handle_create("id 1"));
    __itt_task_begin_overlapped(domain, id_2, __itt_null, __itt_string_handle_create("id 2"));
    __itt_task_end_overlapped(domain, id);
    __itt_task_end_overlapped(domain, id_2);

    __itt_region_begin(domain, id, __itt_null, __itt_string_handle_create("region"));
    __itt_frame_begin_v3(another, NULL);
    __itt_frame_begin_v3(domain, &id);
    __itt_frame_end_v3(domain, &id);
    __itt_frame_end_v3(another, NULL);

    event = __itt_event_create("event and more", 5);
    __itt_event_start(event);
    __itt_event_end(event);
    __itt_event_start(event);                       /* it has no end */
    __itt_event_start(event);
    __itt_event_end(event);
    __itt_event_end(event);

    __itt_pause();
    __itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create("paused"));
    __itt_resume();
    __itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create("resumed"));
    __itt_pause_scoped(__itt_collection_scope_all);
    __itt_task_end(domain);
    __itt_task_end(domain);
    __itt_resume_scoped(__itt_collection_scope_host);

    if (domain)
        domain->flags = 0;                          /* the program does not want it */
    __itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create("of no domain"));
    __itt_task_end(domain);
    if (domain)
        domain->flags = 1;

    if (pthread_create(&thread, NULL, other, &id) || pthread_join(thread, NULL))
        return 1;
    __itt_region_end(domain, id);
    all_the_rest();
    recursion(inner, 100);
    lost_ends();
    puts("done");
    return 0;
}
