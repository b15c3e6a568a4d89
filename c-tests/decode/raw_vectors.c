/* td_decode_raw_*: readings of SLOTS and PERF_METRICS whose shares follow from the definition by hand: a category has
 * slots * field / 255 slots since the reset, and between two readings the difference of that. */
#include "check.h"

/* PERF_METRICS from its bytes: retiring, bad speculation, frontend, backend, then the level 2 part of each */
static uint64_t metrics(const unsigned *field)
{
    uint64_t value = 0;
    for (int k = 0; k < 8; k++)
        value |= (uint64_t)field[k] << 8 * k;
    return value;
}

struct vector {
    uint64_t slots_a;
    unsigned a[8];
    uint64_t slots_b;
    unsigned b[8];
    double l1[4], part[4]; /* of all slots; what remains of a parent is the other half of the pair */
};

static const struct vector VECTORS[] = {
    /* From a reset. Fields 51 + 102 + 51 + 51 = 255: 51/255 = 0.2, 102/255 = 0.4. Level 2: 25.5 cannot be, so
     * 17/255 = 1/15, 34/255 = 2/15, 51/255 = 0.2, 0. */
    {0, {0}, 255000, {51, 102, 51, 51, 17, 34, 51, 0}, {0.2, 0.4, 0.2, 0.2}, {1. / 15, 2. / 15, 0.2, 0}},
    /* 255,000 slots all retiring, half of them heavy operations as far as 128 can tell (128,000); then 255,000 more.
     * b: 510,000 * 128 / 255 = 256,000 retiring, 510,000 * 127 / 255 = 254,000 bad speculation, 510,000 * 64 / 255 =
     * 128,000 heavy operations, 510,000 * 127 / 255 = 254,000 mispredicts.
     * Difference: 1,000 retiring, none of them heavy, 254,000 bad speculation, all of them mispredicts. */
    {255000, {255, 0, 0, 0, 128}, 510000, {128, 127, 0, 0, 64, 127}, {1. / 255, 254. / 255, 0, 0}, {0, 254. / 255, 0, 0}},
    /* The same share over and over is the share in between: 0.6, 0, 0, 0.4. */
    {1000005, {153, 0, 0, 102, 51, 0, 0, 34}, 3000015, {153, 0, 0, 102, 51, 0, 0, 34}, {0.6, 0, 0, 0.4}, {0.2, 0, 0, 2. / 15}},
    /* Fields are shares of their sum where that is not 255: 50, 100, 50, 50 of 250. */
    {0, {0}, 1000000, {50, 100, 50, 50, 25, 50, 0, 50}, {0.2, 0.4, 0.2, 0.2}, {0.1, 0.2, 0, 0.2}},
    /* Rounding can take slots away from a category: 255,000 * 2 / 255 = 2,000 retiring, later 0: that is -2,000, no
     * share below 0; and bad speculation 510,000 - 253,000 = 257,000 of 255,000, no share above 1. */
    {255000, {2, 253}, 510000, {0, 255}, {0, 1, 0, 0}, {0, 0, 0, 0}},
    /* The whole 48 bits: 15/255 * (2^48 - 1) is a whole number, since 255 divides 2^48 - 1. */
    {0, {0}, (1ull << 48) - 1, {15, 30, 60, 150, 15, 15, 15, 15}, {1. / 17, 2. / 17, 4. / 17, 10. / 17},
     {1. / 17, 1. / 17, 1. / 17, 1. / 17}},
    /* A level 2 part is no more than its parent, whatever the field says: 60/255 of 51/255. */
    {0, {0}, 255000, {51, 102, 51, 51, 60, 0, 0, 0}, {0.2, 0.4, 0.2, 0.2}, {0.2, 0, 0, 0}},
};

