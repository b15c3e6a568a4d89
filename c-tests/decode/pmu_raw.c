/* A caller with a perf group of its own, reading by RDPMC as topdown.txt describes: td_decode_raw_* gives the truth. */
#include "perf.h"
#include "pmu.h"

int main(void)
{
    td_t *td = measured(NULL);
    const struct td_info info = info_of(td);
    td_close(td);
    needs_known_mix();

    struct perf_group group = {{0}, 0};
    add_topdown(&group, in_user_mode(event_of(PERF_TYPE_RAW, SLOTS_EVENT)), info.level, 0, -1);
    const int leader = group.fd[0];
    const struct perf_event_mmap_page *page = control_page(leader);
    group_runs(&group);
    CHECK_EQ(page->index, RDPMC_SLOTS + 1);
    for (int i = 0; i < 4; i++) {
        struct td_l1 l1;
        struct td_l2 l2;
        uint64_t slots[2], metrics[2];
        uint32_t sequence;
        mix_is(MIXES[i]);
        do { /* again, if a context switch fell into the region */
            CHECK_EQ(ioctl(leader, PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP), 0);
            sequence = *(volatile const uint32_t *)&page->lock;
            slots[0] = rdpmc(RDPMC_SLOTS);
            metrics[0] = rdpmc(RDPMC_METRICS);
            work(2000000);
            slots[1] = rdpmc(RDPMC_SLOTS);
            metrics[1] = rdpmc(RDPMC_METRICS);
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
