/* cost.h: what a call costs, in instructions: on the emulated machine the time-stamp counter counts them. */
#ifndef COST_H
#define COST_H
#include "pmu.h"
#include <libgen.h>
#include <limits.h>

static __attribute__((noinline)) void cost_of_nothing(void) { __asm__ volatile(""); }

/* The least of many: what it takes when nothing interrupts, and no window is opened. */
static inline uint64_t least_ticks(void (*volatile what)(void))
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 200; i++) {
        const uint64_t begun = __builtin_ia32_rdtsc();
        what();
        const uint64_t ticks = __builtin_ia32_rdtsc() - begun;
        least = ticks < least ? ticks : least;
    }
    return least;
}

/* At most so many instructions. */
static inline void costs(const char *name, void (*what)(void), uint64_t most)
{
    const uint64_t cost = least_ticks(what) - least_ticks(cost_of_nothing);
    printf("%s: %lu instructions\n", name, (unsigned long)cost);
    CHECK(cost > 20); /* they are counted */
    CHECK(cost <= most);
}

/* This program goes on as another run of it, under the preload library, with one argument, and leaves no report. */
static inline void again_under_preload(const char *source, const char *argument)
{
    char library[PATH_MAX + 80], self[PATH_MAX], directory[PATH_MAX];
    CHECK(realpath("/proc/self/exe", self) != NULL);
    strcpy(directory, self);
    snprintf(library, sizeof library, "%s/../release/libtopdown-preload.so", dirname(directory));
    CHECK(exists(library));
    setenv("LD_PRELOAD", library, 1);
    setenv("TOPDOWN_SOURCE", source, 1);
    setenv("TOPDOWN_OUTPUT", "/dev/null", 1);
    fflush(stdout);
    execl(self, self, argument, (char *)NULL);
    FAIL("%s does not start", self);
}
#endif