static void shares_of(const struct vector *v)
{
    struct td_l1 l1;
    struct td_l2 l2;
    double one[4], two[8];
    td_must(td_decode_raw_l1(v->slots_a, metrics(v->a), v->slots_b, metrics(v->b), &l1));
    const int level_2 = has_raw_l2(v->slots_a, metrics(v->a), v->slots_b, metrics(v->b), &l2);
    CHECK_EQ(l1.size, sizeof l1);
    CHECK_EQ(l1.flags, 0);
    CHECK_EQ(l1.slots, v->slots_b - v->slots_a);
    CHECK_NEAR(l1.running, 1, 0);
    l1_array(&l1, one);
    /* slots are whole: each of the two readings may be off by one in each category */
    const double whole_slots = 2.0 / (double)(v->slots_b - v->slots_a) + 1e-12;
    for (int k = 0; k < 4; k++) {
        CHECK_NEAR(one[k], v->l1[k], whole_slots);
    }
    if (!level_2)
        return;
    CHECK_EQ(l2.size, sizeof l2);
    CHECK_EQ(l2.slots, v->slots_b - v->slots_a);
    l2_array(&l2, two);
    for (int k = 0; k < 4; k++) {
        CHECK_NEAR(two[2 * k], v->part[k], whole_slots);
        CHECK_NEAR(two[2 * k + 1], v->l1[k] - v->part[k], 2 * whole_slots);
    }
}

/* A field is within one unit, 1/255 of the slots since the reset, at each end: the bound is no less than the two
 * together, and for long spans not much more. */
static void bound(void)
{
    const unsigned even[8] = {64, 64, 64, 63};
    const uint64_t m = metrics(even);
    struct td_l1 l1;
    td_must(td_decode_raw_l1(0, 0, 1000000000, m, &l1));
    CHECK(l1.error >= 1. / 255);
    CHECK(l1.error <= 1.1 / 255);
    td_must(td_decode_raw_l1(1000000000, m, 2000000000, m, &l1)); /* one unit of 10^9 slots, one of 2 * 10^9 */
    CHECK(l1.error >= 3. / 255);
    CHECK(l1.error <= 3.3 / 255);
    td_must(td_decode_raw_l1(1000000000, m, 1000001000, m, &l1)); /* a region far below the rounding */
    CHECK(l1.error >= 0.5);
    CHECK(l1.error <= 1);
}

static void refused(void)
{
    const unsigned some[8] = {51, 102, 51, 51, 17, 34, 51, 1};
    const uint64_t m = metrics(some);
    struct td_l1 l1;
    struct td_l2 l2;
    memset(&l1, 0x55, sizeof l1);
    memset(&l2, 0x55, sizeof l2);
#define REFUSED(code, slots_a, slots_b) \
    (CHECK_EQ(td_decode_raw_l1(slots_a, m, slots_b, m, &l1), code), CHECK_EQ(td_decode_raw_l2(slots_a, m, slots_b, m, &l2), code))
    REFUSED(TD_ESTALE, 5000, 4999); /* SLOTS only goes back when it is reset */
    CHECK(last_error_with("reset"));
    REFUSED(TD_ENOTCOUNTING, 5000, 5000);
    REFUSED(TD_ENOTCOUNTING, 0, 0);
    REFUSED(-EINVAL, 0, 1ull << 48);
    REFUSED(-EINVAL, 1ull << 48, (1ull << 48) + 5);
    REFUSED(-EINVAL, UINT64_MAX, UINT64_MAX);
    /* empty fields say nothing, whatever SLOTS says and the reading before */
    const uint64_t level_2_only = m >> 32 << 32;
    const uint64_t from[][2] = {{0, 0}, {5000, m}}, empty[] = {0, level_2_only};
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            CHECK_EQ(td_decode_raw_l1(from[i][0], from[i][1], 1000000000, empty[k], &l1), TD_ENOTCOUNTING);
            CHECK_EQ(td_decode_raw_l2(from[i][0], from[i][1], 1000000000, empty[k], &l2), TD_ENOTCOUNTING);
            CHECK(last_error_with("PERF_METRICS is empty"));
        }
    CHECK_EQ(l1.size, 0x55555555);
    CHECK_EQ(l2.size, 0x55555555);
}

int main(void)
{
    for (size_t i = 0; i < sizeof VECTORS / sizeof VECTORS[0]; i++)
        shares_of(&VECTORS[i]);
    bound();
    refused();
    return 0;
}
