/* What a reading costs, beside the alternatives, in one run: ticks of the time-stamp counter, which on the
 * emulated machine are instructions, exact and repeatable, and on a real one cycles of its nominal clock.
 * The two RDTSC around each, and the call of a function that does nothing, are taken off. */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <topdown.h>
#include <topdown_inline.h>
#include <unistd.h>

#define REPEATS 200

static td_t *td;
static struct td_sample sample;
static int leader, member;
static struct perf_event_mmap_page *slots_page, *metrics_page;
static volatile uint64_t sink;

static inline uint64_t rdtsc(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return low | (uint64_t)high << 32;
}

static inline uint64_t rdpmc(uint32_t counter)
{
    uint32_t low, high;
    __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(counter) : "memory");
    return low | (uint64_t)high << 32;
}

/* The pattern of libjevents' rdpmc_read: the usual sequence loop, offset added, masked to 48 bits. */
static inline uint64_t loop_read(const volatile struct perf_event_mmap_page *page)
{
    uint32_t lock, index;
    uint64_t offset, value;
    do {
        lock = page->lock;
        __asm__ volatile("" : : : "memory");
        index = page->index;
        offset = (uint64_t)page->offset;
        value = index ? rdpmc(index - 1) : 0;
        __asm__ volatile("" : : : "memory");
    } while (page->lock != lock);
    return (value + offset) & 0xffffffffffff;
}

static __attribute__((noinline)) void nothing(void) { __asm__ volatile(""); }

static __attribute__((noinline)) void bare_pair(void)
{
    sink = rdpmc(0x40000003);
    sink = rdpmc(0x20000000);
}

static __attribute__((noinline)) void libjevents_pair(void)
{
    sink = loop_read(slots_page);
    sink = loop_read(metrics_page);
}

static __attribute__((noinline)) void topdown_read(void) { td_read(td, &sample); }
static struct td_mark mark;
static __attribute__((noinline)) void inline_read(void) { td_read_mark(td, &mark); }
static struct td_sum sum;
static __attribute__((noinline)) void sum_pair(void)
{
    td_sum_begin(td, &sum);
    td_sum_end(td, &sum);
}
static struct td_sample earlier;
static struct td_l1 l1;
static struct td_l2 l2;
static __attribute__((noinline)) void decode_l1(void) { td_decode_l1(&earlier, &sample, &l1); }
static __attribute__((noinline)) void decode_l2(void) { td_decode_l2(&earlier, &sample, &l2); }
static __attribute__((noinline)) void topdown_reset(void) { td_reset(td); }
static __attribute__((noinline)) void ioctl_reset(void) { ioctl(leader, PERF_EVENT_IOC_RESET, 0); }

static __attribute__((noinline)) void group_read(void)
{
    uint64_t words[16];
    sink = (uint64_t)read(member, words, sizeof words);
}

static __attribute__((noinline)) void leader_read(void)
{
    uint64_t words[16];
    sink = (uint64_t)read(leader, words, sizeof words);
}

/* The least of many: what it costs when nothing interrupts. */
static uint64_t ticks(void (*what)(void))
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < REPEATS; i++) {
        uint64_t begun = rdtsc();
        what();
        uint64_t ended = rdtsc();
        if (ended - begun < least)
            least = ended - begun;
    }
    return least;
}

static uint64_t cost(void (*what)(void)) { return ticks(what) - ticks(nothing); }

/* Work of so many instructions, in blocks of 256. */
static void work(uint64_t instructions)
{
    for (uint64_t n = instructions / 256; n > 0; n--)
        __asm__ volatile(".rept 254\n\tnop\n\t.endr");
}

/* The least that a reading takes when it opens a window. */
static uint64_t window_cost(void)
{
    uint64_t least = UINT64_MAX;
    struct td_info before, after;
    for (int i = 0; i < REPEATS; i++) {
        work(3000000); /* so that there is budget for it */
        td_get_info(td, &before);
        uint64_t ticks = rdtsc();
        topdown_read();
        ticks = rdtsc() - ticks;
        td_get_info(td, &after);
        if (after.windows > before.windows && ticks < least)
            least = ticks;
    }
    return least;
}

struct amortised {
    double overhead, bound;
};

/* What readings before and after each region of so many slots, with twice as much between them, are of the time; and the
 * largest bound. */
static struct amortised amortised(uint64_t slots, uint32_t slots_per_cycle)
{
    struct amortised result = {0, 0};
    uint64_t spent = 0, begun = rdtsc();
    for (uint64_t passed = 0; passed < 3000000000; passed += 3 * slots) {
        struct td_sample before, after;
        struct td_l1 l1;
        uint64_t a = rdtsc();
        td_read(td, &before);
        uint64_t b = rdtsc();
        work(slots / slots_per_cycle);
        uint64_t c = rdtsc();
        td_read(td, &after);
        uint64_t d = rdtsc();
        spent += d - c + b - a;
        if (td_decode_l1(&before, &after, &l1) == 0 && l1.error > result.bound)
            result.bound = l1.error;
        work(2 * slots / slots_per_cycle);
    }
    result.overhead = (double)spent / (double)(rdtsc() - begun);
    return result;
}

