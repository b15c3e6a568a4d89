/* Hours of counting, by warp: regions stay sharp after up to 1e14 slots, also where PERF_METRICS overflows on the way
 * (c-tests/in-vm runs this with early overflows, too): totals are right, or the bound says that nothing is known. */
#include "pmu.h"
#include "internals.h"

static void region_is_sharp(td_t *td, struct vm_mix mix, const char *when)
{
    struct td_sample before, after;
    struct td_l1 l1;
    struct td_l2 l2;
    mix_is(mix);
    td_must(td_read(td, &before));
    work(400000);
    td_must(td_read(td, &after));
    td_must(td_decode_l1(&before, &after, &l1));
    printf("%s: error %.4f\n", when, l1.error);
    l1_is(&l1, mix, 0.01);
    CHECK(l1.error < 0.02);
    if (own(&after)->base.level == 2) {
        td_must(td_decode_l2(&before, &after, &l2));
        l2_is(&l2, mix, 0.01);
    }
}

/* so many instructions that count for 16^warp each */
static void warped(struct vm_mix mix, unsigned warp, uint64_t instructions)
{
    vm_mix_set(mix, warp, 0, 0);
    work(instructions);
    mix_is(mix);
}

int main(void)
{
    td_t *td = measured(NULL);
    const double width = info_of(td).slots_per_cycle;
    struct td_sample before, after;
    struct td_l1 l1;
    char when[64];
    needs_known_mix();
    for (unsigned warp = 2; warp <= 6; warp++) {
        for (uint64_t instructions = 100000; instructions <= 1000000; instructions *= 10) {
            warped(MIXES[1], warp, instructions);
            snprintf(when, sizeof when, "after %.1e slots", width * (double)instructions * pow(16, warp));
            region_is_sharp(td, MIXES[2], when);
        }
    }
    /* Further than PERF_METRICS may count: where it overflows, the registers start anew. So many slots take an hour, in
     * which a thread is switched out; warped they take no time, so that has to be seen to. */
    const struct timespec moment = {0, 20000};
    for (int i = 0; i < 20; i++) {
        const double slots = 1e13 + 1.3e13 * i; /* fewer than 2^48 */
        const uint64_t instructions = (uint64_t)(slots / width / pow(16, 7));
        td_must(td_read(td, &before));
        warped(MIXES[3], 7, instructions);
        nanosleep(&moment, NULL);
        td_must(td_read(td, &after));
        td_must(td_decode_l1(&before, &after, &l1));
        printf("%.2e slots, told %.2e, error %.4f\n", slots, (double)l1.slots, l1.error);
        l1_is(&l1, MIXES[3], 1);
        if (l1.error < 0.5)
            CHECK_NEAR((double)l1.slots, slots, 0.2 * slots);
        region_is_sharp(td, MIXES[i % 3], "after that");
    }
    td_close(td);
    return 0;
}
