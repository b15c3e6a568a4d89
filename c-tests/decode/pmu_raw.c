/* A caller with a perf group of its own, reading by RDPMC as topdown.txt describes: td_decode_raw_* gives the truth. */
#include "pmu.h"
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

static uint64_t rdpmc(uint32_t counter)
{
    uint32_t low, high;
    __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(counter));
    return (uint64_t)high << 32 | low;
}
#define SLOTS rdpmc(1u << 30 | 3)
#define METRICS rdpmc(1u << 29)

static int event(uint64_t config, int leader)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.type = PERF_TYPE_RAW;
    attr.size = sizeof attr;
    attr.config = config;
    attr.disabled = leader < 0;
    attr.exclude_kernel = attr.exclude_hv = attr.exclude_guest = 1;
    const int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, leader, 0);
    CHECK(fd >= 0);
    return fd;
}

int main(void)
{
    td_t *td = measured(NULL);
    const struct td_info info = info_of(td);
    td_close(td);
    needs_known_mix();

    const int leader = event(0x400, -1);
    for (unsigned k = 0; k < 4 * info.level; k++)
        event(0x8000 + 0x100 * k, leader);
    const struct perf_event_mmap_page *page =
        (const struct perf_event_mmap_page *)mmap(NULL, 4096, PROT_READ, MAP_SHARED, leader, 0);
    CHECK(page != MAP_FAILED);
    CHECK_EQ(ioctl(leader, PERF_EVENT_IOC_ENABLE, 0), 0);
    CHECK_EQ(page->index, (1u << 30 | 3) + 1);
    for (int i = 0; i < 4; i++) {
        struct td_l1 l1;
        struct td_l2 l2;
        uint64_t slots[2], metrics[2];
        uint32_t sequence;
        mix_is(MIXES[i]);
        do { /* again, if a context switch fell into the region */
            CHECK_EQ(ioctl(leader, PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP), 0);
            sequence = *(volatile const uint32_t *)&page->lock;
            slots[0] = SLOTS;
            metrics[0] = METRICS;
            work(2000000);
            slots[1] = SLOTS;
            metrics[1] = METRICS;
        } while (*(volatile const uint32_t *)&page->lock != sequence);
        td_must(td_decode_raw_l1(slots[0], metrics[0], slots[1], metrics[1], &l1));
        CHECK_EQ(l1.slots, slots[1] - slots[0]);
        l1_is(&l1, MIXES[i], 0.01);
        td_must(td_decode_raw_l1(0, 0, slots[1], metrics[1], &l1));
        l1_is(&l1, MIXES[i], 0.01);
        const int code = td_decode_raw_l2(slots[0], metrics[0], slots[1], metrics[1], &l2);
        if (info.level == 1) { /* the upper half of the register is empty there */
            CHECK_EQ(code, -ENOTSUP);
        } else {
            td_must(code);
            l2_is(&l2, MIXES[i], 0.01);
        }
    }
    return 0;
}
