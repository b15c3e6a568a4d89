/* Open, read around some work, decode, reset, close: on the simulated PMU, at every level, and what td_get_info says. */
#include "check.h"

static void level(uint32_t asked, uint32_t given)
{
    struct td_sample before, after;
    struct td_l1 l1;
    struct td_l2 l2;
    struct td_info info;
    td_t *td = simulated(asked);

    td_must(td_get_info(td, &info));
    CHECK_EQ(info.size, sizeof info);
    CHECK_EQ(info.path, TD_PATH_SIMULATED);
    CHECK_EQ(info.level, given);
    CHECK(info.slots_per_cycle > 0);
    CHECK_EQ(strcmp(info.cpu, "simulated"), 0);
    CHECK_EQ(strcmp(info.pmu, "simulated"), 0);
    CHECK(strstr(info.note, "TD_FLAG_SIMULATE") != NULL);
    CHECK_EQ(info.max_error_ppm, 10000);

    td_must(td_read(td, &before));
    work(1000000);
    td_must(td_read(td, &after));
    CHECK_EQ(after.size, sizeof after);
    CHECK(after.flags & TD_SAMPLE_SIMULATED);
    CHECK(after.slots > before.slots);
    CHECK(after.time_enabled_ns > before.time_enabled_ns);
    CHECK(after.time_running_ns <= after.time_enabled_ns);

    memset(&l1, 0xff, sizeof l1);
    td_must(td_decode_l1(&before, &after, &l1));
    CHECK_EQ(l1.size, sizeof l1);
    CHECK(l1.flags & TD_SAMPLE_SIMULATED);
    CHECK_EQ(l1.slots, after.slots - before.slots);
    CHECK_NEAR(l1.retiring + l1.bad_speculation + l1.frontend_bound + l1.backend_bound, 1, 1e-9);
    CHECK_NEAR(l1.running, 1, 0);
    CHECK(l1.smt_contention == 0 && l1.reserved[0] == 0);

    memset(&l2, 0xff, sizeof l2);
    int code = td_decode_l2(&before, &after, &l2);
    if (given == 1) {
        CHECK_EQ(code, -ENOTSUP);
        CHECK_EQ(l2.size, 0xffffffff); /* outputs are written on success only */
    } else {
        td_must(code);
        CHECK_EQ(l2.size, sizeof l2);
        CHECK_EQ(l2.slots, l1.slots);
        CHECK_NEAR(l2.heavy_operations + l2.light_operations, l1.retiring, 1e-9);
        CHECK_NEAR(l2.branch_mispredicts + l2.machine_clears, l1.bad_speculation, 1e-9);
        CHECK_NEAR(l2.fetch_latency + l2.fetch_bandwidth, l1.frontend_bound, 1e-9);
        CHECK_NEAR(l2.memory_bound + l2.core_bound, l1.backend_bound, 1e-9);
    }

    td_must(td_reset(td));
    td_must(td_read(td, &before));
    CHECK(before.slots < after.slots); /* totals start from zero */
    td_close(td);
}

int main(void)
{
    level(0, 2);
    level(1, 1);
    level(2, 2);
    td_close(NULL);
    return 0;
}
