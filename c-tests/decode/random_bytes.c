/* Whatever the bytes are: the decoders give shares that add up to 1, none negative and none NaN, or an error code that
 * the header names. Argument: the seed of a failure, to repeat it. */
#include "check.h"
#include "internals.h"
#include <topdown_inline.h>

static uint64_t seed;
static long decoded, refused;

/* `rest`: what is of none of the shares */
static void sound(const double *share, int count, double rest, double error, double running)
{
    double sum = rest;
    CHECK(rest >= 0 && rest <= 1);
    for (int k = 0; k < count; k++) {
        CHECK(share[k] >= 0 && share[k] <= 1);
        sum += share[k];
    }
    CHECK_NEAR(sum, 1, 1e-9);
    CHECK(error >= 0 && error <= 1);
    CHECK(running >= 0 && running <= 1);
}

static int named(int code, int level)
{
    return code == -EINVAL || code == TD_ESTALE || code == TD_ENOTCOUNTING || (level == 2 && code == -ENOTSUP);
}

static void l1_sound(int code, const struct td_l1 *l1)
{
    double share[4];
    if (code != 0) {
        if (!named(code, 1))
            FAIL("code %d (%s)", code, td_strerror(code));
        refused++;
        return;
    }
    l1_array(l1, share);
    sound(share, 4, l1->smt_contention, l1->error, l1->running);
    CHECK_EQ(l1->size, sizeof *l1);
    CHECK(l1->slots > 0);
    decoded++;
}

static void l2_sound(int code, const struct td_l2 *l2, const struct td_l1 *l1)
{
    double share[8];
    if (code != 0) {
        if (!named(code, 2))
            FAIL("code %d (%s)", code, td_strerror(code));
        refused++;
        return;
    }
    l2_array(l2, share);
    sound(share, 8, 0, l2->error, l2->running);
    CHECK_EQ(l2->size, sizeof *l2);
    CHECK_NEAR(share[0] + share[1], l1->retiring, 1e-9);
    CHECK_NEAR(share[2] + share[3], l1->bad_speculation, 1e-9);
    CHECK_NEAR(share[4] + share[5], l1->frontend_bound, 1e-9);
    CHECK_NEAR(share[6] + share[7], l1->backend_bound, 1e-9);
    decoded++;
}

/* The nodes are what was decoded of both levels, within intervals that are no wider than their bounds. */
static void tree_sound(const struct td_sample *from, const struct td_sample *to, const int codes[2], const struct td_l1 *l1,
                       const struct td_l2 *l2)
{
    enum { MOST_NODES = 17 };
    struct td_node nodes[MOST_NODES];
    double share[12];
    uint32_t count = 0;
    CHECK_EQ(td_decode_tree(from, to, nodes, MOST_NODES, &count), codes[0]);
    if (codes[0] != 0)
        return;
    /* Tremont; Zen; subtrees of arm64; the made-up core; E-cores; PERF_METRICS, Zen's subtrees; subtrees of E-cores and hip08 */
    CHECK(count == 4 || count == 5 || count == 6 || count == 8 || count == 10 || (count >= 12 && count <= MOST_NODES));
    l1_array(l1, share);
    if (codes[1] == 0)
        l2_array(l2, share + 4);
    for (uint32_t k = 0; k < count; k++) {
        const struct td_node *node = &nodes[k];
        const int named = node->id <= 4 || (node->id <= 12 && codes[1] == 0); /* ids are in the order of td_l1 and td_l2 */
        CHECK(node->measured || !named);
        if (!node->measured)
            continue;
        CHECK(0 <= node->low && node->low <= node->value && node->value <= node->high && node->high <= 1);
        if (!named)
            continue;
        const double error = (node->id <= 4 ? l1->error : l2->error) + 2e-9;
        CHECK(node->value == share[node->id - 1]);
        CHECK(node->value - node->low <= error && node->high - node->value <= error);
    }
}

static void decode(const struct td_sample *from, const struct td_sample *to)
{
    struct td_l1 l1;
    struct td_l2 l2;
    const int codes[2] = {td_decode_l1(from, to, &l1), td_decode_l2(from, to, &l2)};
    l1_sound(codes[0], &l1);
    l2_sound(codes[1], &l2, &l1);
    tree_sound(from, to, codes, &l1, &l2);
}

/* Values at the edges of their range are where sums overflow. */
static uint64_t odd_value(void)
{
    static const uint64_t EDGES[] = {0, 1, 255, 256, 0x7fffffff, 0xffffffff, (1ull << 48) - 1, 1ull << 48,
                                     INT64_MAX, 1ull << 63, UINT64_MAX};
    const uint64_t r = next_random(&seed);
    if (r % 2 == 0)
        return EDGES[(r >> 8) % (sizeof EDGES / sizeof EDGES[0])];
    return next_random(&seed) >> (r >> 8) % 64;
}

/* A few words, bytes or bits of a sample become something else. */
static void mutate(struct td_sample *sample)
{
    unsigned char *bytes = (unsigned char *)sample;
    for (uint64_t n = next_random(&seed) % 4; n > 0; n--) {
        const uint64_t r = next_random(&seed), value = odd_value();
        switch (r % 4) {
        case 0: memcpy(bytes + (r >> 8) % (sizeof *sample / 8) * 8, &value, 8); break;
        case 1: memcpy(bytes + (r >> 8) % (sizeof *sample / 4) * 4, &value, 4); break;
        case 2: bytes[(r >> 8) % sizeof *sample] = (unsigned char)value; break;
        default: bytes[(r >> 8) % sizeof *sample] ^= (unsigned char)(1u << value % 8);
        }
    }
}

