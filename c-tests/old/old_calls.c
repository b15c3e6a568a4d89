/* A program that was compiled with the headers beside this file keeps working: each call does what it did then, finds what is
 * asked where those headers have it, and fills their structures and no byte more. On the simulated PMU, or (pmu_old_calls) a
 * real one, where inlined readings work, too. */
#include "topdown.h"
#include "expect.h"
#include <errno.h>
#include <math.h>
#include <string.h>

static int slow_marks;
static int counted_slowly(td_t *td, struct td_mark *mark)
{
    slow_marks++;
    return td_read_mark_slowly(td, mark);
}
#define td_read_mark_slowly counted_slowly
#include "topdown_inline.h"
#undef td_read_mark_slowly

#ifndef REAL
#define REAL 0
#endif

/* a bound grows with what ran before, and that is anything under a sanitizer */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MOST_ERROR 1.5
#else
#define MOST_ERROR 0.5
#endif

/* a result, and bytes behind it that stay as they are */
#define GUARDED(type, name) \
    struct { \
        struct type is; \
        unsigned char behind[64]; \
    } name; \
    memset(&name, 0x5a, sizeof name)
#define FILLED(name) (CHECK_EQ(name.is.size, sizeof name.is), CHECK(untouched(name.behind)))
static int untouched(const unsigned char *behind)
{
    int same = 1;
    for (int i = 0; i < 64; i++)
        same &= behind[i] == 0x5a;
    return same;
}

static void must(int line, int code)
{
    char text[700] = "";
    td_last_error(text, sizeof text);
    if (code != 0)
        FAIL("line %d: %d (%s): %s", line, code, td_strerror(code), text);
}
#define MUST(call) must(__LINE__, call)

static void work(void)
{
    for (volatile int i = 0; i < 300000; i++)
        ;
}

static struct td_options options_of(uint32_t level)
{
    struct td_options options;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.flags = REAL ? 0 : TD_FLAG_SIMULATE;
    options.level = level;
    return options;
}

static td_t *opened(const struct td_options *options)
{
    td_t *td = NULL;
    const int code = td_open(&td, options);
    char text[700];
    if (REAL && (code == -ENODEV || code == -EACCES || code == -EPERM || code == -ENOSYS)) {
        td_last_error(text, sizeof text);
        SKIP("%s", text);
    }
    MUST(code);
    return td;
}

/* each field of td_options is where it was: it has its effect, or its value is refused */
static void options_are_understood(void)
{
    struct td_options options = options_of(1);
    GUARDED(td_info, info);
    td_t *td = NULL;
    options.max_error_ppm = 20000, options.max_overhead_ppm = 30000;
    td = opened(&options);
    MUST(td_get_info(td, &info.is));
    FILLED(info);
    CHECK_EQ(info.is.level, 1);
    CHECK_EQ(info.is.max_error_ppm, 20000);
    CHECK_EQ(info.is.max_overhead_ppm, 30000);
    CHECK(REAL || info.is.reserved[0] == 0); /* today's library may count general counters, and says there how many */
    CHECK(REAL || info.is.path == TD_PATH_SIMULATED);
    CHECK(REAL || strcmp(info.is.cpu, "simulated") == 0);
    CHECK(REAL || strcmp(info.is.pmu, "simulated") == 0);
    CHECK(REAL || strcmp(info.is.core, "simulated core") == 0);
    CHECK(REAL || strncmp(info.is.note, "simulated (TD_FLAG_SIMULATE)", 28) == 0);
    CHECK(REAL || info.is.slots_per_cycle == 6);
    td_close(td);

    options = options_of(0), options.size = 24; /* the first version's */
    td_close(opened(&options));
    options = options_of(0), options.size = 0;
    td_close(opened(&options));
    options = options_of(0), options.flags = 1u << 31;
    CHECK_EQ(td_open(&td, &options), -EINVAL);
    options = options_of(0), options.target = 3;
    CHECK_EQ(td_open(&td, &options), -EINVAL);
    options = options_of(0), options.id = 1;
    CHECK_EQ(td_open(&td, &options), -EINVAL);
    options = options_of(4); /* 3 has become a level of some CPUs */
    CHECK_EQ(td_open(&td, &options), -EINVAL);
    options = options_of(0), options.max_error_ppm = 1000001;
    CHECK_EQ(td_open(&td, &options), -EINVAL);
    options = options_of(0), options.max_overhead_ppm = 1000001;
    CHECK_EQ(td_open(&td, &options), -EINVAL);
    options = options_of(0), options.reserved[1] = 1; /* the first is today's subtree */
    CHECK_EQ(td_open(&td, &options), -E2BIG);
    options = options_of(0), options.reserved[8] = 1;
    CHECK_EQ(td_open(&td, &options), -E2BIG);
}

