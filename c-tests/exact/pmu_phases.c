/* Four phases whose true mix is known, a td_reset before each and a reading on either side: the shares come back within
 * one point and within their own bound, at every level, by RDPMC and by read(2). */
#include "pmu.h"
#include "internals.h"

/* The bound: a unit of 1/255 for the reading's rounding, two more for each context switch that fell into the phase
 * (the page's sequence number moves by four or more), and for what the readings themselves take, which by read(2) is 32
 * times the skid of 320 slots (docs/error-bound.md). */
static double most_error(const struct td_sample *before, const struct td_sample *after, uint32_t path)
{
    const double by_read = path == TD_PATH_READ ? 32 * 320.0 / (double)(after->slots - before->slots) : 0;
    const uint32_t switches = (own(after)->base.sequence - own(before)->base.sequence + 3) / 4;
    return (1 + 2 * switches) / 255.0 + by_read + 0.001;
}

static void phases(uint32_t flags, uint32_t level, uint32_t path)
{
    const struct td_options options = options_of(flags, level);
    td_t *td = measured(&options);
    const struct td_info info = info_of(td);
    CHECK_EQ(info.path, path);
    CHECK_EQ(info.note[0] == 0, path == TD_PATH_RDPMC);
    if (level != 0)
        CHECK_EQ(info.level, level);
    int undisturbed = 0;
    for (int i = 0; i < 8; i++) {
        struct td_sample before, after;
        struct td_l1 l1;
        struct td_l2 l2;
        const struct vm_mix mix = MIXES[i % 4];
        mix_is(mix);
        td_must(td_reset(td));
        td_must(td_read(td, &before));
        work(2000000);
        td_must(td_read(td, &after));
        td_must(td_decode_l1(&before, &after, &l1));
        l1_is(&l1, mix, 0.01);
        CHECK_NEAR(l1.error, 0, most_error(&before, &after, path));
        undisturbed += l1.error <= 0.01;
        CHECK_NEAR(l1.running, 1, 0.001);
        if (info.level == 1) {
            CHECK_EQ(td_decode_l2(&before, &after, &l2), -ENOTSUP);
        } else {
            td_must(td_decode_l2(&before, &after, &l2));
            l2_is(&l2, mix, 0.01);
            CHECK_NEAR(l2.error, 0, 2 * most_error(&before, &after, path)); /* two roundings: a part and its parent */
        }
        td_must(td_decode_l1(NULL, &after, &l1)); /* the whole period is this phase, too */
        l1_is(&l1, mix, 0.01);
    }
    CHECK(undisturbed >= 4);
    td_close(td);
}

int main(void)
{
    td_t *td = measured(NULL);
    const uint32_t deepest = info_of(td).level;
    td_close(td);
    needs_known_mix();
    for (uint32_t level = 0; level <= deepest; level++) {
        phases(0, level, TD_PATH_RDPMC);
        phases(TD_FLAG_NO_RDPMC, level, TD_PATH_READ);
    }
    return 0;
}
