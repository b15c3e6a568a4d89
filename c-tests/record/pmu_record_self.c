/* A program that records itself gets a profile in which the truth is within the interval of each share, in threads that were there and in
 * one that starts later; nothing is lost by an unknown ending, by a file that cannot be opened, or by a full disk; fork, exec, exit,
 * seteuid, closed descriptors and a limit of them do no harm.
 * needs: counters, not-hybrid */
#include "../command/lib/stat.h"
#include "../command/lib/profile.h"
#include "coverage.h"
#define work call_functions /* (pmu.h has another) */
#include "../command/lib/work.h"
#undef work
#include <topdown_record.h>

#define must(call) check_call(__LINE__, #call, call)
static void check_call(int line, const char *call, int code)
{
    char text[1000];
    if (code == 0)
        return;
    td_record_last_error(text, sizeof text);
    FAIL("line %d: %s: %d: %s", line, call, code, text);
}

static const struct td_record_options OPTIONS = {.size = sizeof OPTIONS, .frequency = 2000, .max_overhead_ppm = 500000, .gap = 300};

enum { FUNCTIONS = 4, THREADS = 3 };
static double spent[THREADS][MOST_FUNCTIONS];
static pthread_t threads[THREADS];

static void run(int k, uint64_t millions)
{
    static struct part parts[THREADS];
    parts[k] = (struct part){millions * 1000000, 88172645463325252u + 977u * (unsigned)k, spent[k]};
    CHECK(pthread_create(&threads[k], NULL, call_functions, &parts[k]) == 0);
}

/* The profile in r.csv is true of what the threads have done. */
static void profile_is_true(void)
{
    static struct csv csv;
    csv_read(&csv, in_scratch("r.csv"));
    double total = 0, worst = 0;
    int told = 0;
    for (int k = 0; k < THREADS * FUNCTIONS; k++)
        total += spent[k / FUNCTIONS][k % FUNCTIONS];
    for (unsigned k = 0; k < FUNCTIONS; k++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", k);
        const int row = row_of(&csv, name, "own");
        CHECK(row > 0);
        const struct truth truth = truth_of(mix_of_function(k));
        told += shares_are_true(&csv, row, &truth, 1, &worst) > 0;
        lies_within(name, number(&csv, row, "time", ""), number(&csv, row, "time", "_low"), number(&csv, row, "time", "_high"),
                    (spent[0][k] + spent[1][k] + spent[2][k]) / total);
    }
    free(csv.text);
    fprintf(stderr, "%d functions told, worst share %.2f points off\n", told, 100 * worst);
    CHECK_EQ(told, FUNCTIONS);
}

/* How many entries a directory of /proc/self has whose links (if `link`) are to events. */
static int entries(const char *directory, int link)
{
    DIR *const open = opendir(directory);
    char target[64];
    int n = 0;
    CHECK(open != NULL);
    for (struct dirent *entry; (entry = readdir(open));) {
        const ssize_t length = link ? readlinkat(dirfd(open), entry->d_name, target, sizeof target) : 0;
        n += !link || (length > 0 && strncmp(target, "anon_inode:[perf_event]", (size_t)length) == 0);
    }
    closedir(open);
    return n;
}

/* In a child whose parent is recorded. */
static void in_child(void)
{
    char text[1000];
    CHECK_EQ(td_record_stop(in_scratch("r.csv")), -ENODATA);
    CHECK(td_record_last_error(text, sizeof text) > 0 && strstr(text, "forked from process") != NULL);
    CHECK_EQ(entries("/proc/self/fd", 1), 0);
    must(td_record_start(&OPTIONS)); /* its own */
    must(td_record_stop(NULL));
    CHECK_EQ(td_record_stop(NULL), -ENODATA);
    must(td_record_start(&OPTIONS));
}

