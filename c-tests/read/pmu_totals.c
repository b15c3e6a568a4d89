/* Over 1,000 readings with context switches and resets of the registers in between, totals never shrink, miss nothing
 * and add nothing. */
#include "pmu.h"

static void totals(uint32_t flags)
{
    const struct td_options options = options_of(flags, 0);
    const struct timespec moment = {0, 50000};
    enum { ROUNDS = 1000, INSTRUCTIONS = 20000 };
    struct td_sample first, last, now;
    struct td_l1 l1;
    uint64_t sum = 0;
    td_t *td = measured(&options);
    const double width = info_of(td).slots_per_cycle;
    mix_is(MIXES[0]);
    td_must(td_reset(td));
    td_must(td_read(td, &first));
    last = first;
    for (int i = 0; i < ROUNDS; i++) {
        work(INSTRUCTIONS);
        if (i % 3)
            nanosleep(&moment, NULL); /* a context switch, which is the point */
        td_must(td_read(td, &now));
        CHECK(now.slots >= last.slots);
        CHECK(now.time_enabled_ns >= last.time_enabled_ns);
        CHECK(now.time_running_ns >= last.time_running_ns);
        CHECK(now.time_running_ns <= now.time_enabled_ns);
        td_must(td_decode_l1(&last, &now, &l1));
        l1_is(&l1, MIXES[0], 1);
        /* what a round has besides its work: a nanosleep, a reading, a decoding, some 2,000 instructions */
        CHECK((double)l1.slots >= width * INSTRUCTIONS);
        CHECK((double)l1.slots <= width * (INSTRUCTIONS + 6000));
        sum += l1.slots;
        last = now;
    }
    CHECK_EQ(sum, last.slots - first.slots);
    td_must(td_decode_l1(&first, &last, &l1));
    l1_is(&l1, MIXES[0], 0.02);
    CHECK_NEAR(l1.running, 1, 0.01);
    td_close(td);
}

int main(void)
{
    td_close(measured(NULL));
    needs_known_mix();
    totals(0);
    totals(TD_FLAG_NO_RDPMC);
    return 0;
}
