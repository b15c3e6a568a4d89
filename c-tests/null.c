/* A NULL pointer is an error everywhere, never a crash. */
#include "check.h"

int main(void)
{
    td_t *td = simulated(0);
    struct td_sample sample;
    struct td_info info;
    struct td_mix mix;
    struct td_l1 l1;
    struct td_l2 l2;
    struct td_options options;
    memset(&mix, 0, sizeof mix);
    mix.size = sizeof mix;
    mix.retiring = 1;
    memset(&options, 0, sizeof options);
    options.flags = TD_FLAG_SIMULATE;
    work(1000);
    td_must(td_read(td, &sample));
#define REFUSED(call) (CHECK_EQ(call, -EINVAL), CHECK(last_error_with("NULL")))
    REFUSED(td_open(NULL, NULL));
    REFUSED(td_open(NULL, &options));
    REFUSED(td_read(NULL, &sample));
    REFUSED(td_read(td, NULL));
    REFUSED(td_read(NULL, NULL));
    REFUSED(td_reset(NULL));
    REFUSED(td_get_info(NULL, &info));
    REFUSED(td_get_info(td, NULL));
    REFUSED(td_simulate_mix(NULL, &mix));
    REFUSED(td_simulate_mix(td, NULL));
    REFUSED(td_decode_l1(NULL, NULL, &l1));
    REFUSED(td_decode_l1(&sample, NULL, &l1));
    REFUSED(td_decode_l1(NULL, &sample, NULL));
    REFUSED(td_decode_l2(NULL, NULL, &l2));
    REFUSED(td_decode_l2(&sample, NULL, &l2));
    REFUSED(td_decode_l2(NULL, &sample, NULL));
    REFUSED(td_decode_raw_l1(0, 0, 1000, 0xff, NULL));
    REFUSED(td_decode_raw_l2(0, 0, 1000, 0xff, NULL));
    CHECK_EQ(td_last_error(NULL, 1), -EINVAL);
    CHECK(td_last_error(NULL, 0) > 0);
    td_close(NULL);
    td_must(td_decode_l1(NULL, &sample, &l1));
    td_close(td);
    return 0;
}
