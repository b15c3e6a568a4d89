/* A program that shows shares is tried with ones that are known. */
#include <stdio.h>
#include <topdown.h>

int main(void)
{
    td_t *td;
    struct td_sample before, after;
    struct td_l1 l1;
    struct td_options options = { .size = sizeof options,
                                  .flags = TD_FLAG_SIMULATE };
    struct td_mix mix = { .size = sizeof mix, .retiring = 0.25,
                          .bad_speculation = 0.05,
                          .frontend_bound = 0.1, .backend_bound = 0.6,
                          .memory_bound = 0.5 };

    if (td_open(&td, &options) || td_simulate_mix(td, &mix))
        return 1;
    td_read(td, &before);
    for (volatile int i = 0; i < 1000000; i++) {}
    td_read(td, &after);
    if (td_decode_l1(&before, &after, &l1))
        return 1;
    printf("backend bound %.1f %%: 60 within %.1f points\n",
           100 * l1.backend_bound, 100 * l1.error);
    td_close(td);
    return 0;
}
