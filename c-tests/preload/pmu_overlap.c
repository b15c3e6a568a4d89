/* Regions of td_region_begin that overlap, against the truth: one that goes on after the end of the one in which it began has the
 * slots of both pieces, each within the bound, and exclusive figures add up to the whole. */
#include "csv.h"
#include "pmu.h"
#include <topdown_region.h>

enum { TURNS = 40, BLOCK = 256, LENGTH = 1 << 19 };

/* What runs in "first" alone, in both, and in "second" alone. */
static const struct vm_mix MIX[3] = {{40, 8, 8, 4, 12, 8, 8}, {8, 4, 40, 2, 8, 6, 12}, {4, 4, 8, 15, 1, 3, 14}};
static const char *const LEVEL_1[4] = {"retiring", "bad_speculation", "frontend_bound", "backend_bound"};

static void run(int which)
{
    mix_is(MIX[which]);
    for (int n = LENGTH / BLOCK; n > 0; n--)
        __asm__ volatile(".rept 254\n\tnop\n\t.endr");
}

static int overlapping(void)
{
    for (int turn = 0; turn < TURNS; turn++) {
        CHECK_EQ(td_region_begin("first"), 0);
        run(0);
        CHECK_EQ(td_region_begin("second"), 0);
        run(1);
        CHECK_EQ(td_region_end("first"), 0);
        run(2);
        CHECK_EQ(td_region_end("second"), 0);
    }
    return 0;
}

static double cell(const struct csv *csv, int row, const char *prefix, const char *column)
{
    char name[80];
    snprintf(name, sizeof name, "%s%s", prefix, column);
    return csv_number(csv, row, name);
}

/* The region has what ran in these two parts, and nothing but the library's own besides. */
static void is_true(const struct csv *csv, int row, const char *prefix, int a, int b, double width)
{
    const int parts = a == b ? 1 : 2;
    const double slots = cell(csv, row, prefix, "slots"), error = cell(csv, row, prefix, "error_1");
    const double slack = 1 - (double)parts * TURNS * LENGTH * width / slots;
    const struct truth of_a = truth_of(MIX[a]), of_b = truth_of(MIX[b]);
    printf("  %s%s: %.0f slots, %.4f of them others', within %.4f\n", prefix, csv_text(csv, row, "region"), slots, slack, error);
    CHECK(slack > -0.001 && slack < 0.05);
    CHECK(error < 0.05);
    for (int k = 0; k < 4; k++)
        CHECK_NEAR(cell(csv, row, prefix, LEVEL_1[k]), (of_a.l1[k] + of_b.l1[k]) / 2, error + fabs(slack));
}

int main(int argc, char **argv)
{
    static struct csv csv;
    if (argc > 1)
        return overlapping();
    td_t *td = measured(NULL);
    needs_known_mix();
    const double width = info_of(td).slots_per_cycle;
    td_close(td);
    if (p_core() >= 0)
        move_to(0, p_core());
    CHECK_EQ(under_preload(argv[0], "work", &csv), 0);

    const int whole = csv_row(&csv, ""), first = csv_row(&csv, "first"), second = csv_row(&csv, "second");
    CHECK_EQ(csv_number(&csv, first, "executions"), TURNS);
    CHECK_EQ(csv_number(&csv, second, "executions"), 2 * TURNS); /* each in two pieces */
    CHECK_EQ(csv_number(&csv, second, "split"), TURNS);
    CHECK_EQ(csv_number(&csv, first, "split"), 0);
    CHECK_EQ(csv_number(&csv, second, "unended") + csv_number(&csv, second, "unbalanced"), 0);
    is_true(&csv, first, "", 0, 1, width);
    is_true(&csv, second, "", 1, 2, width);
    is_true(&csv, first, "exclusive_", 0, 0, width);
    const double alone = cell(&csv, whole, "exclusive_", "slots");
    CHECK_EQ(alone + cell(&csv, first, "exclusive_", "slots") + cell(&csv, second, "exclusive_", "slots"),
             csv_number(&csv, whole, "slots"));
    return 0;
}
