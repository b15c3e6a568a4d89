#include <stdio.h>
#include <topdown.h>

int main(void)
{
    td_t *td;
    struct td_sample before, after;
    struct td_l1 l1;
    char why[1000] = "";
    if (td_open(&td, NULL) == 0 && td_read(td, &before) == 0) {
        for (volatile int i = 0; i < 1000000; i++) {} /* the region */
        if (td_read(td, &after) == 0 && td_decode_l1(&before, &after, &l1) == 0)
            return printf("retiring %.1f %% within %.1f points\n", 100 * l1.retiring, 100 * l1.error) < 0;
    }
    td_last_error(why, sizeof why);
    fprintf(stderr, "%s\n", why);
    return 1;
}
