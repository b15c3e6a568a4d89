/* A region that runs often: one result for all executions. */
#include <stdio.h>
#include <string.h>
#include <topdown.h>

int main(void)
{
    td_t *td;
    struct td_sum sum;
    struct td_l1 l1;

    if (td_open(&td, NULL)) {
        puts("SIMULATED: there are no counters here");
        if (td_simulate(&td, NULL, "Redwood Cove"))
            return 1;
    }
    memset(&sum, 0, sizeof sum);
    for (int times = 0; times < 1000; times++) {
        td_sum_begin(td, &sum);
        for (volatile int i = 0; i < 300000; i++) {} /* the region */
        td_sum_end(td, &sum);
    }
    if (td_sum_l1(&sum, &l1))
        return 1;
    printf("%llu executions, retiring %.1f %%, within %.1f points\n",
           (unsigned long long)sum.executions, 100 * l1.retiring,
           100 * l1.error);
    td_close(td);
    return 0;
}
