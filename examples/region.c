/* Where do the slots of this loop go? */
#include <stdio.h>
#include <topdown.h>

int main(void)
{
    td_t *td;
    struct td_sample before, after;
    struct td_l1 shares;
    struct td_options simulated = { .size = sizeof simulated, .flags = TD_FLAG_SIMULATE };

    char why[1000];

    if (td_open(&td, NULL)) {                     /* no counters here: say why, and go on with made-up ones */
        td_last_error(why, sizeof why);
        printf("SIMULATED: %s\n", why);
        if (td_open(&td, &simulated))
            return 1;
    }
    td_read(td, &before);
    for (volatile int i = 0; i < 1000000; i++) {} /* the region */
    td_read(td, &after);
    if (td_decode_l1(&before, &after, &shares)) { /* nothing was counted, say */
        td_last_error(why, sizeof why);
        printf("not measured: %s\n", why);
    } else {
        printf("retiring %.1f %%, bad speculation %.1f %%, frontend bound %.1f %%, backend bound %.1f %%, each within "
               "%.1f points\n", 100 * shares.retiring, 100 * shares.bad_speculation, 100 * shares.frontend_bound,
               100 * shares.backend_bound, 100 * shares.error);
    }
    td_close(td);
    return 0;
}