static int event(uint64_t config, int group, uint64_t format)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.type = PERF_TYPE_RAW;
    attr.size = sizeof attr;
    attr.config = config;
    attr.read_format = format;
    attr.disabled = group < 0;
    attr.exclude_kernel = attr.exclude_hv = attr.exclude_guest = 1;
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
}

static void *page_of(int fd)
{
    void *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd, 0);
    return page == MAP_FAILED ? NULL : page;
}

static void row(const char *what, uint64_t cost, uint64_t pair)
{
    printf("%-58s %7lu %9.1f\n", what, (unsigned long)cost, (double)cost / (double)pair);
}

static int fail(const char *what)
{
    char why[1000];
    td_last_error(why, sizeof why);
    fprintf(stderr, "bench: %s: %s\n", what, why);
    return 77;
}

/* What a handle costs that counts by this source, with what corrects it, at this level; nothing if there are too few counters. */
static void corrected(const char *source, uint32_t flags, uint32_t level, uint64_t pair)
{
    const struct td_options options = { .size = sizeof options, .flags = flags, .level = level };
    char what[80];
    if (td_open(&td, &options))
        return;
    const struct { const char *what; void (*function)(void); } rows[] = {
        {"td_read_mark, inlined", inline_read}, {"td_read", topdown_read},
        {"td_sum_begin and td_sum_end", sum_pair}, {level == 2 ? "td_decode_l2" : "td_decode_l1", level == 2 ? decode_l2 : decode_l1},
    };
    td_read(td, &earlier);
    work(1000000);
    memset(&sum, 0, sizeof sum);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        td_read(td, &sample);
        snprintf(what, sizeof what, "%s, level %u: %s", source, level, rows[i].what);
        row(what, cost(rows[i].function), pair);
    }
    td_close(td);
}

int main(void)
{
    struct td_info info;
    const struct td_options registers = { .size = sizeof registers, .flags = TD_FLAG_REGISTERS | TD_FLAG_BARE };
    const struct td_options by_read = { .size = sizeof by_read, .flags = TD_FLAG_REGISTERS | TD_FLAG_BARE | TD_FLAG_NO_RDPMC };

    if (td_open(&td, &registers))
        return fail("td_open");
    td_get_info(td, &info);
    if (info.path != TD_PATH_RDPMC)
        return fail(info.note);
    printf("%s, PMU %s, level %u\n", info.cpu, info.pmu, info.level);
    printf("%-58s %7s %9s\n", "", "ticks", "x bare");
    uint64_t reading = cost(topdown_read), reset = cost(topdown_reset), inlined = cost(inline_read);
    uint64_t summed = cost(sum_pair);
    td_read(td, &earlier);
    work(1000000);
    td_read(td, &sample);
    uint64_t decoding_1 = cost(decode_l1), decoding_2 = cost(decode_l2);
    uint64_t window = window_cost();
    static const uint64_t lengths[] = {100000, 1000000, 10000000};
    struct amortised costs[3];
    for (int i = 0; i < 3; i++)
        costs[i] = amortised(lengths[i], info.slots_per_cycle ? info.slots_per_cycle : 8);
    td_close(td);
    if (td_open(&td, &by_read))
        return fail("td_open with TD_FLAG_NO_RDPMC");
    uint64_t reading_by_read = cost(topdown_read);
    td_close(td);

    /* the same group, opened by hand, for the alternatives */
    uint64_t times = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    int metrics = info.level == 2 ? 8 : 4;
    leader = event(0x400, -1, times);
    for (int i = 0; i < metrics; i++) {
        int fd = event(0x8000 + 0x100 * (uint64_t)i, leader, i ? times : times | PERF_FORMAT_GROUP);
        if (i == 0)
            member = fd;
    }
    slots_page = page_of(leader);
    metrics_page = page_of(member);
    if (!slots_page || !metrics_page || ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP)) {
        fprintf(stderr, "bench: the group for comparison does not open\n");
        return 1;
    }
    uint64_t pair = cost(bare_pair);
    row("RDPMC of SLOTS and PERF_METRICS, bare", pair, pair);
    row("the same in the loop of libjevents' rdpmc_read (wrong here)", cost(libjevents_pair), pair);
    row("td_read_mark, inlined", inlined, pair);
    row("td_read", reading, pair);
    row("td_read that opens a window", window, pair);
    row("td_sum_begin and td_sum_end, not measured", summed, pair);
    row("td_decode_l1", decoding_1, pair);
    row("td_decode_l2", decoding_2, pair);
    row("td_read with TD_FLAG_NO_RDPMC", reading_by_read, pair);
    row("td_reset", reset, pair);
    row("PERF_EVENT_IOC_RESET of the leader", cost(ioctl_reset), pair);
    row("read(2) of the leader alone", cost(leader_read), pair);
    row(info.level == 2 ? "read(2) of the group of nine" : "read(2) of the group of five", cost(group_read), pair);

    ioctl(leader, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP); /* which would take turns with the handles' */
    corrected("registers, and a counter", TD_FLAG_REGISTERS, 2, pair);
    for (uint32_t level = 1; level <= 2; level++)
        corrected("general counters", TD_FLAG_COUNTERS, level, pair);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        printf("regions of %6lu,000 slots, a third of the time: overhead %.2f %%, level 1 within %.2f points\n",
               (unsigned long)lengths[i] / 1000, 100 * costs[i].overhead, 100 * costs[i].bound);
    return 0;
}
