/* What `topdown stat`, `run` and `record` tell of a program is Intel's published metrics while the core drops slots
 * (INT_MISC.UOP_DROPPING): the truth is within the interval of each node. `stat` and `run --outside` are exact, and so is level 1 of `run` of
 * a program without regions, whose level 2 its threads measure; with regions, what these slots do not touch, and the rest is as good as the
 * regions have counted them.
 * needs: counters, not-hybrid */
#include "lib/stat.h"
#include "perf.h"
#include "lib/profile.h"
#include "published.h"
#include <sched.h>
#include <topdown_region.h>

enum { INSTRUCTIONS = 60000000, LONG = 400000000, PIECES = 200 };
static const struct vm_mix DROPPING = {20, 8, 24, 8, 8, 8, 8};

/* The program: with `regions`, each piece of its work is one. */
static int works(int regions, uint64_t instructions)
{
    vm_mix_set(DROPPING, 0, 0, 0);
    for (int k = 0; k < PIECES; k++) {
        if (regions)
            td_region_begin("piece");
        work(instructions / PIECES);
        if (regions)
            td_region_end("piece");
    }
    return 7;
}

/* The nodes of a row, of which so large a part is other work; how wide the widest interval is, of nodes that dropped slots touch (1), and
 * of the others (0). */
static void widths(const struct csv *csv, int row, double besides, double width[2])
{
    int told = 0;
    width[0] = width[1] = 0;
    for (uint32_t id = TD_NODE_RETIRING; id <= TD_NODE_CORE_BOUND; id++) {
        const double value = number(csv, row, td_node_name(id), ""), low = number(csv, row, td_node_name(id), "_low"),
                     high = number(csv, row, td_node_name(id), "_high"), is = truth_of_node(DROPPING, id, 0);
        if (isnan(value))
            continue;
        fprintf(stderr, "%s: %.4f [%.4f, %.4f], truth %.4f\n", td_node_name(id), value, low, high, is);
        CHECK(low - besides <= is && is <= high + besides && low <= value && value <= high);
        const int touched = id == TD_NODE_FRONTEND_BOUND || id == TD_NODE_FETCH_LATENCY || id == TD_NODE_BAD_SPECULATION ||
                            id == TD_NODE_MACHINE_CLEARS || (level_1_alone && id == TD_NODE_BACKEND_BOUND);
        width[touched] = fmax(width[touched], high - low);
        told++;
    }
    CHECK(told >= 4);
}

/* The report of `topdown` with these arguments on the program. */
static void whole_of(const char *subcommand, const char *option, char *const *program, double slots, double width[2])
{
    static struct csv csv;
    const char *const name = program[1];
    CHECK_EQ(WEXITSTATUS(run_under(subcommand, option, program)), 7);
    csv_read(&csv, in_scratch("r.csv"));
    const int row = csv_row(&csv, "");
    const double besides = 1 - slots / csv_number(&csv, row, "slots");
    fprintf(stderr, "%s %s %s: %.4f besides the work\n", subcommand, option, name, besides);
    CHECK(besides >= 0 && besides < 0.05);
    widths(&csv, row, besides, width);
    free(csv.text);
}

static void whole(const char *subcommand, const char *option, const char *name, double slots, double width[2])
{
    char *const program[] = {strdup(own_path()), strdup(name), NULL};
    whole_of(subcommand, option, program, slots, width);
}

/* Level 1 of a program without regions is exact, and level 2 there, and is told to be its threads'. */
static void without_regions(double slots)
{
    static struct csv csv;
    char *const program[] = {beside("lib/plain"), strdup("60"), strdup("20"), strdup("8"), strdup("24"), strdup("8"), strdup("8"), strdup("8"),
                             strdup("8"), NULL};
    double width[2];
    whole_of("run", "", program, slots, width);
    csv_read(&csv, in_scratch("r.csv"));
    const int row = csv_row(&csv, "");
    CHECK(stat_widest(&csv, 0, 1) < 0.002 && stat_widest(&csv, 1, 1) < 0.002);
    CHECK(level_1_alone || csv_number(&csv, row, "error_2") < 0.1);
    free(csv.text);
    CHECK_EQ(WEXITSTATUS(run_under("run", NULL, program)), 7);
    CHECK(strstr(stat_said(), "cannot be told") == NULL);
    CHECK_EQ(strstr(stat_said(), "level 2 is what the threads have measured") != NULL, corrected && !level_1_alone);
}

static void recorded(char *const *program)
{
    static struct csv csv;
    double width[2];
    char *words[20] = {beside("../release/topdown"), strdup("record"), strdup("-F2000"), strdup("--budget=50"), strdup("-o"), in_scratch("r.csv")};
    for (int k = 0; program[k]; k++)
        words[6 + k] = program[k];
    CHECK_EQ(WEXITSTATUS(run_alone(words)), 7);
    fprintf(stderr, "%s", stat_said());
    csv_read(&csv, in_scratch("r.csv"));
    int row = 1;
    while (row < csv.rows && strcmp(csv_text(&csv, row, "scope"), "all"))
        row++;
    CHECK(row < csv.rows);
    widths(&csv, row, 0, width);
    free(csv.text);
}

/* On a CPU where others hold a counter, by a recorder on one where all are free. */
static void recorded_beside_others(void)
{
    struct perf_group group = {{0}, 0};
    struct perf_event_attr attr = in_user_mode(event_of(PERF_TYPE_RAW, 0x00c5));
    char *const program[] = {strdup("taskset"), strdup("-c"), strdup("1"), beside("lib/plain"), strdup("200"), strdup("20"), strdup("8"), strdup("24"),
                             strdup("8"), strdup("8"), strdup("8"), strdup("8"), NULL};
    cpu_set_t first;
    attr.pinned = 1;
    add_event(&group, attr, -1, 1, -1);
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    CHECK_EQ(sched_setaffinity(0, sizeof first, &first), 0);
    recorded(program);
    group_ends(&group);
}

int main(int count, char **arguments)
{
    double exact[2], width[2];
    if (count == 2)
        return works(strcmp(arguments[1], "regions") == 0, strcmp(arguments[1], "long") == 0 ? LONG : INSTRUCTIONS);
    stat_begins();
    td_t *const td = counted();
    const struct td_info info = info_of(td);
    td_close(td);
    if (strstr(info.core, "Cove") == NULL)
        SKIP("no P-core with PERF_METRICS: %s", info.core);
    published_by(&info);
    mix_and_rates(DROPPING);
    const double slots = (double)INSTRUCTIONS * info.slots_per_cycle;

    whole("stat", "", "plain", slots, exact);
    CHECK(exact[0] < 0.002 && exact[1] < 0.002);
    whole("run", "--outside", "plain", slots, exact);
    CHECK(exact[0] < 0.002 && exact[1] < 0.002);
    whole("run", "", "plain", slots, width);
    CHECK(width[0] < 0.002);
    without_regions(slots);
    whole("run", "", "regions", slots, width);
    CHECK(width[0] < 0.002 && (width[1] < 0.05 || level_1_alone)); /* (Ice Lake's regions have no counter left for these) */
    char *const itself[] = {strdup(own_path()), strdup("long"), NULL};
    recorded(itself);
    if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
        recorded_beside_others();
    return 0;
}
