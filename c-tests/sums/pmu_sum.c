/* Sums of short executions by registers against the truth: sparse ones of a region whose executions take turns at being two quite
 * different things, within the budget; and those of a loop that is read at each turn, where the bound is far less than the
 * sum of each turn's own. */
#include "pmu.h"

/* so many instructions, in blocks that cost the emulator little */
static void nops(uint64_t instructions)
{
    for (uint64_t n = instructions / 256; n > 0; n--)
        __asm__ volatile(".rept 254\n\tnop\n\t.endr");
}

static const struct td_options REGISTERS = {.size = sizeof REGISTERS, .flags = TD_FLAG_REGISTERS | TD_FLAG_BARE};

struct kind {
    struct vm_mix mix;
    uint64_t instructions;
};
static const struct kind KINDS[2] = {{{48, 4, 4, 8, 8, 8, 8}, 20480}, {{4, 4, 44, 2, 4, 12, 8}, 10240}};

static void sparse(void)
{
    enum { EXECUTIONS = 20000 };
    td_t *td = measured(&REGISTERS);
    const struct td_info info = info_of(td);
    struct td_sum sum;
    struct td_sample begun, ended;
    struct td_l1 l1;
    double share[8], all = 0;
    memset(&sum, 0, sizeof sum);
    td_must(td_read(td, &begun));
    for (int i = 0; i < EXECUTIONS; i++) {
        const struct kind *kind = &KINDS[i % 2];
        mix_is(MIXES[3]);
        nops(20480);
        mix_is(kind->mix);
        td_must(td_sum_begin(td, &sum));
        nops(kind->instructions);
        td_must(td_sum_end(td, &sum));
        all += (double)kind->instructions;
    }
    td_must(td_read(td, &ended));
    td_must(td_sum_l1(&sum, &l1));
    l1_array(&l1, share);
    printf("%llu of %llu executions measured, error %.4f:", (unsigned long long)sum.measured,
           (unsigned long long)sum.executions, l1.error);
    CHECK_EQ(sum.executions, EXECUTIONS);
    /* the readings' own instructions, by far */
    CHECK_NEAR((double)sum.slots, all * info.slots_per_cycle, 1500.0 * EXECUTIONS * info.slots_per_cycle);
    /* what of the readings counts in an execution, is in it */
    const double readings = ((double)sum.slots / info.slots_per_cycle - all) / EXECUTIONS;
    const double first = (double)KINDS[0].instructions + readings, second = (double)KINDS[1].instructions + readings;
    double widest = 0;
    for (int k = 0; k < 4; k++) {
        const double of_first = truth_of(KINDS[0].mix).l1[k], of_second = truth_of(KINDS[1].mix).l1[k];
        const double truth = (of_first * first + of_second * second) / (first + second);
        /* four standard errors of a ratio estimated from so many */
        const double spread = hypot((of_first - truth) * first, (of_second - truth) * second) / sqrt(2) / ((first + second) / 2);
        const double of_sample = 4 * spread / sqrt((double)sum.measured);
        widest = of_sample > widest ? of_sample : widest;
        printf(" %.4f (%.4f)", share[k], truth);
        CHECK_NEAR(share[k], truth, l1.error);
        CHECK_NEAR(share[k], truth, of_sample + 0.01);
    }
    printf(", of the sample %.4f\n", widest);
    CHECK(l1.error < 1.1 * widest + 0.06); /* (0.06: what each execution's own ends may be off by) */
    CHECK(sum.measured > EXECUTIONS / 50);
    CHECK_EQ(!!(l1.flags & TD_SAMPLE_SPARSE), sum.measured < EXECUTIONS);
    if (info.level == 2) {
        struct td_l2 l2;
        td_must(td_sum_l2(&sum, &l2));
        CHECK_NEAR(l2.fetch_latency, (truth_of(KINDS[0].mix).l2[4] * 2 + truth_of(KINDS[1].mix).l2[4]) / 3, l2.error);
        CHECK(l2.error < 0.2);
    }
    const struct td_info after = info_of(td);
    const double time = (double)(ended.time_enabled_ns - begun.time_enabled_ns);
    CHECK((double)after.windows_ns < 0.01 * time + 64 * 5000);
    td_close(td);
}

static void each_turn_of_a_loop(void)
{
    enum { TURNS = 2000, INSTRUCTIONS = 8192 };
    td_t *td = measured(&REGISTERS);
    struct td_sum sum;
    struct td_sample a, b;
    struct td_l1 l1;
    double share[8], own = 0;
    memset(&sum, 0, sizeof sum);
    mix_is(MIXES[1]);
    nops(1000000);
    mix_is(MIXES[2]);
    td_must(td_read(td, &a));
    for (int i = 0; i < TURNS; i++) {
        nops(INSTRUCTIONS);
        td_must(td_read(td, &b));
        td_must(td_sum_add(&sum, &a, &b));
        td_must(td_decode_l1(&a, &b, &l1));
        own += l1.error / TURNS;
        a = b;
    }
    td_must(td_sum_l1(&sum, &l1));
    l1_array(&l1, share);
    printf("a loop of %d turns: error %.4f, of a turn %.4f\n", TURNS, l1.error, own);
    l1_is(&l1, MIXES[2], 0.01);
    CHECK(!(l1.flags & TD_SAMPLE_SPARSE));
    CHECK(l1.error < 0.05 && l1.error < own / 4);
    td_close(td);
}

int main(void)
{
    td_close(measured(NULL));
    needs_known_mix();
    sparse();
    each_turn_of_a_loop();
    return 0;
}