static void l1_is_sound(const struct td_l1 *l1, uint64_t slots)
{
    CHECK_EQ(l1->slots, slots);
    CHECK_EQ(l1->flags & TD_SAMPLE_SIMULATED, REAL ? 0 : TD_SAMPLE_SIMULATED);
    CHECK(fabs(l1->retiring + l1->bad_speculation + l1->frontend_bound + l1->backend_bound - 1) < 1e-9);
    CHECK(l1->error > 0 && l1->error < MOST_ERROR && l1->running > 0.5 && l1->running <= 1);
    CHECK_EQ(l1->reserved[0] | l1->reserved[1], 0);
    if (REAL)
        return;
    CHECK(fabs(l1->retiring - 0.4) <= l1->error && fabs(l1->bad_speculation - 0.1) <= l1->error);
    CHECK(fabs(l1->frontend_bound - 0.2) <= l1->error && fabs(l1->backend_bound - 0.3) <= l1->error);
}

static void l2_is_sound(const struct td_l2 *l2, const struct td_l1 *l1)
{
    CHECK_EQ(l2->slots, l1->slots);
    CHECK_EQ(l2->flags, l1->flags);
    CHECK(fabs(l2->heavy_operations + l2->light_operations - l1->retiring) < 1e-9);
    CHECK(fabs(l2->branch_mispredicts + l2->machine_clears - l1->bad_speculation) < 1e-9);
    CHECK(fabs(l2->fetch_latency + l2->fetch_bandwidth - l1->frontend_bound) < 1e-9);
    CHECK(fabs(l2->memory_bound + l2->core_bound - l1->backend_bound) < 1e-9);
    CHECK(l2->error > 0 && l2->error < MOST_ERROR && fabs(l2->running - l1->running) < 1e-9);
    CHECK_EQ(l2->reserved[0] | l2->reserved[1], 0);
    if (REAL)
        return;
    CHECK(fabs(l2->heavy_operations - 0.1) <= l2->error && fabs(l2->branch_mispredicts - 0.075) <= l2->error);
    CHECK(fabs(l2->fetch_latency - 0.1) <= l2->error && fabs(l2->memory_bound - 0.2) <= l2->error);
}

static void tree_is_sound(td_t *td, const struct td_sample *from, const struct td_sample *to, const struct td_l1 *l1)
{
    static const char *const NAMES[] = {"tma_retiring", "tma_bad_speculation", "tma_frontend_bound", "tma_backend_bound"};
    const double shares[] = {l1->retiring, l1->bad_speculation, l1->frontend_bound, l1->backend_bound};
    struct td_node nodes[13], listed[13];
    uint32_t count[2] = {0, 77}, listed_count = 0;
    memset(nodes, 0x5a, sizeof nodes);
    MUST(td_decode_tree(from, to, nodes, 12, count));
    MUST(td_list_nodes(td, listed, 12, &listed_count));
    CHECK_EQ(count[1], 77);
    CHECK_EQ(listed_count, count[0]);
    CHECK(untouched((unsigned char *)&nodes[12]));
    for (uint32_t i = 0; i < count[0] && i < 12; i++) {
        const struct td_node *const node = &nodes[i];
        CHECK_EQ(node->size, sizeof *node);
        CHECK_EQ(node->flags, l1->flags);
        CHECK_EQ(node->id, i + 1);
        CHECK_EQ(node->level, i < 4 ? 1 : 2);
        CHECK_EQ(node->parent, i < 4 ? TD_NODE_NONE : TD_NODE_RETIRING + (i - 4) / 2);
        CHECK_EQ(node->unit, TD_UNIT_SLOTS);
        CHECK_EQ(node->reserved0 | node->reserved[0] | node->reserved[1] | node->reserved[2], 0);
        CHECK(listed[i].id == node->id && listed[i].measured == node->measured && isnan(listed[i].value));
        if (i >= 4)
            continue;
        CHECK_EQ(node->measured, 1);
        CHECK(node->value == shares[i] && node->low <= node->value && node->value <= node->high);
        CHECK(node->running == l1->running && node->whole == l1->slots);
        CHECK_EQ(strcmp(td_node_name(node->id), NAMES[i]), 0);
    }
}

