/* Regions against the truth: four threads, each with regions in each other, 10,000 short executions and one long one, of
 * mixes that are known; what the report says of each is within its bound, and what the regions are without those in
 * them adds up to the whole. */
#include "csv.h"
#include "pmu.h"
#include <pthread.h>
#include <topdown_region.h>

enum { THREADS = 4, SHORT = 10000, BLOCK = 256 };

/* A region by itself: its mix, and instructions in all threads, in blocks that cost the emulator little. */
struct part {
    const char *name;
    struct vm_mix mix;
    uint64_t executions, instructions; /* of each execution */
};
enum { SOLVE, ASSEMBLE, FACTOR, KERNEL, NEXT, ONCE, PARTS };
static const struct part PART[PARTS] = {
    [SOLVE] = {"solve", {40, 8, 8, 4, 12, 8, 8}, 1, 4 << 20},
    [ASSEMBLE] = {"assemble", {8, 32, 8, 8, 4, 12, 4}, 10, 1 << 20},
    [FACTOR] = {"factor", {8, 4, 40, 2, 8, 6, 12}, 20, 1 << 19},
    [KERNEL] = {"a kernel, with a name longer than most", {4, 4, 8, 15, 1, 3, 14}, 40, 1 << 19},
    [NEXT] = {"next", {20, 20, 12, 5, 9, 2, 10}, SHORT, 20480},
    [ONCE] = {"once", {60, 1, 1, 15, 1, 8, 3}, 1, 1 << 18}, /* as short as one execution can be to be right */
};

static void nops(uint64_t instructions)
{
    for (uint64_t n = instructions / BLOCK; n > 0; n--)
        __asm__ volatile(".rept 254\n\tnop\n\t.endr");
}

static void run(int part, int turns)
{
    mix_is(PART[part].mix);
    nops(PART[part].instructions / (uint64_t)turns);
}

/* The mix changes before a region begins and after it ends, so calls are of the region that they are in. */
static void begin(int part)
{
    mix_is(PART[part].mix);
    CHECK_EQ(td_region_begin(PART[part].name), 0);
}

static void end(int part)
{
    mix_is(PART[part].mix);
    CHECK_EQ(td_region_end(PART[part].name), 0);
}

static void *thread(void *unused)
{
    begin(SOLVE);
    for (int i = 0; i < 10; i++) {
        begin(ASSEMBLE);
        run(ASSEMBLE, 2);
        for (int j = 0; j < 2; j++) {
            begin(FACTOR);
            run(FACTOR, 3);
            for (int k = 0; k < 2; k++) {
                begin(KERNEL);
                run(KERNEL, 1);
                end(KERNEL);
                run(FACTOR, 3);
            }
            end(FACTOR);
        }
        run(ASSEMBLE, 2);
        end(ASSEMBLE);
        run(SOLVE, 10);
    }
    end(SOLVE);
    for (int i = 0; i < SHORT; i++) {
        mix_is(MIXES[i % 4]); /* in no region */
        nops(2 * BLOCK);
        begin(NEXT);
        run(NEXT, 1);
        end(NEXT);
    }
    begin(ONCE);
    run(ONCE, 1);
    end(ONCE);
    return unused;
}

static int four_threads(void)
{
    pthread_t other[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&other[i], NULL, thread, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(other[i], NULL), 0);
    return 0;
}

static double instructions_of(int part) { return (double)(PART[part].executions * PART[part].instructions); }

/* What it executed with the regions in it, in one thread. */
static double all_in(int part, double truth[8])
{
    static const int within[PARTS][3] = {[SOLVE] = {ASSEMBLE, FACTOR, KERNEL}, [ASSEMBLE] = {FACTOR, KERNEL}, [FACTOR] = {KERNEL}};
    double all = 0;
    memset(truth, 0, 8 * sizeof *truth);
    for (int i = -1; i < 3; i++) {
        const int one = i < 0 ? part : within[part][i];
        if (i >= 0 && one == SOLVE)
            break;
        const struct truth is = truth_of(PART[one].mix);
        all += instructions_of(one);
        for (int k = 0; k < 8; k++)
            truth[k] += is.l2[k] * instructions_of(one);
    }
    for (int k = 0; k < 8; k++)
        truth[k] /= all;
    return all;
}

