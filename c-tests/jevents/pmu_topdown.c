/* slots and topdown-* by rdpmc.h, as an unsuspecting program opens them: each is right, up to how finely the CPU tells
 * shares, wherever the thread sleeps and however often it reads. (The usual sum of offset and RDPMC is not.) */
#include <rdpmc.h>

#include "counters.h"
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>

enum { METRICS = 8, REGION = 3000000, GAP = 1000000 };

static const struct vm_mix MIXES[3] = {
    {40, 8, 8, 4, 12, 8, 8},
    {8, 32, 8, 8, 4, 12, 4},
    {4, 4, 8, 15, 1, 3, 14},
};

struct topdown {
    struct rdpmc_ctx slots, metric[METRICS];
    int metrics;
};

static int event_there(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/bus/event_source/devices/cpu/events/%s", name);
    if (there(path))
        return 1;
    snprintf(path, sizeof path, "/sys/bus/event_source/devices/cpu_core/events/%s", name);
    return there(path);
}

/* How the group is opened: at once, or stopped and then enabled; each event with or without the whole group's values. */
static void open_all(struct topdown *td, int disabled, uint64_t read_format)
{
    struct perf_event_attr attr = attr_of(PERF_TYPE_RAW, SLOTS);
    attr.disabled = disabled;
    attr.read_format = read_format;
    CHECK_EQ(rdpmc_open_attr(&attr, &td->slots, NULL), 0);
    attr.disabled = 0;
    td->metrics = event_there("topdown-heavy-ops") ? 8 : 4;
    for (int k = 0; k < td->metrics; k++) {
        work(GAP); /* whatever else a program does before it is ready */
        attr.config = RETIRING + 0x100 * (uint64_t)k;
        CHECK_EQ(rdpmc_open_attr(&attr, &td->metric[k], &td->slots), 0);
    }
    if (disabled)
        CHECK_EQ(ioctl(td->slots.fd, PERF_EVENT_IOC_ENABLE, 0), 0);
}

static void close_all(struct topdown *td)
{
    for (int k = td->metrics; k-- > 0;)
        rdpmc_close(&td->metric[k]);
    rdpmc_close(&td->slots);
}

/* slots, then the metrics */
static void read_all(struct topdown *td, uint64_t value[1 + METRICS])
{
    value[0] = rdpmc_read(&td->slots);
    for (int k = 0; k < td->metrics; k++)
        value[1 + k] = rdpmc_read(&td->metric[k]);
}

/* in the order of the events */
static void shares(struct vm_mix mix, double share[METRICS])
{
    const unsigned parent[4] = {mix.retiring, mix.bad, mix.frontend, 64 - mix.retiring - mix.bad - mix.frontend};
    const unsigned part[4] = {mix.heavy, mix.mispredicts, mix.latency, mix.memory};
    for (int k = 0; k < 4; k++) {
        share[k] = parent[k] / 64.0;
        share[4 + k] = share[k] * part[k] / 16.0;
    }
}

/* Regions of known mixes, with `pauses` in each. Returns the slots of an instruction. */
static double is_right(struct topdown *td, int pauses, int sleeping)
{
    uint64_t before[1 + METRICS], now[1 + METRICS], unused[1 + METRICS];
    double share[METRICS], width = 0;
    for (int round = 0; round < 6; round++) {
        const struct vm_mix mix = MIXES[round % 3];
        vm_mix_set(mix, 0, 0, 0);
        shares(mix, share);
        read_all(td, before);
        for (int i = 0; i <= pauses; i++) {
            work(REGION / (pauses + 1));
            if (sleeping)
                sleep_a_little();
            else
                read_all(td, unused);
        }
        read_all(td, now);
        const double slots = (double)(now[0] - before[0]);
        width = (double)(int)(slots / REGION);
        CHECK(width == 5 || width == 6 || width == 8);
        /* that many and those of the calls between */
        if (slots < width * (REGION - 100) || slots > width * (REGION + 3000 + 3000.0 * pauses))
            FAIL("pauses %d, sleeping %d, round %d: %.3f slots an instruction", pauses, sleeping, round, slots / REGION);
        for (int k = 0; k < td->metrics; k++) {
            const double counted = (double)(now[1 + k] - before[1 + k]), truth = share[k] * slots;
            /* a field has 255 steps, and the kernel rounds down; slots and this were not read at one moment */
            const double bound = slots * 0.5 / 255 + (pauses + 2) * (1 + 3000 * width);
            if (counted < truth - bound || counted > truth + bound)
                FAIL("pauses %d, sleeping %d, mix %d, event %d: %.0f of %.0f slots, not %.0f", pauses, sleeping, round % 3, k,
                     counted, slots, truth);
        }
    }
    return width;
}

static void opened(int disabled, uint64_t read_format)
{
    struct topdown td;
    uint64_t first[1 + METRICS];
    double share[METRICS];
    vm_mix_set(MIXES[0], 0, 0, 0);
    shares(MIXES[0], share);
    open_all(&td, disabled, read_format);
    CHECK_EQ(td.slots.buf->index, 0x40000004);
    CHECK_EQ(td.metric[0].buf->index, 0x20000001);
    work(REGION);
    read_all(&td, first);
    const double width = is_right(&td, 0, 0);
    /* what came before the first reading is in it, from when an event was opened and runs */
    for (int k = 0; k < 4; k++) {
        const double slots = width * (REGION + (disabled ? 0 : GAP * (td.metrics - 1.0 - k))), truth = slots * share[k];
        if (first[1 + k] < truth - slots / 255 || first[1 + k] > truth + slots / 255 + width * 20000)
            FAIL("disabled %d: first reading of %d is %.0f, not %.0f", disabled, k, (double)first[1 + k], truth);
    }
    is_right(&td, 10, 0);
    is_right(&td, 10, 1);
    /* off the counters: as they were, for ever */
    CHECK_EQ(ioctl(td.slots.fd, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP), 0);
    uint64_t stopped[1 + METRICS], again[1 + METRICS];
    read_all(&td, stopped);
    work(REGION);
    read_all(&td, again);
    CHECK_EQ(memcmp(stopped, again, sizeof *again * (size_t)(1 + td.metrics)), 0);
    CHECK_EQ(ioctl(td.slots.fd, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP), 0);
    is_right(&td, 3, 1);
    close_all(&td);
}

/* on a CPU of its own */
static void *thread(void *cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(*(const unsigned *)cpu, &set);
    CHECK_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    opened(0, 0);
    return NULL;
}

/* One on each CPU. Two on the same one disturb each other: a kernel that switches from a thread which has just read its
 * group to another with a group of its own, and back, gives the first the other's slots (kernel-facts, section I). */
static void threads(void)
{
    pthread_t threads[CPU_SETSIZE];
    unsigned cpus[CPU_SETSIZE], count = 0;
    cpu_set_t set;
    CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set))
            cpus[count++] = cpu;
    for (unsigned i = 0; i < count; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, thread, &cpus[i]), 0);
    for (unsigned i = 0; i < count; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

int main(void)
{
    needs_known_counts();
    if (!event_there("slots"))
        SKIP("no topdown events");
    for (int disabled = 0; disabled < 2; disabled++) {
        opened(disabled, 0);
        opened(disabled, PERF_FORMAT_GROUP);
        opened(disabled, PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_RUNNING);
    }
    threads();
    return 0;
}