static void children(void)
{
    for (int k = 0; k < 3; k++) {
        int status;
        const pid_t child = fork();
        if (child == 0) {
            stat_scratch[0] = 0; /* (it is the parent's to remove) */
            in_child();
            if (k == 0)
                execl("/bin/true", "true", (char *)NULL);
            if (k == 1)
                exit(0); /* with a recording under way */
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child);
        CHECK_EQ(status, 0);
    }
}

static void *stop_it(void *path)
{
    must(td_record_stop(path));
    return NULL;
}

static void two_threads_and_a_later_one(void)
{
    run(0, 200);
    run(1, 200);
    must(td_record_start(&OPTIONS));
    run(2, 200);
    CHECK_EQ(td_record_start(NULL), -EBUSY);
    CHECK_EQ(entries("/proc/self/fd", 1), 0);
    CHECK(seteuid(geteuid()) == 0); /* (the C library has each thread do it) */
    for (int fd = 3; fd < 100; fd++)
        close(fd);
    children();
    for (int k = 0; k < THREADS; k++)
        pthread_join(threads[k], NULL);
    CHECK_EQ(td_record_stop("profile.xyz"), -EINVAL);
    CHECK_EQ(td_record_stop("/nowhere/profile.csv"), -ENOENT);
    CHECK_EQ(td_record_start(NULL), -EBUSY);
    CHECK_EQ(td_record_stop("/dev/full"), -ENOSPC);
    CHECK_EQ(td_record_start(NULL), -EBUSY);
    pthread_t other;
    CHECK(pthread_create(&other, NULL, stop_it, in_scratch("r.csv")) == 0 && pthread_join(other, NULL) == 0);
    CHECK_EQ(td_record_stop(NULL), -ENODATA);
    profile_is_true();
}

static int until;
static void *wait_in(void *unused)
{
    char byte;
    CHECK(read(until, &byte, 1) == 0);
    return unused;
}

/* More events than this process may have descriptors. */
static void many_threads(void)
{
    enum { MANY = 40 };
    static char text[1000000];
    pthread_t many[MANY];
    int ends[2];
    struct rlimit limit;
    CHECK(pipe(ends) == 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const struct rlimit low = {64, limit.rlim_max};
    until = ends[0];
    for (int k = 0; k < MANY; k++)
        CHECK(pthread_create(&many[k], NULL, wait_in, NULL) == 0);
    CHECK(setrlimit(RLIMIT_NOFILE, &low) == 0);
    must(td_record_start(NULL));
    must(td_record_stop(in_scratch("r.json")));
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == 64);
    FILE *const file = fopen(in_scratch("r.json"), "r");
    CHECK(file != NULL && fread(text, 1, sizeof text - 1, file) > 0 && fclose(file) == 0);
    CHECK(strstr(text, "\"threads\": 41,") != NULL && strstr(text, "\"threads_refused\": 0,") != NULL);
    close(ends[1]);
    for (int k = 0; k < MANY; k++)
        pthread_join(many[k], NULL);
}

static void a_hundred_times(void)
{
    const int descriptors = entries("/proc/self/fd", 0), tasks = entries("/proc/self/task", 0);
    for (int k = 0; k < 100; k++) {
        must(td_record_start(&OPTIONS));
        must(td_record_stop(NULL));
    }
    CHECK_EQ(entries("/proc/self/fd", 0), descriptors);
    while (entries("/proc/self/task", 0) > tasks)
        sched_yield(); /* (one that was joined is in the list until the kernel has done with it) */
    static char maps[100000];
    FILE *const file = fopen("/proc/self/maps", "r");
    CHECK(file != NULL && fread(maps, 1, sizeof maps - 1, file) > 0 && fclose(file) == 0);
    CHECK(strstr(maps, "perf_event") == NULL);
}

int main(void)
{
    CHECK(geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0));
    stat_begins();
    count = FUNCTIONS;
    length = 20000;
    two_threads_and_a_later_one();
    a_hundred_times();
    many_threads();
    return 0;
}
