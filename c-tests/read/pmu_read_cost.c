/* What a reading of registers costs, in instructions: td_read, and under the preload library a region that is not measured. */
#include "pmu.h"
#include "preload.h"
#include <libgen.h>

enum { REPEATS = 200, MOST_READ = 44, MOST_REGION = 160 }; /* with the calls */

static td_t *td;
static struct td_sample sample;

static inline uint64_t rdtsc(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return low | (uint64_t)high << 32;
}

static __attribute__((noinline)) void nothing(void) { __asm__ volatile(""); }
static __attribute__((noinline)) void reading(void) { td_read(td, &sample); }
static __attribute__((noinline)) void one_region(void)
{
    td_region_begin("region");
    td_region_end("region");
}

/* The least of many: what it costs when nothing interrupts, and no window is opened. */
static uint64_t ticks(void (*volatile what)(void))
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < REPEATS; i++) {
        const uint64_t begun = rdtsc();
        what();
        const uint64_t ended = rdtsc();
        least = ended - begun < least ? ended - begun : least;
    }
    return least;
}

static void costs(const char *what, void (*function)(void), uint64_t most)
{
    const uint64_t cost = ticks(function) - ticks(nothing);
    printf("%s: %lu instructions\n", what, (unsigned long)cost);
    CHECK(cost > 20); /* they are counted */
    CHECK(cost <= most);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (preloaded()) {
        costs("a region", one_region, MOST_REGION);
        return 0;
    }
    const struct td_options registers = options_of(TD_FLAG_REGISTERS, 0);
    td = measured(&registers);
    needs_known_mix(); /* where the time-stamp counter counts instructions */
    struct td_sample first;
    td_must(td_read(td, &first));
    costs("td_read", reading, MOST_READ);
    CHECK(sample.slots > first.slots);
    td_close(td);

    char library[PATH_MAX + 80], self[PATH_MAX];
    CHECK(realpath("/proc/self/exe", self) != NULL);
    snprintf(library, sizeof library, "%s/../release/libtopdown-preload.so", dirname(strdup(self)));
    CHECK(exists(library));
    setenv("LD_PRELOAD", library, 1);
    setenv("TOPDOWN_SOURCE", "registers", 1);
    setenv("TOPDOWN_OUTPUT", "/dev/null", 1);
    fflush(stdout);
    execl(self, argv[0], (char *)NULL);
    FAIL("%s does not start", self);
}
