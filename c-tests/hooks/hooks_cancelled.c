/* A computing thread that is cancelled asynchronously, wherever it is in a hook, a function built with -finstrument-functions, a mark, or
 * a call of LIKWID's or ITT's: it ends as it would alone, its cleanup handlers run, and those that come after it are measured. */
#include "hooks.h"
#include "lib/hooked.h"
#include <dlfcn.h>
#include <topdown_region.h>

#define THREADS 100

static volatile long turns;
static int cleaned;
static int (*likwid_start)(const char *), (*likwid_stop)(const char *);

/* The ITT API's static part, as far as the library looks at it. */
struct itt_id { unsigned long d1, d2, d3; };
static void *(*itt_domain)(const char *), *(*itt_string)(const char *);
static void (*itt_begin)(void *, struct itt_id, struct itt_id, void *), (*itt_end)(void *);
static struct itt_api { const char *name; void *pointer, *init, *null; int group; } itt_apis[] = {
    {"__itt_domain_create", &itt_domain, NULL, NULL, 0}, {"__itt_string_handle_create", &itt_string, NULL, NULL, 0},
    {"__itt_task_begin", &itt_begin, NULL, NULL, 0}, {"__itt_task_end", &itt_end, NULL, NULL, 0}, {NULL, NULL, NULL, NULL, 0},
};
static struct {
    unsigned char magic[8];
    unsigned long version[3];
    long flags[3];
    pthread_mutex_t mutex;
    void *lib, *handler, *path;
    struct itt_api *apis;
} itt = {{0xed, 0xab, 0xab, 0xec, 0x0d, 0xee, 0xda, 0x30}, {3, 0, 20201001}, {0}, PTHREAD_MUTEX_INITIALIZER, NULL, NULL, NULL, itt_apis};
static void *domain, *task;

static void find_apis(void)
{
    void (*init)(void *, int);
    *(void **)&likwid_start = dlsym(RTLD_DEFAULT, "likwid_markerStartRegion");
    *(void **)&likwid_stop = dlsym(RTLD_DEFAULT, "likwid_markerStopRegion");
    *(void **)&init = dlsym(RTLD_DEFAULT, "__itt_api_init");
    CHECK(likwid_start && likwid_stop && init);
    init(&itt, -1);
    CHECK((domain = itt_domain("domain")) && (task = itt_string("ITT's")));
}

#define QUIET __attribute__((noinline, no_instrument_function))
__attribute__((noinline)) int instrumented(int x);
__attribute__((noinline)) int instrumented(int x) { return x + 1; }

QUIET static void one_turn(int way)
{
    switch (way) {
    case 0: plain(1); break;
    case 1: instrumented(1); break;
    case 2:
        td_region_begin("mark");
        td_region_end("mark");
        break;
    case 3:
        td_region_begin("around");
        td_region_begin("a name that is longer than what is seen of it at sight");
        td_region_end("around");
        td_region_end("a name that is longer than what is seen of it at sight");
        td_region_end("never begun");
        break;
    case 4:
        likwid_start("LIKWID's");
        likwid_stop("LIKWID's");
        break;
    default: {
        const struct itt_id none = {0, 0, 0};
        itt_begin(domain, none, none, task);
        itt_end(domain);
    }
    }
}
#define WAYS 6

static void clean(void *check)
{
    CHECK_EQ(*(int *)check, 4711);
    cleaned++;
}

QUIET static void *computes(void *way)
{
    int check = 4711;
    pthread_cleanup_push(clean, &check);
    CHECK_EQ(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL), 0);
    for (;;) {
        one_turn((int)(size_t)way);
        turns++;
    }
    pthread_cleanup_pop(0);
    return NULL;
}

/* The type stays what the thread has set, and cancellation that was not asked for does not come. */
QUIET static void *lives(void *unused)
{
    int type = -1;
    CHECK_EQ(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL), 0);
    for (int way = 0; way < WAYS; way++)
        one_turn(way);
    CHECK_EQ(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type), 0);
    CHECK_EQ(type, PTHREAD_CANCEL_ASYNCHRONOUS);
    return unused;
}

int main(void)
{
    if (measured("TOPDOWN_REGIONS", "plain")) {
        find_apis();
        for (size_t way = 0; way < WAYS; way++) {
            for (int k = 0; k < THREADS; k++) {
                void *result = NULL;
                turns = 0;
                const pthread_t thread = start_thread(computes, (void *)way);
                while (turns < k % 50)
                    sched_yield();
                CHECK_EQ(pthread_cancel(thread), 0);
                CHECK_EQ(pthread_join(thread, &result), 0);
                CHECK(result == PTHREAD_CANCELED);
            }
        }
        CHECK(cleaned > WAYS * THREADS / 2 && cleaned <= WAYS * THREADS); /* (some are cancelled before they come to it) */
        join_thread(start_thread(lives, NULL));
        return 0;
    }
    long unended;
    CHECK(executed("plain", &unended) > 0 && executed("mark", &unended) > 0);
    CHECK(executed("LIKWID's", &unended) > 0 && executed("ITT's", &unended) > 0);
    return 0;
}