static void readings_decode(void)
{
    GUARDED(td_sample, before);
    GUARDED(td_sample, after);
    GUARDED(td_l1, l1);
    GUARDED(td_l2, l2);
    const struct td_options options = options_of(0);
    td_t *td = opened(REAL ? NULL : &options);
    MUST(td_read(td, &before.is));
    work();
    MUST(td_read(td, &after.is));
    FILLED(before);
    FILLED(after);
    CHECK(after.is.slots > before.is.slots && after.is.time_enabled_ns >= before.is.time_enabled_ns);
    CHECK(after.is.time_running_ns > 0 && after.is.time_running_ns <= after.is.time_enabled_ns);
    MUST(td_decode_l1(&before.is, &after.is, &l1.is));
    FILLED(l1);
    l1_is_sound(&l1.is, after.is.slots - before.is.slots);
    tree_is_sound(td, &before.is, &after.is, &l1.is);
    const int code = td_decode_l2(&before.is, &after.is, &l2.is);
    if (code != -ENOTSUP || !REAL) {
        MUST(code);
        FILLED(l2);
        l2_is_sound(&l2.is, &l1.is);
    }
    MUST(td_decode_l1(NULL, &before.is, &l1.is));
    CHECK_EQ(td_decode_l1(&after.is, &before.is, &l1.is), -EINVAL);
    MUST(td_reset(td));
    MUST(td_read(td, &after.is));
    CHECK_EQ(td_decode_l1(&before.is, &after.is, &l1.is), TD_ESTALE);
    CHECK_EQ(td_decode_l1(&after.is, &after.is, &l1.is), TD_ENOTCOUNTING);
    td_close(td);
    CHECK_EQ(td_read(td, &after.is), -EBADF);
}

static void marks_decode(void)
{
    const struct td_options options = options_of(0);
    td_t *td = opened(&options);
    GUARDED(td_sample, before);
    GUARDED(td_sample, after);
    struct td_mark marks[3];
    struct td_l1 l1;
    struct td_info info;
    memset(marks, 0x5a, sizeof marks);
    MUST(td_read_mark(td, &marks[0]));
    work();
    MUST(td_read_mark(td, &marks[1]));
    CHECK_EQ(marks[2].window, 0x5a5a5a5a);
    MUST(td_mark_sample(td, &marks[0], &before.is));
    MUST(td_mark_sample(td, &marks[1], &after.is));
    FILLED(before);
    FILLED(after);
    CHECK(after.is.flags & TD_SAMPLE_COARSE_TIME);
    CHECK_EQ(after.is.slots - before.is.slots, marks[1].window == marks[0].window
                                                   ? marks[1].slots - marks[0].slots
                                                   : after.is.slots - before.is.slots);
    MUST(td_decode_l1(&before.is, &after.is, &l1));
    l1_is_sound(&l1, after.is.slots - before.is.slots);
    marks[0].slots = 1ull << 48;
    CHECK_EQ(td_mark_sample(td, &marks[0], &before.is), -EINVAL);

    /* on real registers of one kind of core, the old inlined code reads them itself; it knows nothing of general counters */
    MUST(td_get_info(td, &info));
    slow_marks = 0;
    for (int i = 0; i < 1000; i++)
        MUST(td_read_mark(td, &marks[0]));
    if (REAL && info.path == TD_PATH_RDPMC && strcmp(info.pmu, "cpu") == 0 && info.reserved[0] == 0)
        CHECK(slow_marks <= 100);
    else
        CHECK_EQ(slow_marks, 1000);
    td_close(td);
}

