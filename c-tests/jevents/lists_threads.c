/* The first use of the list by many threads at once loads its file once, and all find the same; and while some
 * threads replace the list, others find one or the other, whole. */
#include "event_files.h"
#include <linux/perf_event.h>
#include <pthread.h>
#include <sys/inotify.h>

enum { THREADS = 32, EVENTS = 3000 };

static pthread_barrier_t start;
static const char *list, *shorter;

/* What a thread saw. */
struct seen {
    int walked, resolved, reversed;
    int count;
    unsigned long long sum;
    struct perf_event_attr attr;
};

static int add(void *data, char *name, char *event, char *desc)
{
    struct seen *seen = data;
    seen->count++;
    for (const char *text[] = {name, event, desc}, **next = text; next < text + 3; next++)
        for (const char *byte = *next; *byte; byte++)
            seen->sum = seen->sum * 31 + (unsigned char)*byte;
    return 0;
}

static void *use(void *data)
{
    struct seen *seen = data;
    char *name = NULL, *desc = NULL;
    pthread_barrier_wait(&start);
    if (seen->walked) { /* every second one begins with a name */
        seen->resolved = resolve_event("MSR.TWO", &seen->attr);
        seen->walked = walk_events(add, seen);
    } else {
        seen->walked = walk_events(add, seen);
        seen->resolved = resolve_event("msr.two", &seen->attr);
    }
    seen->reversed = rmap_event(0x7734, &name, &desc);
    CHECK(name && desc && strcmp(name, "reversed") == 0 && strcmp(desc, "Back") == 0);
    return NULL;
}

static void write_list(const char *name, int events)
{
    FILE *file = fopen(event_path(name), "w");
    CHECK(file != NULL);
    fputs("{ \"Events\": [ { \"EventName\": \"reversed\", \"EventCode\": \"0x34\", \"UMask\": \"0x77\", \"BriefDescription\": \"Back\" },\n", file);
    fputs("{ \"EventName\": \"MSR.TWO\", \"Unit\": \"msr\", \"EventCode\": \"0x2\" }", file);
    for (int i = 2; i < events; i++)
        fprintf(file, ",\n{ \"EventName\": \"LIST_%s.%d\", \"EventCode\": \"%#x\", \"BriefDescription\": \"Number %d\" }", name, i, i, i);
    fputs(" ] }\n", file);
    CHECK_EQ(fclose(file), 0);
}

static int opened(int watch)
{
    char events[4096] __attribute__((aligned(8)));
    const ssize_t length = read(watch, events, sizeof events); /* the same ones in a row are joined */
    int count = 0;
    CHECK(length >= 0);
    for (char *at = events; at < events + length; at += sizeof(struct inotify_event) + ((struct inotify_event *)at)->len)
        count += (((struct inotify_event *)at)->mask & IN_OPEN) != 0;
    return count;
}

static void *replace(void *unused)
{
    pthread_barrier_wait(&start);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(read_events(i % 2 ? list : shorter), 0);
    return unused;
}

static void *look(void *unused)
{
    char *name = NULL, *desc = NULL;
    pthread_barrier_wait(&start);
    for (int i = 0; i < 10; i++) {
        struct seen seen = {.count = 0};
        CHECK_EQ(walk_events(add, &seen), 0);
        if (seen.count != EVENTS && seen.count != 2)
            FAIL("a list of %d events", seen.count);
        CHECK_EQ(rmap_event(0x7734, &name, &desc), 0);
        CHECK(strcmp(name, "reversed") == 0);
    }
    return unused;
}

/* A thread that somebody cancels ends when the library is done. */
static void *cancelled(void *done)
{
    struct perf_event_attr attr;
    CHECK_EQ(pthread_cancel(pthread_self()), 0);
    CHECK_EQ(read_events(list), 0);
    CHECK_EQ(resolve_event("nonsense/x=y/", &attr), -1);
    jevent_print_attr(stdout, &attr);
    ++*(int *)done;
    pthread_testcancel();
    FAIL("it was not cancelled");
}

int main(void)
{
    pthread_t threads[THREADS];
    static struct seen seen[THREADS];
    event_files_begin();
    write_list("list", EVENTS);
    write_list("short", 2);
    list = event_path("list"), shorter = event_path("short");
    setenv("EVENTMAP", list, 1);
    const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    CHECK(watch >= 0);
    /* Reads between two openings keep them apart. */
    CHECK(inotify_add_watch(watch, list, IN_OPEN | IN_ACCESS | IN_CLOSE) >= 0);

    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        seen[i].walked = i % 2;
        CHECK_EQ(pthread_create(&threads[i], NULL, use, &seen[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(opened(watch), 1);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(seen[i].walked, 0);
        CHECK_EQ(seen[i].count, EVENTS);
        CHECK_EQ(seen[i].sum, seen[0].sum);
        CHECK_EQ(seen[i].resolved, seen[0].resolved);
        CHECK_EQ(seen[i].attr.config, seen[0].attr.config);
        CHECK_EQ(seen[i].reversed, 0);
    }
    if (access("/sys/bus/event_source/devices/msr/format/event", R_OK) == 0) {
        CHECK_EQ(seen[0].resolved, 0);
        CHECK_EQ(seen[0].attr.config, 2);
    }

    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, i % 4 ? look : replace, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);

    int done = 0;
    void *result = NULL;
    CHECK_EQ(pthread_create(&threads[0], NULL, cancelled, &done), 0);
    CHECK_EQ(pthread_join(threads[0], &result), 0);
    CHECK(result == PTHREAD_CANCELED && done == 1);
    return 0;
}
