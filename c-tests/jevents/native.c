/* Names of this kernel's own PMUs become attrs that it counts by: software, breakpoint, msr, uprobe, tracepoint; and
 * every event that it names resolves. What it does not permit is said, and left out. */
#define _GNU_SOURCE
#include "expect.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <jevents.h>
#include <linux/hw_breakpoint.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

static int counted;

/* Opens an event for this thread; -1 if this kernel has or permits no such, which is said. */
static int opened(const char *name, uint32_t bp_type)
{
    struct perf_event_attr attr;
    memset(&attr, 0xaa, sizeof attr);
    if (resolve_event(name, &attr) != 0)
        FAIL("%s does not resolve", name);
    attr.bp_type = bp_type;
    const int fd = perf_event_open(&attr, 0, -1, -1, 0);
    if (fd < 0)
        printf("left out: %s: %s\n", name, strerror(errno));
    return fd;
}

static uint64_t value(int fd)
{
    uint64_t value = 0;
    CHECK_EQ(read(fd, &value, sizeof value), sizeof value);
    return value;
}

static uint64_t ns(clockid_t clock)
{
    struct timespec time;
    CHECK_EQ(clock_gettime(clock, &time), 0);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* PERF_COUNT_SW_CPU_CLOCK */
static void cpu_clock(void)
{
    const uint64_t before = ns(CLOCK_MONOTONIC);
    const int fd = opened("software/config=0/u", 0);
    if (fd < 0)
        return;
    const uint64_t start = ns(CLOCK_THREAD_CPUTIME_ID); /* others may have the CPU in between */
    while (ns(CLOCK_THREAD_CPUTIME_ID) - start < 2000000)
        ;
    const uint64_t clock = value(fd), most = ns(CLOCK_MONOTONIC) - before;
    if (clock < 2000000 / 2 || clock > most)
        FAIL("the CPU clock says %llu ns, of at most %llu", (unsigned long long)clock, (unsigned long long)most);
    close(fd), counted++;
}

/* PERF_COUNT_SW_PAGE_FAULTS: one a page, in user space */
static void page_faults(void)
{
    enum { PAGES = 64 };
    const long page = sysconf(_SC_PAGESIZE);
    const int fd = opened("software/config=2/u", 0);
    if (fd < 0)
        return;
    volatile char *memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    madvise((void *)memory, PAGES * page, MADV_NOHUGEPAGE); /* fails if there are none */
    const uint64_t before = value(fd);
    for (int i = 0; i < PAGES; i++)
        memory[i * page] = 1;
    const uint64_t faults = value(fd) - before;
    if (faults < PAGES || faults > PAGES * (1 + SHADOW_PAGES) + 16)
        FAIL("%llu page faults on %d pages", (unsigned long long)faults, PAGES);
    close(fd), counted++;
}

/* A breakpoint: config1 is the address, config2 the length. */
static void writes(void)
{
    static volatile uint64_t watched __attribute__((aligned(8)));
    char name[100];
    snprintf(name, sizeof name, "breakpoint/config1=%p,config2=8/u", (void *)&watched);
    const int fd = opened(name, HW_BREAKPOINT_W);
    if (fd < 0)
        return;
    const uint64_t before = value(fd);
    for (int i = 0; i < 100; i++)
        watched = i;
    const uint64_t after = value(fd);
    if (after == 0)
        printf("left out: %s: this machine reports no hit\n", name);
    else
        CHECK_EQ(after - before, 100), counted++;
    close(fd);
}

/* The time stamp counter, between two readings of it: no more passed, and no less if the thread was not interrupted. */
static void tsc(void)
{
#if defined(__x86_64__)
    if (access("/sys/bus/event_source/devices/msr/events/tsc", F_OK) != 0)
        return;
    const int fd = opened("msr/tsc/", 0);
    if (fd < 0)
        return;
    uint64_t passed = 0;
    for (int i = 0; i < 100 && passed < 1000000; i++) {
        const uint64_t before = __rdtsc(), first = value(fd), inner = __rdtsc();
        while (__rdtsc() - inner < 1000000)
            ;
        passed = value(fd) - first;
        const uint64_t most = __rdtsc() - before;
        if (passed > most)
            FAIL("msr/tsc/ passed by %llu, of at most %llu", (unsigned long long)passed, (unsigned long long)most);
    }
    CHECK(passed >= 1000000);
    close(fd), counted++;
#endif
}

__attribute__((noinline)) static void probed(void)
{
    __asm__ volatile("" ::: "memory");
}

/* Where a function is in this program's file. */
static uint64_t offset_in_file(void (*function)(void))
{
    uint64_t start, end, offset, found = 0;
    char line[500];
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && (uintptr_t)function >= start && (uintptr_t)function < end)
            found = (uintptr_t)function - start + offset;
    fclose(maps);
    CHECK(found != 0);
    return found;
}

