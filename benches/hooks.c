/* What a hooked function costs more than one that is not, and a call that -finstrument-functions makes for a function that
 * nobody wants measured: ticks of the time-stamp counter, as in bench.c. Runs itself under the preload library. */
#define _GNU_SOURCE
#include <ctype.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REPEATS 200

extern void __cyg_profile_func_enter(void *function, void *caller);
extern void __cyg_profile_func_exit(void *function, void *caller);

static inline uint64_t rdtsc(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return low | (uint64_t)high << 32;
}

static int nothing(int x) { return x; }

static int instrumented(int x)
{
    __cyg_profile_func_enter((void *)(uintptr_t)nothing, NULL);
    __cyg_profile_func_exit((void *)(uintptr_t)nothing, NULL);
    return x;
}

/* The least of many: what it costs when nothing interrupts. */
static uint64_t ticks(int (*volatile what)(int))
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < REPEATS; i++) {
        uint64_t begun = rdtsc();
        what('a');
        uint64_t ended = rdtsc();
        if (ended - begun < least)
            least = ended - begun;
    }
    return least;
}

int main(void)
{
    if (!getenv("LD_PRELOAD")) {
        char self[PATH_MAX] = "", library[PATH_MAX + 40];
        if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
            return 1;
        snprintf(library, sizeof library, "%s", self);
        *strrchr(library, '/') = 0;
        strcpy(strrchr(library, '/'), "/release/libtopdown-preload.so");
        if (access(library, R_OK)) {
            fprintf(stderr, "hooks: %s is not there\n", library);
            return 77;
        }
        setenv("LD_PRELOAD", library, 1);
        setenv("TOPDOWN_REGIONS", "libc.so.6:toupper", 1);
        setenv("TOPDOWN_FUNCTIONS", "nobody_has_this_name", 1);
        execl(self, self, (char *)NULL);
        return 126;
    }
    /* glibc has the same code for these two */
    printf("%-58s %7lu\n", "a hooked function, begun and ended", (unsigned long)(ticks(toupper) - ticks(tolower)));
    printf("%-58s %7lu\n", "an instrumented function that is not wanted",
           (unsigned long)(ticks(instrumented) - ticks(nothing)));
    return 0;
}
