/* Threads run as without the library: with little stack, cancelled at any moment, ended inside a region, and many. */
#include "preload.h"
#include <dirent.h>

/* As little stack as there may be, nearly all of which the thread wants for itself. */
static void *wants_stack(void *unused)
{
    volatile char own[9000];
    for (size_t k = 0; k < sizeof own; k++)
        own[k] = (char)k;
    return unused;
}
static void *with_region(void *unused) { region("little stack", 100); return unused; }
static int little_stack(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    CHECK_EQ(pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN), 0);
    for (int k = 0; k < 10; k++) {
        CHECK_EQ(pthread_create(&thread, &attributes, k % 2 ? with_region : wants_stack, NULL), 0);
        join_thread(thread);
    }
    return 0;
}
static void little_stack_report(const char *csv) { EXECUTED(csv, "little stack", 500); }

/* A thread that is cancelled before it has come anywhere dies where it would have died, and holds no lock. */
static void *has_no_point(void *done)
{
    region("no point", 3);
    ++*(int *)done;
    pthread_testcancel();
    return NULL;
}
static int cancels(void)
{
    int done = 0;
    for (int k = 0; k < 1000; k++) {
        pthread_t thread = start_thread(has_no_point, &done);
        CHECK_EQ(pthread_cancel(thread), 0);
        join_thread(thread);
    }
    printf("%d came to their only point\n", done);
    return 0;
}
static void cancels_report(const char *csv) { EXECUTED(csv, "no point", 3000); }

static void *ends_inside(void *how)
{
    td_region_begin("inside");
    if (how)
        pthread_exit(how);
    return NULL;
}
static int ends_in_regions(void)
{
    for (size_t k = 0; k < 10; k++)
        join_thread(start_thread(ends_inside, (void *)(k % 2)));
    return 0;
}
static void inside_report(const char *csv)
{
    EXECUTED(csv, "inside", 0);
    CHECK_EQ(figure(csv, "inside", "unended"), 10);
}

/* Destructors of thread-local things that come after the library's have regions that nobody can read: they are missed. */
static pthread_key_t key;
static void destructor(void *turn)
{
    region("destructor", 1);
    if ((size_t)turn > 1)
        pthread_setspecific(key, (void *)((size_t)turn - 1));
}
static void *has_specific(void *unused) { pthread_setspecific(key, (void *)3); region("thread", 1); return unused; }
static int destructors(void)
{
    CHECK_EQ(pthread_key_create(&key, destructor), 0);
    for (int k = 0; k < 10; k++)
        join_thread(start_thread(has_specific, NULL));
    return 0;
}
static void destructors_report(const char *csv)
{
    EXECUTED(csv, "thread", 10);
    EXECUTED(csv, "destructor", 0);
    CHECK_EQ(figure(csv, "destructor", "missed"), 30);
}

/* Ten thousand threads of one region each: all are counted, in a table that has its bound (32,768 records of a page). */
static void *short_one(void *unused) { region("short", 2); return unused; }
static int many(void)
{
    pthread_t threads[10];
    for (int k = 0; k < 1000; k++) {
        for (int n = 0; n < 10; n++)
            threads[n] = start_thread(short_one, NULL);
        for (int n = 0; n < 10; n++)
            join_thread(threads[n]);
    }
    return 0;
}
static void many_report(const char *csv)
{
    char pattern[PATH_MAX + 300];
    EXECUTED(csv, "short", 20000);
    EXECUTED(csv, NULL, 10001);
    DIR *directory = opendir(preload_scratch);
    CHECK(directory != NULL);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        struct stat about;
        snprintf(pattern, sizeof pattern, "%s/%s", preload_scratch, entry->d_name);
        if (strstr(entry->d_name, ".topdown") && stat(pattern, &about) == 0)
            CHECK(about.st_size <= 32769l << 12);
    }
    closedir(directory);
}

static const struct preload_case CASES[] = {
    {"little stack", little_stack, little_stack_report, NULL}, {"cancel", cancels, cancels_report, NULL},
    {"end inside a region", ends_in_regions, inside_report, NULL}, {"destructors", destructors, destructors_report, NULL},
    {"many", many, many_report, NULL},
};
PRELOAD_MAIN(CASES)
