/* Regions have nodes of levels 3 to 6 (`topdown run --inside --nodes`): their groups take turns from one execution to another. Of two regions
 * whose events have other rates, each node is what its published formula says of the region's own rates, and some are told apart. What is
 * none is refused by its name. Arguments: the seed, and which nodes.
 * needs: counters, not-hybrid */
#include "lib/formulas.h"
#include "csv.h"
#include <topdown_region.h>

enum { REGIONS = 2, INSTRUCTIONS = 2000000, TRIES = 60, MOST_NAMES = 64 };
static const char *const NAMES[REGIONS] = {"first", "second"};

static uint64_t seed;
static uint64_t seed_of_region(int region) { return seed + 1000 * (uint64_t)(region + 1); }

/* The regions run in turn, the second more often than the first. */
static void program(int executions)
{
    uint64_t random = seed;
    for (int k = 0, last = -1; k < executions; k++) {
        const int region = next_random(&random) % 3 > 0;
        if (region != last)
            draw_rates(seed_of_region(region), 1);
        last = region;
        CHECK_EQ(td_region_begin(NAMES[region]), 0);
        work(INSTRUCTIONS);
        CHECK_EQ(td_region_end(NAMES[region]), 0);
    }
}

/* `topdown run --inside --nodes` of these; its exit status. */
static int run(const char *nodes, char *const *program)
{
    char *command[16] = {beside("../release/topdown"), strdup("run"), strdup("--inside"), strdup("--nodes"), strdup(nodes),
                         strdup("-o"), in_scratch("r.csv"), strdup("--")};
    for (int k = 0; program[k]; k++)
        command[8 + k] = program[k];
    const int status = run_alone(command);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void refused(const char *nodes, const char *why)
{
    char *const nothing[] = {strdup("true"), NULL};
    CHECK_EQ(run(nodes, nothing), 125);
    if (strstr(stat_said(), why) == NULL)
        FAIL("%s", stat_said());
}

/* Nodes, drawn at random, that are counted here, in as many groups as a thread may have. */
static void draw_nodes(int wanted, char *names, size_t size)
{
    uint64_t random = seed;
    char *const nothing[] = {strdup("true"), NULL};
    int count = 0;
    *names = 0;
    for (int tries = 0; tries < TRIES && count < wanted; tries++) {
        const struct text_line *node = &lines[next_random(&random) % all];
        char more[1024];
        if (node->formula == NULL || node->unit[0] == 0 || node->is_metric || strstr(names, node->name))
            continue;
        snprintf(more, sizeof more, "%s%s%s", names, count ? "," : "", node->name);
        if (run(more, nothing) == 0) {
            snprintf(names, size, "%s", more);
            count++;
        }
    }
    CHECK_EQ(count, wanted);
}

/* What the report says of the nodes of a region, as lib/formulas.h reads it. */
static void region_is_told(const struct csv *csv, int row)
{
    size_t size = 0;
    for (int column = 0; column < csv->columns; column++) {
        const char *const name = csv->cell[0][column];
        char low[160], high[160];
        snprintf(low, sizeof low, "%s_low", name);
        snprintf(high, sizeof high, "%s_high", name);
        if (strncmp(name, "tma_", 4) == 0 && csv_has(csv, low) && *csv_text(csv, row, name))
            size += (size_t)snprintf(report + size, sizeof report - size, "\"%s\": { \"value\": %s, \"low\": %s, \"high\": %s }\n", name,
                                     csv_text(csv, row, name), csv_text(csv, row, low), csv_text(csv, row, high));
        CHECK(size < sizeof report);
    }
}

int main(int argc, char **argv)
{
    static struct csv csv;
    char seed_text[32], executions_text[32], names[1024];
    /* (each group has to have eight turns with each region in it, of some 45 ms; Skylake's levels 1 and 2 take four groups) */
    const int wanted = in_gate() ? 2 : 5, executions = in_gate() ? 1100 : 4000;
    find_text();
    seed = seed_of(argc, argv);
    if (argc > 3) {
        program(atoi(argv[3]));
        return 0;
    }
    stat_begins();
    find_rates();
    refused("tma_retiring_not", "is no node of this CPU's tree");
    if (argc > 2)
        snprintf(names, sizeof names, "%s", argv[2]);
    else
        draw_nodes(wanted, names, sizeof names);
    fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, names);
    snprintf(seed_text, sizeof seed_text, "%llu", (unsigned long long)seed);
    snprintf(executions_text, sizeof executions_text, "%d", executions);
    char *const work_of[] = {strdup(own_path()), seed_text, names, executions_text, NULL};
    if (run(names, work_of) != 0)
        FAIL("%s", stat_said());
    csv_read(&csv, in_scratch("r.csv"));
    double told_before[MOST_NAMES][3];
    int compared = 0, wrong = 0, apart = 0;
    for (int region = 0; region < REGIONS; region++) {
        const int row = csv_row(&csv, NAMES[region]);
        const double executions = csv_number(&csv, row, "executions"), slots = executions * INSTRUCTIONS * width;
        /* (what the library itself executes has other rates, and a rate is rounded to 1/65536) */
        const double slack = csv_number(&csv, row, "slots") / slots - 1;
        fprintf(stderr, "%s: %.0f executions, %.4f of the slots others'\n", NAMES[region], executions, slack);
        CHECK(slack > -0.001 && slack < 0.02);
        draw_rates(seed_of_region(region), 0);
        region_is_told(&csv, row);
        char each[sizeof names], *rest = each;
        snprintf(each, sizeof each, "%s", names);
        for (int k = 0; (at = strsep(&rest, ",")) != NULL; k++) {
            const struct text_line *node = line_of(at);
            double share[3];
            CHECK(k < MOST_NAMES && node != NULL);
            const char *const name = at;
            if (!told(name, share))
                FAIL("%s: %s is not measured", NAMES[region], name);
            double truth = formula(node->formula);
            if (!isfinite(truth))
                continue; /* (what the rates do not tell) */
            truth = truth < 0 ? 0 : truth > 1 ? 1 : truth;
            compared++;
            const int is_off = share[1] > truth * (1 + slack) + slack || share[2] < truth * (1 - slack) - slack;
            wrong += is_off;
            fprintf(stderr, "  %s%s: %.4f, %.4f to %.4f, truth %.4f\n", is_off ? "WRONG " : "", name, share[0], share[1], share[2], truth);
            apart += region == 1 && (told_before[k][1] > share[2] || told_before[k][2] < share[1]);
            memcpy(told_before[k], share, sizeof share);
        }
    }
    CHECK(compared > 0 && wrong == 0);
    if (csv_number(&csv, csv_row(&csv, NAMES[0]), "error_1") > 0.5)
        SKIP("true, but level 1 by general counters, of which these nodes are parts, has no bound of use here");
    CHECK(apart > 0);
    return 0;
}
