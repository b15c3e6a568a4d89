/* Two periods: what is read begins with 0 in each. */
#include <stdio.h>
#include <topdown.h>

static void work(int times)
{
    for (volatile int i = 0; i < times; i++) {}
}

int main(void)
{
    td_t *td;
    struct td_sample first, second;

    if (td_open(&td, NULL)) {
        puts("SIMULATED: there are no counters here");
        if (td_simulate(&td, NULL, "Redwood Cove"))
            return 1;
    }
    work(1000000);
    if (td_read(td, &first) || td_reset(td))
        return 1;
    work(2000000);
    if (td_read(td, &second))
        return 1;
    printf("%llu slots, then %llu\n", (unsigned long long)first.slots,
           (unsigned long long)second.slots);
    td_close(td);
    return 0;
}