/* All is random but what makes it pass for a sample of a handle. */
static void random_sample(struct td_sample *sample, const struct td_sample *model)
{
    uint64_t words[sizeof *sample / 8];
    for (size_t i = 0; i < sizeof words / 8; i++)
        words[i] = next_random(&seed) % 4 ? next_random(&seed) : odd_value();
    memcpy(sample, words, sizeof *sample);
    struct td_own_sample *const made = (struct td_own_sample *)sample;
    made->size = model->size;
    made->base.handle = own(model)->base.handle;
    made->base.period = own(model)->base.period;
    made->base.model = own(model)->base.model;
    made->base.level = 2;
    made->slots_before = made->slots - (made->slots_before >> 16);
}

/* A sum of random bytes, or a good one in which some are changed, through all that takes one. */
static void sum(td_t *td, const struct td_sum *good, const struct td_sample *from, const struct td_sample *to)
{
    struct td_sum sum = *good;
    struct td_l1 l1;
    struct td_l2 l2;
    uint64_t words[sizeof sum / 8];
    memcpy(words, &sum, sizeof sum);
    if (next_random(&seed) % 4 == 0) {
        for (size_t i = 0; i < sizeof words / 8; i++)
            words[i] = next_random(&seed) % 2 ? next_random(&seed) : odd_value();
    }
    for (uint64_t n = next_random(&seed) % 4; n > 0; n--)
        words[next_random(&seed) % (sizeof words / 8)] = odd_value();
    memcpy(&sum, words, sizeof sum);
    for (int turn = 0; turn < 4; turn++) {
        int code = turn == 0 ? 0 : turn == 1 ? td_sum_add(&sum, from, to) : turn == 2 ? td_sum_begin(td, &sum) : td_sum_end(td, &sum);
        if (code != 0 && code != TD_ESTALE && !named(code, 1))
            FAIL("turn %d: code %d (%s)", turn, code, td_strerror(code));
        l1_sound(td_sum_l1(&sum, &l1), &l1);
        l2_sound(td_sum_l2(&sum, &l2), &l2, &l1);
    }
}

/* A mark of random bytes, or a good one in which some are changed, is refused or makes a sound sample. */
static void mark(td_t *td, const struct td_mark *good)
{
    struct td_mark mark = *good;
    struct td_sample sample;
    if (next_random(&seed) % 2)
        mark.metrics = odd_value();
    if (next_random(&seed) % 2)
        mark.slots = odd_value();
    if (next_random(&seed) % 8 == 0)
        mark.window = (uint32_t)odd_value();
    if (next_random(&seed) % 8 == 0)
        mark.sequence = (uint32_t)odd_value();
    const int code = td_mark_sample(td, &mark, &sample);
    if (code == 0)
        decode(NULL, &sample);
    else
        CHECK(code == TD_ESTALE || code == -EINVAL);
}

int main(int argc, char **argv)
{
    seed = seed_of(argc, argv);
    printf("seed %llu\n", (unsigned long long)seed);
    td_t *td = simulated(0);
    struct td_sample before, after, from, to;
    struct td_l1 l1;
    struct td_l2 l2;
    td_must(td_read(td, &before));
    work(100000);
    td_must(td_read(td, &after));
    struct td_sum good;
    memset(&good, 0, sizeof good);
    td_must(td_sum_begin(td, &good));
    td_must(td_sum_end(td, &good));
    td_must(td_sum_add(&good, &before, &after));
    for (int i = 0; i < 10000; i++) {
        from = before, to = after;
        if (i % 2)
            mutate(&to);
        sum(td, &good, &from, &to);
    }
    for (int i = 0; i < 10000; i++) {
        struct td_mark read;
        td_must(td_mark_read_slowly(td, &read));
        mark(td, &read);
    }
    td_close(td);
    for (int i = 0; i < repeats(250000); i++) {
        from = before, to = after;
        mutate(&from);
        mutate(&to);
        decode(i % 4 ? &from : NULL, &to);
    }
    for (int i = 0; i < repeats(250000); i++) {
        random_sample(&from, &before);
        random_sample(&to, &before);
        decode(i % 4 ? &from : NULL, &to);
    }
    for (int i = 0; i < repeats(250000); i++) {
        uint64_t word[4];
        for (int k = 0; k < 4; k++)
            word[k] = next_random(&seed) % 2 ? next_random(&seed) : odd_value();
        if (next_random(&seed) % 8)
            word[0] >>= 16, word[2] >>= 16;
        l1_sound(td_decode_raw_l1(word[0], word[1], word[2], word[3], &l1), &l1);
        l2_sound(td_decode_raw_l2(word[0], word[1], word[2], word[3], &l2), &l2, &l1);
    }
    for (int i = 0; i < repeats(250000); i++) { /* nothing but noise */
        uint64_t words[2][sizeof to / 8];
        for (size_t k = 0; k < sizeof to / 8; k++)
            words[0][k] = next_random(&seed), words[1][k] = next_random(&seed);
        memcpy(&from, words[0], sizeof from);
        memcpy(&to, words[1], sizeof to);
        decode(&from, &to);
    }
    printf("%ld decoded, %ld refused\n", decoded, refused);
    CHECK(decoded > repeats(200000)); /* if nearly all were refused, nothing was tried */
    return 0;
}