static const char *const LEVEL_1[4] = {"retiring", "bad_speculation", "frontend_bound", "backend_bound"};
static const char *const LEVEL_2[8] = {"heavy_operations", "light_operations", "branch_mispredicts", "machine_clears",
                                       "fetch_latency",    "fetch_bandwidth",  "memory_bound",       "core_bound"};

static double cell(const struct csv *csv, int row, const char *prefix, const char *column)
{
    char name[80];
    snprintf(name, sizeof name, "%s%s", prefix, column);
    return csv_number(csv, row, name);
}

/* Shares are true, within their bounds; the bound of level 1 is no more than `most`. What the library executed is of some
 * mix or other: `instructions` were the program's. */
static void is_true(const struct csv *csv, int row, const char *prefix, const double truth[8], double instructions, int level,
                    double width, double most)
{
    const double slots = cell(csv, row, prefix, "slots"), slack = (slots / width - instructions) / (slots / width);
    const double error_1 = cell(csv, row, prefix, "error_1");
    printf("  %9s %12.0f slots, %.4f of them others', level 1 within %.4f", prefix, slots, slack, error_1);
    CHECK(slack > -0.001 && slack < 0.1);
    for (int k = 0; k < 4; k++) {
        CHECK_NEAR(cell(csv, row, prefix, LEVEL_1[k]), truth[2 * k] + truth[2 * k + 1], error_1 + fabs(slack));
    }
    CHECK(error_1 <= most);
    if (level == 2) {
        const double error_2 = cell(csv, row, prefix, "error_2");
        printf(", level 2 within %.4f", error_2);
        for (int k = 0; k < 8; k++)
            CHECK_NEAR(cell(csv, row, prefix, LEVEL_2[k]), truth[k], error_2 + fabs(slack));
        CHECK(error_2 <= 2 * most + 0.02);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    static struct csv csv;
    if (argc > 1)
        return four_threads();
    td_t *td = measured(NULL);
    needs_known_mix();
    const struct td_info info = info_of(td);
    const double width = info.slots_per_cycle;
    const int level = has_l2(&info) ? 2 : 1;
    td_close(td);
    if (p_core() >= 0)
        move_to(0, p_core()); /* the threads, too: what an E-core executes is not counted */
    CHECK_EQ(under_preload(argv[0], "work", &csv), 0);

    const int whole = csv_row(&csv, "");
    double slots = cell(&csv, whole, "exclusive_", "slots"), part[4], bound;
    bound = cell(&csv, whole, "exclusive_", "error_1") * slots;
    for (int k = 0; k < 4; k++)
        part[k] = cell(&csv, whole, "exclusive_", LEVEL_1[k]) * slots;
    for (int i = 0; i < PARTS; i++) {
        const int row = csv_row(&csv, PART[i].name);
        const struct truth alone = truth_of(PART[i].mix);
        double truth[8], all = all_in(i, truth);
        printf("%s: %.0f of %.0f executions measured\n", PART[i].name, csv_number(&csv, row, "measured"),
               csv_number(&csv, row, "executions"));
        CHECK_EQ((uint64_t)csv_number(&csv, row, "executions"), THREADS * PART[i].executions);
        CHECK_EQ(csv_number(&csv, row, "unbalanced") + csv_number(&csv, row, "unended") + csv_number(&csv, row, "missed"), 0);
        const double most = i == NEXT ? 0.15 : i == ONCE ? 0.03 : 0.05;
        is_true(&csv, row, "", truth, THREADS * all, level, width, most);
        is_true(&csv, row, "exclusive_", alone.l2, THREADS * instructions_of(i), level, width, i < KERNEL ? 1 : most);
        const double own = cell(&csv, row, "exclusive_", "slots");
        slots += own;
        for (int k = 0; k < 4; k++)
            part[k] += cell(&csv, row, "exclusive_", LEVEL_1[k]) * own;
        bound += cell(&csv, row, "exclusive_", "error_1") * own;
    }
    CHECK_EQ(slots, csv_number(&csv, whole, "slots"));
    for (int k = 0; k < 4; k++)
        CHECK_NEAR(part[k] / slots, csv_number(&csv, whole, LEVEL_1[k]), bound / slots);
    int threads = 0;
    for (int row = 1; row < csv.rows; row++)
        threads += *csv_text(&csv, row, "tid") != 0 && *csv_text(&csv, row, "region") == 0;
    CHECK_EQ(threads, 1 + THREADS);
    return 0;
}
