/* Random true counts, rounded into PERF_METRICS in every way that hardware may: the truth between two readings lies
 * within the bound that td_decode_raw_* tells. Argument: the seed of a failure, to repeat it. */
#include "check.h"

static uint64_t seed;

static double uniform(void)
{
    return (double)(next_random(&seed) >> 11) * 0x1p-53;
}

/* how much truly happened since the reset: all slots, and those of the eight categories */
struct counts {
    double slots, category[8];
};

/* A span in which slots divide by a random mix. */
static struct counts run(uint64_t slots)
{
    struct counts c = {(double)slots, {0}};
    double share[4], sum = 0;
    for (int k = 0; k < 4; k++)
        sum += share[k] = next_random(&seed) % 3 == 0 ? 0 : -log(1 - uniform()); /* zeros are common in life */
    if (sum == 0)
        sum = share[0] = 1;
    for (int k = 0; k < 4; k++) {
        c.category[k] = c.slots * share[k] / sum;
        c.category[4 + k] = c.category[k] * uniform();
    }
    return c;
}

/* The register. The ways of rounding differ in what the level 1 fields add up to. */
static uint64_t rounded(const struct counts *c, unsigned way)
{
    unsigned field[8], sum = 0;
    double exact[8];
    uint64_t value = 0;
    for (int k = 0; k < 8; k++) {
        exact[k] = 255 * c->category[k] / c->slots;
        if (way == 0 && k < 4)
            field[k] = (unsigned)exact[k]; /* and up again below, until the sum is 255 */
        else if (way <= 1)
            field[k] = (unsigned)(exact[k] + 0.5);
        else if (way == 2)
            field[k] = (unsigned)exact[k];
        else
            field[k] = (unsigned)exact[k] + (exact[k] > (unsigned)exact[k] && uniform() < 0.5);
        if (field[k] > 255)
            field[k] = 255;
        if (k < 4)
            sum += field[k];
    }
    for (; way == 0 && sum < 255; sum++) { /* largest remainder */
        int most = 0;
        for (int k = 1; k < 4; k++)
            if (exact[k] - field[k] > exact[most] - field[most])
                most = k;
        field[most]++;
    }
    for (int k = 0; k < 8; k++)
        value |= (uint64_t)field[k] << 8 * k;
    return value;
}

int main(int argc, char **argv)
{
    seed = seed_of(argc, argv);
    printf("seed %llu\n", (unsigned long long)seed);
    int telling = 0;
    const int turns = (int)repeats(300000);
    for (int i = 0; i < turns; i++) {
        struct counts a = {0, {0}}, b, between;
        const unsigned way = (unsigned)(next_random(&seed) % 4);
        uint64_t before = next_random(&seed) % 3 == 0 ? 0 : next_random(&seed) >> (18 + next_random(&seed) % 40);
        uint64_t slots = 1000 + (next_random(&seed) >> (18 + next_random(&seed) % 36));
        if (before + slots >= 1ull << 48)
            continue;
        uint64_t metrics_a = 0;
        if (before > 0) {
            a = run(before);
            metrics_a = rounded(&a, way);
        }
        b = between = run(slots);
        b.slots += a.slots;
        for (int k = 0; k < 8; k++)
            b.category[k] += a.category[k];
        struct td_l1 l1;
        struct td_l2 l2;
        double one[4], two[8];
        uint64_t metrics_b = rounded(&b, way);
        td_must(td_decode_raw_l1(before, metrics_a, before + slots, metrics_b, &l1));
        const int level_2 = has_raw_l2(before, metrics_a, before + slots, metrics_b, &l2);
        CHECK_EQ(l1.slots, slots);
        l1_array(&l1, one);
        if (level_2)
            l2_array(&l2, two);
        for (int k = 0; k < 4; k++) {
            const double truth = between.category[k] / between.slots;
            const double part = between.category[4 + k] / between.slots;
            CHECK_NEAR(one[k], truth, l1.error + 1e-12);
            if (level_2) {
                CHECK_NEAR(two[2 * k], part, l2.error + 1e-12);
                CHECK_NEAR(two[2 * k + 1], truth - part, l2.error + 1e-12);
            }
        }
        telling += l1.error < 0.02;
    }
    CHECK(telling > turns / 10); /* a bound of 1 would be right, too, and useless */
    return 0;
}
