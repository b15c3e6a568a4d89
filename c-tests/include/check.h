/* check.h: what the test programs share. Each program shows one behaviour; it exits 0 (right), 1 (wrong, and says
 * where) or 77 (this machine lacks what it takes, and says what). */
#ifndef CHECK_H
#define CHECK_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <topdown.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include "expect.h"

/* fails on NaN, too */
#define CHECK_NEAR(a, b, within) check_near(__FILE__, __LINE__, #a, #b, a, b, within)
static inline void check_near(const char *file, int line, const char *a, const char *b, double x, double y, double within)
{
    if (!(fabs(x - y) <= within)) {
        fprintf(stderr, "%s:%d: %s is %.9g, %s is %.9g, not within %.9g\n", file, line, a, x, b, y, within);
        exit(1);
    }
}

/* a call that has to succeed */
#define td_must(call) check_td(__FILE__, __LINE__, #call, call)
static inline void check_td(const char *file, int line, const char *call, int code)
{
    char text[1024] = "";
    if (code == 0)
        return;
    td_last_error(text, sizeof text);
    fprintf(stderr, "%s:%d: %s: %d (%s): %s\n", file, line, call, code, td_strerror(code), text);
    exit(1);
}

/* Ice Lake, Tiger Lake, Rocket Lake: PERF_METRICS without its upper half */
static inline int level_1_cpu(void)
{
#if defined(__x86_64__)
    static const unsigned models[] = {0x6a, 0x6c, 0x7d, 0x7e, 0x8c, 0x8d, 0xa7};
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid(0, &a, &b, &c, &d) || b != signature_INTEL_ebx || !__get_cpuid(1, &a, &b, &c, &d) || (a >> 8 & 15) != 6)
        return 0;
    for (size_t k = 0; k < sizeof models / sizeof models[0]; k++)
        if (models[k] == ((a >> 4 & 15) | (a >> 12 & 0xf0)))
            return 1;
#endif
    return 0;
}

/* Decodes level 2, or says that there is none: the upper halves are empty, and so they always are on this CPU. */
static inline int has_raw_l2(uint64_t slots_a, uint64_t metrics_a, uint64_t slots_b, uint64_t metrics_b, struct td_l2 *l2)
{
    const int code = td_decode_raw_l2(slots_a, metrics_a, slots_b, metrics_b, l2);
    if ((metrics_a | metrics_b) >> 32 == 0 && level_1_cpu()) {
        CHECK_EQ(code, -ENOTSUP);
        return 0;
    }
    td_must(code);
    return 1;
}

/* the start of this thread's last error text that holds `word`, or NULL */
static inline const char *last_error_with(const char *word)
{
    static __thread char text[1024];
    text[0] = 0;
    td_last_error(text, sizeof text);
    return strstr(text, word);
}

/* Executes about this many instructions in user mode, two for each turn, and nothing else. */
static inline void work(uint64_t instructions)
{
#if defined(__x86_64__)
    uint64_t turns = instructions / 2 + 1;
    __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(turns) : : "cc");
#elif defined(__aarch64__)
    uint64_t turns = instructions / 2 + 1;
    __asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(turns) : : "cc");
#else
    for (volatile uint64_t turns = instructions / 4; turns > 0;)
        turns = turns - 1;
#endif
}

/* A handle on the simulated PMU; level 0 is the deepest. */
static inline td_t *simulated(uint32_t level)
{
    struct td_options options;
    td_t *td = NULL;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.flags = TD_FLAG_SIMULATE;
    options.level = level;
    td_must(td_open(&td, &options));
    CHECK(td != NULL);
    return td;
}

/* Level 1 shares in the order of the structure; `array` has room for four. */
static inline void l1_array(const struct td_l1 *l1, double *array)
{
    array[0] = l1->retiring, array[1] = l1->bad_speculation, array[2] = l1->frontend_bound, array[3] = l1->backend_bound;
}

/* Level 2 shares; `array` has room for eight. */
static inline void l2_array(const struct td_l2 *l2, double *array)
{
    array[0] = l2->heavy_operations, array[1] = l2->light_operations, array[2] = l2->branch_mispredicts;
    array[3] = l2->machine_clears, array[4] = l2->fetch_latency, array[5] = l2->fetch_bandwidth;
    array[6] = l2->memory_bound, array[7] = l2->core_bound;
}

static inline pthread_t start_thread(void *(*start)(void *), void *argument)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, start, argument), 0);
    return thread;
}

static inline void join_thread(pthread_t thread)
{
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* A child process ends, and finds nothing wrong. */
static inline void child_is_well(pid_t child)
{
    int status = -1;
    CHECK(child > 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

/* How many of this process's descriptors are perf events. */
static inline int perf_descriptors(void)
{
    char target[64];
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    CHECK(directory != NULL);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        const ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1);
        target[length > 0 ? length : 0] = 0;
        count += strstr(target, "perf_event") != NULL;
    }
    closedir(directory);
    return count;
}

/* Numbers that look random and are the same for the same seed (splitmix64). */
static inline uint64_t next_random(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* A seed: the first argument, or the time. The caller prints it, so that a failure can be repeated. */
static inline uint64_t seed_of(int argc, char **argv)
{
    const char *explored = getenv("TOPDOWN_SEED");
    return argc > 1 ? strtoull(argv[1], NULL, 0) : explored && *explored ? strtoull(explored, NULL, 0) : 1;
}

/* What has to pass a change has to be quick (c-tests/in-vm sets GATE; c-tests/run and tools/sanitized, too, where a checker makes all slow). */
static inline int in_gate(void)
{
    const char *gate = getenv("GATE");
    return gate && *gate;
}

/* So many of them; in the gate a fourth. */
static inline long repeats(long all) { return in_gate() ? (all + 3) / 4 : all; }
#endif
