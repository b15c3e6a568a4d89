/* A handle for the P-cores of a hybrid CPU alone: a thread on an E-core opens, but nothing is counted until it gets to a P-core; there
 * the shares are true, and totals survive the way back and forth. An E-core as target is -ENOTSUP.
 * needs: counters, hybrid */
#include "pmu.h"

int main(void)
{
    const int p = p_core();
    const int e = e_core();
    struct td_sample before, after, last;
    struct td_options options = options_of(0, 0);
    struct td_l1 l1;
    td_t *none = NULL;
    if (p < 0 || e < 0)
        SKIP("not a hybrid CPU");
    move_to(0, e);
    struct td_options p_cores = options_of(0, 0);
    p_cores.core_type = TD_CORES_P;
    td_t *td = measured(&p_cores);
    CHECK_EQ(strcmp(info_of(td).pmu, "cpu_core"), 0);
    td_close(td);
    p_cores.source = TD_SOURCE_COUNTERS;
    td = measured(&p_cores);
    const struct td_info info = info_of(td);
    CHECK_EQ(strcmp(info.pmu, "cpu_core"), 0);
    CHECK_EQ(info.path, TD_PATH_RDPMC);
    td_must(td_read(td, &before));
    work(2000000);
    td_must(td_read(td, &after));
    CHECK_EQ(after.slots, 0);
    CHECK_EQ(td_decode_l1(&before, &after, &l1), TD_ENOTCOUNTING);
    CHECK(last_error_with("E-core"));
    CHECK_EQ(td_decode_l1(NULL, &after, &l1), TD_ENOTCOUNTING);
    needs_known_mix();

    /* P-core: the truth */
    move_to(0, p);
    mix_is(MIXES[0]);
    td_must(td_reset(td));
    td_must(td_read(td, &before));
    work(2000000);
    td_must(td_read(td, &after));
    td_must(td_decode_l1(&before, &after, &l1));
    l1_is(&l1, MIXES[0], 0.01);
    CHECK_NEAR(l1.running, 1, 0.01);

    /* away and back: nothing is lost, nothing of the E-core is added, and the bound knows what went uncounted */
    last = after;
    for (int i = 0; i < 20; i++) {
        move_to(0, e);
        td_must(td_read(td, &after));
        CHECK(after.slots >= last.slots);
        work(200000);
        td_must(td_read(td, &last));
        CHECK((double)(last.slots - after.slots) < 5000.0 * info.slots_per_cycle);
        move_to(0, p);
        td_must(td_read(td, &after));
        CHECK(after.slots >= last.slots);
        work(200000);
        td_must(td_read(td, &last));
        CHECK((double)(last.slots - after.slots) >= 200000.0 * info.slots_per_cycle);
        CHECK((double)(last.slots - after.slots) < 205000.0 * info.slots_per_cycle);
    }
    td_must(td_decode_l1(&before, &last, &l1));
    l1_is(&l1, MIXES[0], 0.02);
    CHECK(l1.running < 0.9);
    td_close(td);

    options.target = TD_TARGET_CPU;
    options.id = e;
    CHECK_EQ(td_open(&none, &options), -ENOTSUP);
    CHECK(last_error_with("E-core"));
    options.id = p;
    td_must(td_open(&td, &options));
    td_close(td);
    return 0;
}
