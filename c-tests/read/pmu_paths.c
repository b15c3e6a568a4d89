/* RDPMC and read(2) count the same slots for the same work: all of them, but for those of the readings themselves. */
#include "pmu.h"

enum { INSTRUCTIONS = 5000000 };

static uint64_t slots_of_work(uint32_t flags, uint32_t path)
{
    struct td_options options = options_of(flags, 0);
    struct td_sample before, after;
    struct td_l1 l1;
    options.max_error_ppm = 1000000; /* no windows, whose instructions would count */
    td_t *td = measured(&options);
    CHECK_EQ(info_of(td).path, path);
    td_must(td_read(td, &before));
    work(INSTRUCTIONS);
    td_must(td_read(td, &after));
    td_must(td_decode_l1(&before, &after, &l1));
    td_close(td);
    return l1.slots;
}

int main(void)
{
    td_t *td = measured(NULL);
    const struct td_info info = info_of(td);
    td_close(td);
    needs_known_mix(); /* one instruction is one cycle there, so slots can be told beforehand */
    mix_is(MIXES[0]);
    const double slots = (double)INSTRUCTIONS * info.slots_per_cycle;
    const double reading = 3000.0 * info.slots_per_cycle; /* the slow path's user-mode instructions, by far */
    double least = INFINITY;
    for (int i = 0; i < 3; i++) {
        const double rdpmc = (double)slots_of_work(0, TD_PATH_RDPMC);
        const double by_read = (double)slots_of_work(TD_FLAG_NO_RDPMC, TD_PATH_READ);
        CHECK(rdpmc >= slots && by_read >= slots);
        CHECK_NEAR(rdpmc, slots, reading);
        CHECK_NEAR(by_read, slots, reading);
        least = fmin(least, rdpmc);
    }
    /* a reading that meets a context switch takes the slow path, but not every one does */
    CHECK_NEAR(least, slots, 300.0 * info.slots_per_cycle);
    return 0;
}
