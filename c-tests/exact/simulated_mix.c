/* The simulated mix comes back: within the bound that is told, and after a reset within one point. */
#include "check.h"

static struct td_mix mix_of(const double *level_1, const double *part)
{
    struct td_mix mix;
    memset(&mix, 0, sizeof mix);
    mix.size = sizeof mix;
    mix.retiring = level_1[0], mix.bad_speculation = level_1[1];
    mix.frontend_bound = level_1[2], mix.backend_bound = level_1[3];
    mix.heavy_operations = part[0] * level_1[0], mix.branch_mispredicts = part[1] * level_1[1];
    mix.fetch_latency = part[2] * level_1[2], mix.memory_bound = part[3] * level_1[3];
    return mix;
}

static const double MIXES[][2][4] = {
    {{0.25, 0.25, 0.25, 0.25}, {0.5, 0.5, 0.5, 0.5}},
    {{1, 0, 0, 0}, {0.3, 0, 0, 0}},
    {{0, 1, 0, 0}, {0, 1, 0, 0}},
    {{0, 0, 1, 0}, {0, 0, 0.7, 0}},
    {{0, 0, 0, 1}, {0, 0, 0, 1}},
    {{0.7, 0.01, 0.09, 0.2}, {0.1, 0.9, 0.8, 0.2}},
    {{0.001, 0.333, 0.333, 0.333}, {1, 1, 0, 0.999}},
};
enum { COUNT = sizeof MIXES / sizeof MIXES[0] };

static void is(const struct td_sample *before, const struct td_sample *after, int i, double within)
{
    struct td_l1 l1;
    struct td_l2 l2;
    double one[4], two[8];
    td_must(td_decode_l1(before, after, &l1));
    td_must(td_decode_l2(before, after, &l2));
    l1_array(&l1, one);
    l2_array(&l2, two);
    for (int k = 0; k < 4; k++) {
        const double truth = MIXES[i][0][k], part = truth * MIXES[i][1][k];
        CHECK_NEAR(one[k], truth, fmin(l1.error, within));
        CHECK_NEAR(two[2 * k], part, fmin(l2.error, within));
        CHECK_NEAR(two[2 * k + 1], truth - part, fmin(l2.error, within));
    }
}

int main(void)
{
    td_t *td = simulated(2);
    struct td_sample before, after;
    for (int i = 0; i < COUNT; i++) {
        struct td_mix mix = mix_of(MIXES[i][0], MIXES[i][1]);
        td_must(td_simulate_mix(td, &mix));
        td_must(td_reset(td));
        td_must(td_read(td, &before));
        work(2000000);
        td_must(td_read(td, &after));
        is(&before, &after, i, 0.01);
    }
    /* without resets the rounding of all slots so far falls on the region: the bound has to tell */
    td_must(td_reset(td));
    for (int i = 0; i < 4 * COUNT; i++) {
        struct td_mix mix = mix_of(MIXES[i % COUNT][0], MIXES[i % COUNT][1]);
        td_must(td_simulate_mix(td, &mix));
        td_must(td_read(td, &before));
        work(200000);
        td_must(td_read(td, &after));
        is(&before, &after, i % COUNT, 1);
    }
    td_close(td);
    return 0;
}
