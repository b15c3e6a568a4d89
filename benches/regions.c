/* What regions cost: ticks of the time-stamp counter, as in bench.c. Runs itself under the preload library, without it, and
 * under LIKWID if that is installed and works here. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <limits.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <topdown_region.h>
#include <unistd.h>

#define REPEATS 200
#define EXECUTIONS 20000

extern char **environ;
extern void __cyg_profile_func_enter(void *function, void *caller) __attribute__((weak));
extern void __cyg_profile_func_exit(void *function, void *caller) __attribute__((weak));

static inline uint64_t rdtsc(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return low | (uint64_t)high << 32;
}

/* Work of so many instructions, in blocks of 256. */
static void work(uint64_t instructions)
{
    for (uint64_t n = instructions / 256; n > 0; n--)
        __asm__ volatile(".rept 254\n\tnop\n\t.endr");
}

static int nothing(int x)
{
    __asm__ volatile("");
    return x;
}

static int region(int x)
{
    td_region_begin("region");
    td_region_end("region");
    return x;
}

static int long_name(int x)
{
    td_region_begin("a region with a name of forty characters");
    td_region_end("a region with a name of forty characters");
    return x;
}

static int instrumented(int x)
{
    __cyg_profile_func_enter((void *)(uintptr_t)nothing, NULL);
    __cyg_profile_func_exit((void *)(uintptr_t)nothing, NULL);
    return x;
}

static int (*marker_start)(const char *), (*marker_stop)(const char *);
static int marker(int x)
{
    marker_start("region");
    marker_stop("region");
    return x;
}

static uint64_t once(int (*volatile what)(int))
{
    const uint64_t begun = rdtsc();
    what('a');
    return rdtsc() - begun;
}

/* The least of many: what it costs when nothing interrupts, and the execution is not measured. */
static uint64_t ticks(int (*what)(int))
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < REPEATS; i++) {
        const uint64_t one = once(what);
        least = one < least ? one : least;
    }
    return least;
}

/* The mean, with work of so many instructions in between. */
static double mean(int (*what)(int), uint64_t instructions)
{
    uint64_t all = 0;
    for (int i = 0; i < EXECUTIONS; i++) {
        all += once(what);
        work(instructions);
    }
    return (double)all / EXECUTIONS;
}

static void row(const char *what, double cost) { printf("%-58s %7.0f\n", what, cost); }

static int rows(void)
{
    const uint64_t none = ticks(nothing);
    row("a region, begun and ended", (double)(ticks(region) - none));
    row("the same, with a name of forty characters", (double)(ticks(long_name) - none));
    printf("%-58s %7.0f (%.1f %% of the time)\n", "the same with those that are measured, each 20,000 instructions",
           mean(region, 20000) - (double)none, 100 * (mean(region, 20000) - (double)none) / 20000);
    /* glibc has the same code for these two */
    row("a hooked function, begun and ended", (double)(ticks(toupper) - ticks(tolower)));
    row("an instrumented function that is not wanted", (double)(ticks(instrumented) - none));
    return 0;
}

/* Runs this program, or the one before it, and returns its exit status. */
static int run(char *const *command)
{
    pid_t child;
    int status;
    fflush(stdout);
    if (posix_spawnp(&child, command[0], NULL, NULL, command, environ) != 0 || waitpid(child, &status, 0) != child)
        return 127;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* Milliseconds of CPU time, of its children too. (On the emulated machine files take long to come, and take no CPU time.) */
static double timed(char *const *command)
{
    struct rusage before, after;
    getrusage(RUSAGE_CHILDREN, &before);
    if (run(command) != 0)
        exit(1);
    getrusage(RUSAGE_CHILDREN, &after);
    timersub(&after.ru_utime, &before.ru_utime, &after.ru_utime);
    timersub(&after.ru_stime, &before.ru_stime, &after.ru_stime);
    timeradd(&after.ru_utime, &after.ru_stime, &after.ru_utime);
    return 1e3 * (double)after.ru_utime.tv_sec + 1e-3 * (double)after.ru_utime.tv_usec;
}

int main(int argc, char **argv)
{
    char self[PATH_MAX], library[PATH_MAX + 40], topdown[PATH_MAX + 40];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return 1;
    self[length] = 0;
    if (argc > 1 && strcmp(argv[1], "rows") == 0)
        return rows();
    if (argc > 1 && strcmp(argv[1], "work") == 0) {
        work(2000000000);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "likwid") == 0) {
        void *likwid = dlopen("liblikwid.so", RTLD_NOW);
        int (*init)(void) = (int (*)(void))(uintptr_t)(likwid ? dlsym(likwid, "likwid_markerInit") : NULL);
        if (init == NULL)
            return 77;
        marker_start = (int (*)(const char *))(uintptr_t)dlsym(likwid, "likwid_markerStartRegion");
        marker_stop = (int (*)(const char *))(uintptr_t)dlsym(likwid, "likwid_markerStopRegion");
        init();
        row("LIKWID's marker, started and stopped", (double)(ticks(marker) - ticks(nothing)));
        return 0;
    }
    snprintf(library, sizeof library, "%.*s/../release/libtopdown-preload.so", (int)(strrchr(self, '/') - self), self);
    snprintf(topdown, sizeof topdown, "%.*s/../release/topdown", (int)(strrchr(self, '/') - self), self);
    if (access(library, R_OK)) {
        fprintf(stderr, "regions: %s is not there\n", library);
        return 77;
    }
    row("a region without the preload library", (double)(ticks(region) - ticks(nothing)));
    setenv("TOPDOWN_OUTPUT", "/dev/null", 1);
    setenv("TOPDOWN_REGIONS", "libc.so.6:toupper", 1);
    setenv("TOPDOWN_FUNCTIONS", "nobody_has_this_name", 1);
    setenv("LD_PRELOAD", library, 1);
    static const char *const sources[] = {"registers", "counters"};
    for (int i = 0; i < 2; i++) {
        setenv("TOPDOWN_SOURCE", sources[i], 1);
        printf("TOPDOWN_SOURCE=%s\n", sources[i]);
        if (run((char *[]){self, "rows", NULL}) != 0)
            return 1;
    }
    unsetenv("TOPDOWN_SOURCE");
    unsetenv("LD_PRELOAD");
    unsetenv("TOPDOWN_REGIONS");
    const int code = run((char *[]){"likwid-perfctr", "-C", "0", "-g", "INSTR_RETIRED_ANY:FIXC0", "-m", self, "likwid", NULL});
    if (code != 0)
        printf("(LIKWID's marker: likwid-perfctr is not here, or finds no counters)\n");
    const double bare = timed((char *[]){self, "work", NULL});
    const double measured = timed((char *[]){topdown, "run", "-o", "/dev/null", "--", self, "work", NULL});
    printf("topdown run of a program of 2,000 M instructions: %.4f of the CPU time (%.1f ms more)\n", measured / bare,
           measured - bare);
    return 0;
}
