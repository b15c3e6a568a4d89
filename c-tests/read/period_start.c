/* from == NULL stands for the start of the period, and totals only grow over many reads. */
#include "check.h"

int main(void)
{
    td_t *td = simulated(0);
    struct td_sample last, now;
    struct td_l1 whole, l1;
    td_must(td_reset(td));
    work(1000000);
    memset(&last, 0, sizeof last);
    for (int i = 0; i < 10000; i++) {
        td_must(td_read(td, &now));
        CHECK(now.slots >= last.slots);
        CHECK(now.time_enabled_ns >= last.time_enabled_ns);
        CHECK(now.time_running_ns >= last.time_running_ns);
        last = now;
    }
    td_must(td_decode_l1(NULL, &now, &whole));
    CHECK_EQ(whole.slots, now.slots);
    CHECK_NEAR(whole.retiring, 0.4, fmin(whole.error, 0.01)); /* the mix that a simulated handle starts with */
    CHECK_NEAR(whole.bad_speculation, 0.1, fmin(whole.error, 0.01));
    CHECK_NEAR(whole.frontend_bound, 0.2, fmin(whole.error, 0.01));
    CHECK_NEAR(whole.backend_bound, 0.3, fmin(whole.error, 0.01));

    /* the mix of before the reset is gone with its period */
    struct td_mix mix;
    memset(&mix, 0, sizeof mix);
    mix.size = sizeof mix;
    mix.retiring = mix.heavy_operations = 1;
    td_must(td_simulate_mix(td, &mix));
    td_must(td_reset(td));
    work(1000000);
    td_must(td_read(td, &now));
    td_must(td_decode_l1(NULL, &now, &l1));
    CHECK_NEAR(l1.retiring, 1, 1e-9);
    td_close(td);
    return 0;
}
