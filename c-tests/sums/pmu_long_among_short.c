/* A region whose executions differ hugely: a few are a thousand times as long as the rest, and of another mix. Whichever of them
 * were measured, the truth is within `error`. */
#include "pmu.h"

enum { EXECUTIONS = 2000, SHORT = 10000, LONG = 4000000 };
static uint64_t seed;

static void one_program(void)
{
    struct td_sum sum;
    struct td_l1 l1;
    double share[4], truth[4] = {0}, whole = 0;
    const struct vm_mix of_short = MIXES[next_random(&seed) % 4], of_long[2] = {random_mix(&seed), random_mix(&seed)};
    const int longs = 1 + (int)(next_random(&seed) % 8);
    memset(&sum, 0, sizeof sum);
    td_t *td = measured(NULL);
    for (int i = 0; i < EXECUTIONS; i++) {
        const int is_long = next_random(&seed) % (EXECUTIONS / (unsigned)longs) == 0;
        const struct vm_mix mix = is_long ? of_long[i % 2] : of_short;
        const long length = is_long ? LONG : SHORT;
        mix_is(mix);
        td_must(td_sum_begin(td, &sum));
        work((uint64_t)length);
        td_must(td_sum_end(td, &sum));
        const struct truth is = truth_of(mix);
        for (int k = 0; k < 4; k++)
            truth[k] += (double)length * is.l1[k];
        whole += (double)length;
    }
    td_must(td_sum_l1(&sum, &l1));
    l1_array(&l1, share);
    for (int k = 0; k < 4; k++)
        CHECK_NEAR(share[k], truth[k] / whole, l1.error + 0.002); /* what the calls execute has a mix, too */
    printf("%.0f of %.0f executions measured, error %.3f\n", (double)sum.measured, (double)sum.executions, l1.error);
    td_close(td);
}

int main(void)
{
    td_close(measured(NULL));
    needs_known_mix();
    for (int i = 0; i < 8; i++)
        one_program();
    return 0;
}
