/* Plain counters by rdpmc.h: what they say of loops of known length is exact, whether a reading comes from RDPMC or from
 * the kernel, and the two can be taken from each other. */
#include <rdpmc.h>

#include "counters.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>

enum { LOOP = 1000000, SLACK = 2000, MANY = 24 };

/* counters, in the order in which they were opened */
struct group {
    struct rdpmc_ctx ctx[MANY];
    int members;
};

static void open_member(struct group *group, struct perf_event_attr attr, struct rdpmc_ctx *leader)
{
    CHECK_EQ(rdpmc_open_attr(&attr, &group->ctx[group->members++], leader), 0);
}

static void close_all(struct group *group)
{
    while (group->members > 0)
        rdpmc_close(&group->ctx[--group->members]);
}

/* by the kernel; the event's read_format is 0 */
static uint64_t kernel_says(struct rdpmc_ctx *ctx)
{
    uint64_t value;
    CHECK_EQ(read(ctx->fd, &value, sizeof value), sizeof value);
    return value;
}

#define IS_ABOUT(value, expected) is_about(__LINE__, value, expected)
static void is_about(int line, uint64_t value, uint64_t expected)
{
    if (value + 10 < expected || value > expected + SLACK)
        FAIL("called in line %d: %llu, not %llu", line, (unsigned long long)value, (unsigned long long)expected);
}

static int readable(const struct rdpmc_ctx *ctx)
{
    return ctx->buf->index != 0 && ctx->buf->cap_user_rdpmc;
}

static void by_number(unsigned counter)
{
    struct rdpmc_ctx ctx;
    CHECK_EQ(rdpmc_open(counter, &ctx), 0);
    CHECK(readable(&ctx));
    uint64_t last = rdpmc_read(&ctx);
    for (int i = 0; i < 50; i++) {
        work(LOOP);
        uint64_t now = i % 3 == 0 ? kernel_says(&ctx) : rdpmc_read(&ctx);
        IS_ABOUT(now - last, LOOP);
        last = now;
        if (i % 10 == 0)
            sleep_a_little();
    }
    /* at once, and after the kernel has taken it off and on again */
    CHECK_EQ(ioctl(ctx.fd, PERF_EVENT_IOC_RESET, 0), 0);
    IS_ABOUT(rdpmc_read(&ctx), 0);
    work(LOOP);
    IS_ABOUT(rdpmc_read(&ctx), LOOP);
    sleep_a_little();
    IS_ABOUT(rdpmc_read(&ctx), LOOP);
    /* stopped: the kernel's is the very same */
    CHECK_EQ(ioctl(ctx.fd, PERF_EVENT_IOC_DISABLE, 0), 0);
    CHECK(!readable(&ctx));
    const uint64_t stopped = kernel_says(&ctx);
    work(LOOP);
    CHECK_EQ(rdpmc_read(&ctx), stopped);
    CHECK_EQ(ioctl(ctx.fd, PERF_EVENT_IOC_ENABLE, 0), 0);
    work(LOOP);
    IS_ABOUT(rdpmc_read(&ctx) - stopped, LOOP);
    rdpmc_close(&ctx);
}

/* What a loop has of an event, as it counts alone. */
static uint64_t alone(uint64_t config)
{
    struct rdpmc_ctx ctx;
    struct perf_event_attr attr = attr_of(PERF_TYPE_RAW, config);
    CHECK_EQ(rdpmc_open_attr(&attr, &ctx, NULL), 0);
    const uint64_t before = rdpmc_read(&ctx);
    work(LOOP);
    const uint64_t value = rdpmc_read(&ctx) - before;
    rdpmc_close(&ctx);
    return value;
}

/* Leader and members, with the group's values in each read(2): whose value is it? */
static void groups(uint64_t read_format, int stopped)
{
    struct group group = {0};
    uint64_t before[4];
    const uint64_t branch_count = alone(BRANCHES);
    CHECK(branch_count > 100000 && branch_count < LOOP - 100000);
    struct perf_event_attr instructions = attr_of(PERF_TYPE_RAW, INSTRUCTIONS), branches = attr_of(PERF_TYPE_RAW, BRANCHES);
    instructions.read_format = branches.read_format = read_format;
    open_member(&group, instructions, NULL);
    open_member(&group, branches, &group.ctx[0]);
    open_member(&group, instructions, &group.ctx[0]);
    open_member(&group, branches, &group.ctx[0]);
    for (int i = 0; i < 4; i++)
        before[i] = rdpmc_read(&group.ctx[i]);
    work(LOOP);
    if (stopped)
        CHECK_EQ(ioctl(group.ctx[0].fd, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP), 0);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(readable(&group.ctx[i]), !stopped);
        IS_ABOUT(rdpmc_read(&group.ctx[i]) - before[i], i % 2 == 0 ? LOOP : branch_count);
    }
    close_all(&group);
}

