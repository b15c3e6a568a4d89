/* counters.h: what the tests of counters share. */
#ifndef COUNTERS_H
#define COUNTERS_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "expect.h"
#include "vm/mix.h"
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CYCLES = 0x3c, INSTRUCTIONS = 0xc0, BRANCHES = 0xc4, SLOTS = 0x400, RETIRING = 0x8000 };

static inline int there(const char *path)
{
    struct stat unused;
    return stat(path, &unused) == 0;
}

/* This thread's event, in user mode. */
static inline struct perf_event_attr attr_of(uint32_t type, uint64_t config)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.type = type;
    attr.size = sizeof attr;
    attr.config = config;
    attr.exclude_kernel = 1;
    return attr;
}

/* A machine with counters that say what pmu.h calls the truth: the emulated one. */
static inline void needs_counters(void)
{
    if (!there("/sys/bus/event_source/devices/cpu") && !there("/sys/bus/event_source/devices/cpu_core"))
        SKIP("no counters");
}

static inline void needs_known_counts(void)
{
    char vendor[16] = "";
    FILE *file = fopen("/sys/class/dmi/id/sys_vendor", "r");
    needs_counters();
    if (file == NULL || fgets(vendor, sizeof vendor, file) == NULL || strncmp(vendor, "QEMU", 4) != 0)
        SKIP("the true counts are known on the emulated machine only");
    fclose(file);
}

/* Executes so many instructions, and a handful more at each end. */
static inline void work(uint64_t instructions)
{
    uint64_t turns = instructions / 2;
    __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(turns) : : "cc");
}

static inline uint64_t rdtsc(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return low | (uint64_t)high << 32;
}

/* Leaves the CPU, and comes back. */
static inline void sleep_a_little(void)
{
    usleep(1000);
}
#endif
