/* TD_TARGET_CPU: what runs on one CPU, whichever thread it is; a CPU that is not there is -EINVAL. */
#include "pmu.h"

int main(void)
{
    struct td_sample before, after;
    struct td_options options = options_of(0, 0);
    struct td_l1 l1;
    td_t *td, *none = NULL;
    options.target = TD_TARGET_CPU;
    options.id = 0;
    move_to(0, 0);
    td = measured(&options);
    const struct td_info info = info_of(td);
    CHECK_EQ(info.path, TD_PATH_READ);
    CHECK(info.note[0] != 0);
    needs_known_mix();
    for (int i = 0; i < 4; i++) {
        mix_is(MIXES[i]);
        td_must(td_reset(td));
        td_must(td_read(td, &before));
        work(5000000);
        td_must(td_read(td, &after));
        td_must(td_decode_l1(&before, &after, &l1));
        CHECK((double)l1.slots >= 5000000.0 * info.slots_per_cycle);
        l1_is(&l1, MIXES[i], 0.01); /* nothing else runs there to speak of */
    }
    td_close(td);

    if (sysconf(_SC_NPROCESSORS_ONLN) > 1) { /* what runs here is not what runs there */
        options.id = 1;
        if (td_open(&td, &options) != -ENOTSUP) { /* an E-core */
            td_must(td_reset(td));
            work(5000000);
            td_must(td_read(td, &after));
            CHECK((double)after.slots < 2500000.0 * info.slots_per_cycle);
            td_close(td);
        }
    }
    options.id = 4095;
    CHECK_EQ(td_open(&none, &options), -EINVAL);
    CHECK(last_error_with("no CPU 4095"));
    return 0;
}
