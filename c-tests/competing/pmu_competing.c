/* Two handles in the same thread compete for the registers: the kernel rotates them. Both say how little they ran, and
 * their bounds hold; totals go on, while the other counts and after it. */
#include "pmu.h"

int main(void)
{
    struct td_sample first[2], last[2], now;
    struct td_l1 l1;
    struct td_l2 l2;
    td_t *td[2];
    double running = 0;
    const struct td_options options = options_of(TD_FLAG_REGISTERS, 0);
    td[0] = measured(&options);
    needs_known_mix();
    mix_is(MIXES[1]);
    td_must(td_reset(td[0]));
    td_must(td_read(td[0], &first[0]));
    work(1000000);
    td[1] = measured(&options);
    td_must(td_read(td[1], &first[1]));
    last[0] = first[0], last[1] = first[1];
    for (int i = 0; i < 100; i++) { /* 100 ms: some 25 rotations */
        work(1000000);
        for (int k = 0; k < 2; k++) {
            td_must(td_read(td[k], &now));
            CHECK(now.slots >= last[k].slots);
            CHECK(now.time_enabled_ns > last[k].time_enabled_ns ||
                  (now.flags & TD_SAMPLE_COARSE_TIME && now.time_enabled_ns == last[k].time_enabled_ns));
            CHECK(now.time_running_ns >= last[k].time_running_ns);
            last[k] = now;
        }
    }
    for (int k = 0; k < 2; k++) {
        td_must(td_decode_l1(&first[k], &last[k], &l1));
        l1_is(&l1, MIXES[1], 0.02);
        CHECK(l1.running > 0.2 && l1.running < 0.8);
        CHECK(l1.error > 0.2); /* what ran uncounted may have been anything */
        running += l1.running;
        if (td_decode_l2(&first[k], &last[k], &l2) == 0)
            l2_is(&l2, MIXES[1], 0.02);
    }
    CHECK_NEAR(running, 1, 0.1);

    /* phases that this handle did not see, while the other counted, must be within its bound */
    for (int i = 0; i < 40; i++) {
        mix_is(MIXES[i % 2 ? 3 : 0]);
        td_must(td_read(td[0], &first[0]));
        work(3000000);
        td_must(td_read(td[0], &now));
        if (td_decode_l1(&first[0], &now, &l1) == 0)
            l1_is(&l1, MIXES[i % 2 ? 3 : 0], 1);
    }

    /* alone again */
    td_close(td[1]);
    mix_is(MIXES[2]);
    work(10000000); /* what has become free the kernel gives to those that wait for it only at the next rotation */
    td_must(td_reset(td[0]));
    td_must(td_read(td[0], &first[0]));
    work(2000000);
    td_must(td_read(td[0], &now));
    td_must(td_decode_l1(&first[0], &now, &l1));
    l1_is(&l1, MIXES[2], 0.01);
    CHECK_NEAR(l1.running, 1, 0.01);
    td_close(td[0]);
    return 0;
}
