/* Skid: what the library itself executes at a region's ends is not taken for the region's. The program is at one mix in the
 * region and at another around it, so the calls are at that, too. Pairs of readings whether they open windows or not, by
 * read(2), and sums. Between the change of mix and the reading are some instructions of this program, which the skid covers. */
#include "pmu.h"
#include <topdown_inline.h>

static const struct vm_mix REGION = {48, 4, 8, 8, 8, 8, 8}, AROUND = {4, 40, 8, 8, 8, 8, 8};

static void nops(uint64_t instructions)
{
    for (uint64_t n = instructions / 256; n > 0; n--)
        __asm__ volatile(".rept 254\n\tnop\n\t.endr");
}

/* The largest distance from the truth of many regions of so many instructions, and its bound. */
static void pairs(uint32_t flags, uint64_t instructions, uint64_t between)
{
    const struct td_options options = options_of(flags, 0);
    td_t *td = measured(&options);
    struct td_sample before, after;
    struct td_l1 l1;
    double share[4], worst = 0, own = 0;
    for (int i = 0; i < 100; i++) {
        mix_is(AROUND);
        nops(between);
        int code = td_read(td, &before);
        mix_is(REGION);
        nops(instructions);
        mix_is(AROUND);
        code |= td_read(td, &after);
        CHECK_EQ(code, 0);
        td_must(td_decode_l1(&before, &after, &l1));
        l1_array(&l1, share);
        for (int k = 0; k < 4; k++) {
            CHECK_NEAR(share[k], truth_of(REGION).l1[k], l1.error);
            worst = fmax(worst, fabs(share[k] - truth_of(REGION).l1[k]));
        }
        own += ((double)l1.slots / info_of(td).slots_per_cycle - (double)(instructions / 256 * 256)) / 100;
    }
    printf("%8.0f instructions: off by %.4f at most, %.0f instructions of others in it\n", (double)instructions, worst, own);
    td_close(td);
}

/* The region of a sum, with the four instructions that change the mix at its beginning. */
static inline __attribute__((always_inline)) void region(uint64_t own, uint64_t around, uint64_t instructions)
{
    __asm__ volatile(MIX_IN_PLACE("%0") : : "r"(own) : "rax", "rcx", "r11", "rdi", "rsi", "memory");
    nops(instructions);
    __asm__ volatile(MIX_IN_PLACE("%0") : : "r"(around) : "rax", "rcx", "r11", "rdi", "rsi", "memory");
}

static void sums(uint64_t instructions)
{
    const uint64_t own = mix_number(REGION), around = mix_number(AROUND);
    const double before = 4.0 / (double)(instructions + 8);
    td_t *td = measured(NULL);
    struct td_sum sum;
    struct td_l1 l1;
    double share[4], worst = 0;
    memset(&sum, 0, sizeof sum);
    mix_is(AROUND);
    for (int i = 0; i < 20000; i++) {
        int code = td_sum_begin(td, &sum);
        region(own, around, instructions);
        code |= td_sum_end(td, &sum);
        CHECK_EQ(code, 0);
    }
    td_must(td_sum_l1(&sum, &l1));
    l1_array(&l1, share);
    for (int k = 0; k < 4; k++)
        worst = fmax(worst, fabs(share[k] - before * truth_of(AROUND).l1[k] - (1 - before) * truth_of(REGION).l1[k]));
    printf("%8.0f instructions: off by %.4f, error %.4f, in %llu measured of 20,000\n", (double)instructions, worst, l1.error,
           (unsigned long long)sum.measured);
    CHECK(worst <= l1.error);
    td_close(td);
}

int main(void)
{
    td_close(measured(NULL));
    needs_known_mix();
    for (uint64_t instructions = 10000; instructions <= 1000000; instructions *= 10)
        for (uint64_t between = 1000; between <= 1000000; between *= 30)
            for (uint32_t flags = 0; flags <= TD_FLAG_NO_RDPMC; flags += TD_FLAG_NO_RDPMC)
                pairs(flags, instructions, between);
    for (uint64_t instructions = 1024; instructions <= 65536; instructions *= 4)
        sums(instructions);
    return 0;
}
