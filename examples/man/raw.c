/* Shares between two values each of SLOTS and PERF_METRICS. */
#include <stdio.h>
#include <topdown.h>

int main(void)
{
    /* as RDPMC gave them: the second ones 1,000,000 slots later */
    const uint64_t slots_a = 1000000, metrics_a = 0x4c331a66;
    const uint64_t slots_b = 2000000, metrics_b = 0x593f1453;
    struct td_l1 l1;

    if (td_decode_raw_l1(slots_a, metrics_a, slots_b, metrics_b, &l1))
        return 1;
    printf("retiring %.1f %%, backend bound %.1f %%, within %.1f\n",
           100 * l1.retiring, 100 * l1.backend_bound, 100 * l1.error);
    return 0;
}