/* More than there are counters for: each has its turns. */
static void multiplexed(void)
{
    struct group all = {0};
    uint64_t last[MANY] = {0};
    int in = 0, out = 0;
    while (all.members < MANY)
        open_member(&all, attr_of(PERF_TYPE_RAW, INSTRUCTIONS), NULL);
    for (int round = 0; round < 60; round++) {
        work(2000000);
        for (int i = 0; i < MANY; i++) {
            const uint64_t a = kernel_says(&all.ctx[i]), b = rdpmc_read(&all.ctx[i]), c = kernel_says(&all.ctx[i]);
            CHECK(last[i] <= a && a <= b && b <= c);
            CHECK(c - a <= SLACK);
            last[i] = c;
            *(all.ctx[i].buf->index ? &in : &out) += 1;
        }
    }
    CHECK(in > 60 && out > 60);
    close_all(&all);
}

static void *in_a_thread(void *argument)
{
    const uint64_t length = *(const uint64_t *)argument;
    struct rdpmc_ctx ctx;
    struct perf_event_attr attr = attr_of(PERF_TYPE_RAW, INSTRUCTIONS);
    CHECK_EQ(rdpmc_open_attr(&attr, &ctx, NULL), 0);
    for (int i = 0; i < 20; i++) {
        const uint64_t before = rdpmc_read(&ctx);
        work(length);
        sleep_a_little();
        work(length);
        IS_ABOUT(rdpmc_read(&ctx) - before, 2 * length);
    }
    rdpmc_close(&ctx);
    return NULL;
}