static void sums_add_up(void)
{
    const struct td_options options = options_of(0);
    td_t *td = opened(&options);
    GUARDED(td_sum, sum);
    GUARDED(td_sum, added);
    struct td_sample before, after;
    struct td_l1 l1;
    struct td_l2 l2;
    memset(&sum.is, 0, sizeof sum.is);
    memset(&added.is, 0, sizeof added.is);
    for (int i = 0; i < 20; i++) {
        MUST(td_sum_begin(td, &sum.is));
        work();
        MUST(td_sum_end(td, &sum.is));
        MUST(td_read(td, &before));
        work();
        MUST(td_read(td, &after));
        MUST(td_sum_add(&added.is, &before, &after));
    }
    FILLED(sum);
    FILLED(added);
    CHECK_EQ(sum.is.executions, 20);
    CHECK_EQ(added.is.executions, 20);
    CHECK_EQ(added.is.measured, 20);
    CHECK(added.is.measured_slots == added.is.slots && added.is.slots > 0);
    CHECK(sum.is.measured > 0 && sum.is.measured <= 20 && sum.is.measured_slots <= sum.is.slots);
    CHECK(sum.is.time_running_ns > 0 && sum.is.time_running_ns <= sum.is.time_enabled_ns);
    CHECK_EQ(sum.is.unseen, 0);
    MUST(td_sum_l1(&sum.is, &l1));
    CHECK_EQ(l1.slots, sum.is.slots);
    CHECK_EQ(l1.flags & TD_SAMPLE_SPARSE, sum.is.measured < 20 ? TD_SAMPLE_SPARSE : 0);
    MUST(td_sum_l1(&added.is, &l1));
    l1_is_sound(&l1, added.is.slots);
    const int code = td_sum_l2(&added.is, &l2);
    if (code != -ENOTSUP || !REAL) {
        MUST(code);
        l2_is_sound(&l2, &l1);
    }
    CHECK_EQ(td_sum_end(td, &sum.is), -EINVAL);
    CHECK_EQ(sum.is.unbalanced, 1);
    td_close(td);
}

static void raw_registers_decode(void)
{
    GUARDED(td_l1, l1);
    GUARDED(td_l2, l2);
    MUST(td_decode_raw_l1(0, 0, 1000000, 0x4c331966, &l1.is)); /* 0.4, 0.1, 0.2 and 0.3, rounded */
    FILLED(l1);
    CHECK_EQ(l1.is.slots, 1000000);
    CHECK(fabs(l1.is.retiring - 0.4) < 0.01 && fabs(l1.is.bad_speculation - 0.1) < 0.01);
    CHECK(fabs(l1.is.frontend_bound - 0.2) < 0.01 && fabs(l1.is.backend_bound - 0.3) < 0.01);
    MUST(td_decode_raw_l2(0, 0, 1000000, 0x40100a204c331966, &l2.is));
    FILLED(l2);
    CHECK(fabs(l2.is.heavy_operations + l2.is.light_operations - l1.is.retiring) < 1e-9);
    CHECK_EQ(td_decode_raw_l1(2, 0xff, 1, 0xff, &l1.is), TD_ESTALE);
}

static void mixes_are_set(void)
{
    struct td_options options = options_of(0);
    options.flags = TD_FLAG_SIMULATE;
    td_t *td = opened(&options);
    struct td_mix mix = {sizeof mix, 0, 0.1, 0.2, 0.3, 0.4, 0.05, 0.15, 0.25, 0.35};
    struct td_sample before, after;
    struct td_l2 l2;
    MUST(td_simulate_mix(td, &mix));
    MUST(td_reset(td));
    MUST(td_read(td, &before));
    work();
    MUST(td_read(td, &after));
    MUST(td_decode_l2(&before, &after, &l2));
    const double shares[] = {l2.heavy_operations, l2.light_operations, l2.branch_mispredicts, l2.machine_clears,
                             l2.fetch_latency,    l2.fetch_bandwidth,  l2.memory_bound,       l2.core_bound};
    for (int i = 0; i < 8; i++)
        CHECK(fabs(shares[i] - (i % 2 ? 0.05 : 0.05 + 0.1 * (i / 2))) <= l2.error && l2.error < MOST_ERROR);
    mix.size = 0;
    CHECK_EQ(td_simulate_mix(td, &mix), -EINVAL);
    td_close(td);
}

static void texts_are_there(void)
{
    static const int CODES[] = {0, TD_EWRONGTHREAD, TD_ENOTCOUNTING, TD_ESTALE, TD_ENORDPMC, -ENODEV, -EINVAL};
    char text[700];
    for (size_t i = 0; i < sizeof CODES / sizeof CODES[0]; i++)
        CHECK(strncmp(td_strerror(CODES[i]), "no code of this library", 23) != 0 && td_strerror(CODES[i])[0] != 0);
    CHECK_EQ(td_read(NULL, NULL), -EINVAL);
    const int length = td_last_error(text, sizeof text);
    CHECK_EQ(length, strlen(text));
    CHECK(strstr(text, "`td` is NULL") != NULL);
    CHECK(strchr(td_version(), '.') != NULL);
}

int main(void)
{
    options_are_understood();
    readings_decode();
    marks_decode();
    sums_add_up();
    raw_registers_decode();
    mixes_are_set();
    texts_are_there();
    return 0;
}
