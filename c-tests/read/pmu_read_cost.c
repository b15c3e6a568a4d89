/* What a reading of registers costs, in instructions: td_read, and under the preload library a region that is not measured. */
#include "cost.h"
#include <topdown_region.h>

enum { MOST_READ = 44, A_COUNTER = 6, MOST_REGION = 160 }; /* with the calls; and of a counter beside the registers */

static td_t *td;
static struct td_sample sample;

static __attribute__((noinline)) void reading(void) { td_read(td, &sample); }
static __attribute__((noinline)) void one_region(void)
{
    td_region_begin("region");
    td_region_end("region");
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) { /* under the preload library */
        costs("a region", one_region, MOST_REGION);
        return 0;
    }
    static const uint32_t BARE[] = {TD_FLAG_BARE, 0};
    for (int k = 0; k < 2; k++) {
        const struct td_options registers = options_of(TD_FLAG_REGISTERS | BARE[k], 0);
        td = measured(&registers);
        needs_known_mix(); /* where the time-stamp counter counts instructions */
        struct td_sample first;
        td_must(td_read(td, &first));
        costs("td_read", reading, MOST_READ + (uint64_t)k * 2 * A_COUNTER);
        CHECK(sample.slots > first.slots);
        td_close(td);
    }

    again_under_preload("registers", "region");
}