static void threads(void)
{
    pthread_t thread[4];
    uint64_t length[4];
    for (int i = 0; i < 4; i++) {
        length[i] = 300000 * (uint64_t)(i + 1);
        CHECK_EQ(pthread_create(&thread[i], NULL, in_a_thread, &length[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
}

/* Whether the kernel lets programs execute RDPMC. */
static void permit(const char *value)
{
    const char *path = there("/sys/bus/event_source/devices/cpu") ? "/sys/bus/event_source/devices/cpu/rdpmc"
                                                                  : "/sys/bus/event_source/devices/cpu_core/rdpmc";
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs(value, file) > 0 && fclose(file) == 0);
}

/* Before the event is opened, or after. */
static void not_permitted(int after)
{
    struct rdpmc_ctx ctx;
    struct perf_event_attr attr = attr_of(PERF_TYPE_RAW, INSTRUCTIONS);
    if (!after)
        permit("0\n");
    CHECK_EQ(rdpmc_open_attr(&attr, &ctx, NULL), 0);
    CHECK_EQ(ctx.buf->cap_user_rdpmc, after);
    const uint64_t first = rdpmc_read(&ctx);
    work(LOOP);
    if (after)
        permit("0\n");
    const uint64_t without = rdpmc_read(&ctx);
    work(LOOP);
    IS_ABOUT(rdpmc_read(&ctx) - without, LOOP);
    permit("1\n");
    const uint64_t again = rdpmc_read(&ctx);
    work(LOOP);
    const uint64_t last = rdpmc_read(&ctx);
    IS_ABOUT(last - again, LOOP);
    CHECK(last - first >= 3 * LOOP && last - first < 3 * LOOP + 50000);
    rdpmc_close(&ctx);
}

/* the first CPU of such a core; -1: there is none */
static int cpu_of(const char *pmu)
{
    char path[128];
    int cpu = -1;
    snprintf(path, sizeof path, "/sys/bus/event_source/devices/%s/cpus", pmu);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return -1;
    CHECK_EQ(fscanf(file, "%d", &cpu), 1);
    fclose(file);
    return cpu;
}

static void move_to(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    CHECK_EQ(sched_setaffinity(0, sizeof set, &set), 0);
}

/* A counter of P-cores stands still on an E-core. */
static void on_an_e_core(void)
{
    const int p = cpu_of("cpu_core"), e = cpu_of("cpu_atom");
    struct rdpmc_ctx ctx;
    struct perf_event_attr attr = attr_of(PERF_TYPE_RAW, INSTRUCTIONS);
    cpu_set_t before;
    if (p < 0 || e < 0)
        return;
    CHECK_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    move_to(p);
    CHECK_EQ(rdpmc_open_attr(&attr, &ctx, NULL), 0);
    for (int i = 0; i < 5; i++) {
        move_to(p);
        const uint64_t start = rdpmc_read(&ctx);
        work(LOOP);
        IS_ABOUT(rdpmc_read(&ctx) - start, LOOP);
        move_to(e);
        const uint64_t there = rdpmc_read(&ctx);
        CHECK(!readable(&ctx));
        work(LOOP);
        CHECK_EQ(rdpmc_read(&ctx), there);
    }
    rdpmc_close(&ctx);
    CHECK_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

/* The least of what so many readings, one behind the other, take: in instructions, on the emulated machine. */
static uint64_t cost_of(struct rdpmc_ctx *ctx, int two)
{
    uint64_t least = UINT64_MAX;
    volatile uint64_t sink;
    for (int i = 0; i < 100; i++) {
        const uint64_t begun = rdtsc();
        sink = rdpmc_read(ctx);
        if (two)
            sink = rdpmc_read(ctx);
        const uint64_t ticks = rdtsc() - begun;
        least = ticks < least ? ticks : least;
    }
    (void)sink;
    return least;
}

/* A reading, with its call, of a counter of either kind. */
static void cost(void)
{
    const uint64_t configs[] = {INSTRUCTIONS, BRANCHES};
    for (int i = 0; i < 2; i++) {
        struct rdpmc_ctx ctx;
        struct perf_event_attr attr = attr_of(PERF_TYPE_RAW, configs[i]);
        CHECK_EQ(rdpmc_open_attr(&attr, &ctx, NULL), 0);
        const uint64_t one = cost_of(&ctx, 0), two = cost_of(&ctx, 1);
        printf("a reading: %llu instructions\n", (unsigned long long)(two - one));
        CHECK(two - one > 15 && two - one <= 28);
        rdpmc_close(&ctx);
    }
}

/* What is closed may be closed again, by a copy, too; what was opened since, maybe in its place, stays open. */
static void closed_copies(void)
{
    struct rdpmc_ctx ctx, copy, next;
    struct perf_event_attr attr = attr_of(PERF_TYPE_RAW, INSTRUCTIONS);
    CHECK_EQ(rdpmc_open_attr(&attr, &ctx, NULL), 0);
    copy = ctx;
    rdpmc_close(&ctx);
    rdpmc_close(&copy);
    CHECK(copy.fd == -1 && copy.buf == NULL);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(rdpmc_open_attr(&attr, &ctx, NULL), 0);
        copy = ctx;
        rdpmc_close(&ctx);
        const int other = i == 0 ? -1 : open("/dev/null", 1); /* has the descriptor that was the counter's */
        CHECK_EQ(rdpmc_open_attr(&attr, &next, NULL), 0);
        CHECK((copy.fd == next.fd) == (i == 0));
        if (copy.fd != next.fd || copy.buf != next.buf) { /* (else it is the counter) */
            rdpmc_close(&copy);
            CHECK(i == 0 || fcntl(other, F_GETFD) == 0);
            const uint64_t before = rdpmc_read(&next);
            work(LOOP);
            IS_ABOUT(rdpmc_read(&next) - before, LOOP);
        }
        rdpmc_close(&next);
        close(other);
    }
}

int main(void)
{
    const uint64_t formats[] = {0, PERF_FORMAT_GROUP, PERF_FORMAT_GROUP | PERF_FORMAT_ID,
                                PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING};
    needs_known_counts();
    by_number(PERF_COUNT_HW_INSTRUCTIONS);
    by_number(INSTRUCTIONS);
    for (int i = 0; i < 4; i++) {
        groups(formats[i], 0);
        groups(formats[i], 1);
    }
    multiplexed();
    threads();
    not_permitted(0);
    not_permitted(1);
    on_an_e_core();
    closed_copies();
    cost();
    return 0;
}