/* A probe on a function: config1 is the address of a path, config2 the offset in that file. */
static void calls(void)
{
    static char name[100];
    if (access("/sys/bus/event_source/devices/uprobe/type", R_OK) != 0)
        return;
    snprintf(name, sizeof name, "uprobe/config1=%p,config2=%#llx/", (const void *)own_path(), (unsigned long long)offset_in_file(probed));
    const int fd = opened(name, 0);
    if (fd < 0)
        return;
    const uint64_t before = value(fd);
    for (int i = 0; i < 10; i++)
        probed();
    CHECK_EQ(value(fd) - before, 10);
    close(fd), counted++;
}

#define TRACING "/sys/kernel/tracing"

static int number_of_tracepoint(void)
{
    int id = 0;
    FILE *file = fopen(TRACING "/events/syscalls/sys_enter_getppid/id", "r");
    if (file == NULL)
        return 0;
    CHECK_EQ(fscanf(file, "%d", &id), 1);
    fclose(file);
    return id;
}

/* A tracepoint, by its number: getppid, as often as it is called. */
static void tracepoint(void)
{
    char name[100];
    int id = number_of_tracepoint();
    /* where nobody has mounted them, for this program alone */
    if (id == 0 && unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mount("none", TRACING, "tracefs", 0, NULL) == 0)
        id = number_of_tracepoint();
    if (id == 0) {
        printf("left out: tracepoints: their numbers cannot be read in " TRACING "\n");
        return;
    }
    snprintf(name, sizeof name, "tracepoint/config=%d/", id);
    const int fd = opened(name, 0);
    if (fd < 0)
        return;
    const uint64_t before = value(fd);
    for (int i = 0; i < 10; i++)
        getppid();
    CHECK_EQ(value(fd) - before, 10);
    close(fd), counted++;
}

/* What the kernel names resolves, and its terms are the same event. */
static int resolves(void *data, char *name, char *event, char *desc)
{
    struct perf_event_attr by_name, by_terms;
    (void)desc;
    CHECK_EQ(jevent_name_to_attr(name, &by_name), 0);
    CHECK_EQ(jevent_name_to_attr(event, &by_terms), 0);
    CHECK(memcmp(&by_name, &by_terms, sizeof by_name) == 0);
    char *pmu = resolve_pmu((int)by_name.type), *raw = format_raw_event(&by_name, NULL);
    CHECK(pmu != NULL && raw != NULL);
    CHECK_EQ(jevent_name_to_attr(raw, &by_terms), 0);
    CHECK(by_terms.type == by_name.type && by_terms.config == by_name.config && by_terms.config1 == by_name.config1);
    free(pmu);
    free(raw);
    ++*(int *)data;
    return 0;
}

int main(void)
{
    int named = 0;
    if (access("/sys/bus/event_source/devices/software/type", R_OK) != 0)
        SKIP("this kernel has no perf events");
    cpu_clock();
    page_faults();
    writes();
    tsc();
    calls();
    tracepoint();
    const int walked = walk_perf_events(resolves, &named);
    CHECK(walked == (named ? 0 : -1));
    printf("%d events counted, %d names of the kernel resolved\n", counted, named);
    if (counted == 0)
        SKIP("this kernel permits no event");
    return 0;
}
