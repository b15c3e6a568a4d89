/* Where do the slots of this loop go? */
#include <stdio.h>
#include <topdown.h>

int main(void)
{
    td_t *td;
    struct td_sample before, after;
    struct td_l1 l1;
    struct td_l2 l2;

    if (td_open(&td, NULL)) {
        puts("SIMULATED: there are no counters here");
        if (td_simulate(&td, NULL, "Redwood Cove"))
            return 1;
    }
    td_read(td, &before);
    for (volatile int i = 0; i < 1000000; i++) {} /* the region */
    td_read(td, &after);
    if (td_decode_l1(&before, &after, &l1))
        return 1;                         /* td_last_error has why */
    printf("backend bound %.1f %%, within %.1f points\n",
           100 * l1.backend_bound, 100 * l1.error);
    if (td_decode_l2(&before, &after, &l2) == 0)
        printf("memory bound %.1f %%, within %.1f points\n",
               100 * l2.memory_bound, 100 * l2.error);
    td_close(td);
    return 0;
}
