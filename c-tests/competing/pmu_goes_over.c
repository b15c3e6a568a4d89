/* A handle on general counters from which others take the counters while it is open, as perf stat -a does: it goes over to what still
 * counts, says so in td_info.note, and comes back when they have gone. Each region is within its bound, and so is what reaches over
 * either change.
 * needs: counters */
#include "competing.h"

enum { REGION = 2000000, ROTATION = 5000000, OTHERS = 2 };

enum { GENERAL, PINNED, SLOTS_TOO, KINDS };

/* Events of a CPU, as perf stat -a -e has them, or without -e SLOTS and PERF_METRICS, too: what is of a CPU comes before what is of a thread. */
static struct perf_group others_of(int cpu, int kind)
{
    const int pinned = kind == PINNED;
    struct perf_group group = {{0}, 0};
    if (kind == SLOTS_TOO)
        group = competing_group(-1, cpu, 0);
    for (int i = 0; i < OTHERS; i++) {
        const uint64_t config = i == 0 ? 0xc4 : 0xc5; /* branches, branch-misses */
        add_event(&group, pinned ? pinned_event(config) : event_of(PERF_TYPE_RAW, config), -1, cpu, -1);
    }
    group_runs(&group);
    return group;
}

static void note_says(td_t *td, const char *words)
{
    const struct td_info info = info_of(td);
    printf("note: %s\n", info.note);
    CHECK(*words == 0 ? info.note[0] == 0 : strstr(info.note, words) != NULL);
}

/* whoever opens beside them counts registers, or level 1 */
static void opens_beside(int cpu, int kind)
{
    struct perf_group others = others_of(cpu, kind);
    td_t *td = measured(NULL);
    const struct td_info info = info_of(td);
    printf("opened beside: level %u by %u counters, note: %s\n", info.level, info.counters, info.note);
    CHECK(info.level == (kind == SLOTS_TOO ? 1 : 2) && strstr(info.note, "others") != NULL);
    CHECK_NEAR(regions(td, 4, REGION).running, 1, 0.02);
    td_close(td);
    group_ends(&others);
}

static void goes_and_comes_back(td_t *td, int cpu, int kind)
{
    struct td_sample first, last;
    struct truth all;
    double worked = 0;
    memset(&all, 0, sizeof all);
    td_must(td_read(td, &first));
    note_says(td, "");
    struct td_l1 l1 = regions(td, 4, REGION);
    CHECK_NEAR(l1.running, 1, 0.01);
    struct perf_group others = others_of(cpu, kind);
    td_must(td_read(td, &last)); /* which finds that it does not count */
    l1 = regions(td, 60, REGION);
    printf("beside others: running %.3f, error %.4f\n", l1.running, l1.error);
    CHECK_NEAR(l1.running, 1, 0.02);
    CHECK(l1.error < 0.05 + (l1.flags & TD_SAMPLE_UNCORRECTED ? l1.frontend_bound : 0)); /* (no counter is left for dropped slots) */
    note_says(td, "others");
    CHECK_EQ(info_of(td).level, 1);
    group_ends(&others);
    for (int k = 0; k < 3; k++) { /* which find that it counts again, and has for a while */
        work(3 * ROTATION);
        td_must(td_read(td, &last));
    }
    l1 = regions(td, 8, REGION);
    printf("after them: running %.3f, error %.4f\n", l1.running, l1.error);
    CHECK_NEAR(l1.running, 1, 0.01);
    CHECK(l1.error < 0.01);
    note_says(td, "");
    for (int k = 0; k < 4; k++)
        add_truth(&all, MIXES[k], 18 * (double)REGION);
    worked = 72 * (double)REGION;
    l1 = whole_is(&first, &last, &all, worked, 9.0 * ROTATION / worked);
    CHECK(!has_level_2(&first, &last));
    struct td_l2 l2;
    CHECK_EQ(td_decode_l2(&first, &last, &l2), -ENOTSUP);
    printf("all: running %.3f, error %.4f\n", l1.running, l1.error);
    CHECK(l1.running > 0.9);
}

int main(void)
{
    const int cpu = stay_on_a_cpu();
    td_t *td = measured(NULL);
    if (info_of(td).counters < 7)
        SKIP("registers are what this core counts by default");
    needs_known_mix();
    for (int kind = 0; kind < KINDS; kind++)
        goes_and_comes_back(td, cpu, kind);
    td_close(td);
    for (int kind = 0; kind < KINDS; kind++)
        opens_beside(cpu, kind);
    return 0;
}
