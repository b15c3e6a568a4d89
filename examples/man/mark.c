/* A region between two readings in place. */
#include <stdio.h>
#include <topdown_inline.h>

int main(void)
{
    td_t *td;
    struct td_mark a, b;
    struct td_sample before, after;
    struct td_l1 l1;

    if (td_open(&td, NULL)) {
        puts("SIMULATED: there are no counters here");
        if (td_simulate(&td, NULL, "Redwood Cove"))
            return 1;
    }
    td_read_mark(td, &a);
    for (volatile int i = 0; i < 100000; i++) {} /* the region */
    td_read_mark(td, &b);
    if (td_mark_sample(td, &a, &before) ||
        td_mark_sample(td, &b, &after) ||
        td_decode_l1(&before, &after, &l1))
        return 1;
    printf("retiring %.1f %%, within %.1f points\n",
           100 * l1.retiring, 100 * l1.error);
    td_close(td);
    return 0;
}
