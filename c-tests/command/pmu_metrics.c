/* Companion figures of `topdown stat --metrics` are what their published formulas say of the rates at which the program's events truly happen,
 * which change while it runs. What cannot be counted, or is none, is refused by its name. Arguments: the seed, and which figures.
 * needs: counters or other-core, not-hybrid */
#include "lib/formulas.h"

enum { PHASES = 50, PARTS = 20, PART = 2000000, CHANGING = 6 };
static const char *const CHANGES[CHANGING] = {"BR_MISP_RETIRED.ALL_BRANCHES", "BR_INST_RETIRED.ALL_BRANCHES", "MEM_LOAD_RETIRED.L1_MISS",
                                              "MEM_LOAD_RETIRED.L3_MISS", "L2_LINES_IN.ALL", "UOPS_EXECUTED.THREAD"};

/* In each phase these events have another rate. Of who judges: what all phases have on average. */
static void phases(uint64_t seed, int set)
{
    double sums[CHANGING] = {0};
    for (int phase = 0; phase < PHASES; phase++) {
        for (int k = 0; k < CHANGING; k++) {
            const struct text_line *line = line_of(CHANGES[k]);
            const uint64_t per65536 = 500 + next_random(&seed) % 30000;
            if (line == NULL)
                continue;
            sums[k] += (double)per65536 / 65536;
            if (set)
                CHECK(vm_rate_set(line->config, per65536, VM_PER_CYCLE));
        }
        if (set)
            for (int part = 0; part < PARTS; part++)
                work(PART);
    }
    for (int k = 0; k < CHANGING; k++)
        if (line_of(CHANGES[k]))
            line_of(CHANGES[k])->rate = sums[k] / PHASES;
}

/* A figure of the report: its value, low and high end (NaN: none); 0: it has no value. */
static int figure(const char *name, double ends[3])
{
    char key[160], number[3][40];
    snprintf(key, sizeof key, "\"name\": \"%.99s\", \"value\": ", name);
    const char *one = strstr(report, key);
    if (one == NULL || sscanf(one + strlen(key), "%39[^,], \"low\": %39[^,], \"high\": %39[^,]", number[0], number[1], number[2]) != 3)
        return 0;
    for (int k = 0; k < 3; k++)
        ends[k] = strcmp(number[k], "null") == 0 ? NAN : strtod(number[k], NULL);
    return isfinite(ends[0]);
}

static double of_report(const char *key)
{
    const char *at = strstr(report, key);
    CHECK(at != NULL);
    return strtod(at + strlen(key), NULL);
}

static void refused(const char *names, const char *why)
{
    char *const command[] = {beside("../release/topdown"), strdup("stat"), strdup("--metrics"), strdup(names), strdup("true"), NULL};
    CHECK_EQ(WEXITSTATUS(run_alone(command)), 125);
    if (strstr(stat_said(), why) == NULL)
        FAIL("%s", stat_said());
}

int main(int argc, char **argv)
{
    find_text();
    uint64_t seed = argc > 2 && strcmp(argv[1], "work") == 0 ? strtoull(argv[2], NULL, 0) : seed_of(argc, argv);
    const int is_program = argc > 2 && strcmp(argv[1], "work") == 0;
    if (is_program) {
        draw_rates(seed, 1);
        phases(seed, 1);
        return 0;
    }
    const char *names = argc > 2 ? argv[2] : in_gate() ? "ipc,info_bad_spec_branch_mpki,info_memory_l3mpki,bandwidth,clock" : "all";
    stat_begins();
    find_rates();
    fprintf(stderr, "seed %llu, %u slots, time-stamp counter %.3f GHz\n", (unsigned long long)seed, width, tsc_ghz);
    char seed_text[32];
    snprintf(seed_text, sizeof seed_text, "%llu", (unsigned long long)seed);
    char *const process[] = {beside("../release/topdown"), strdup("stat"), strdup("--metrics"), strdup(names), strdup("-o"),
                             in_scratch("r.json"), strdup(own_path()), strdup("work"), seed_text, NULL};
    CHECK_EQ(run_alone(process), 0);
    FILE *file = fopen(in_scratch("r.json"), "r");
    CHECK(file != NULL);
    report[fread(report, 1, sizeof report - 1, file)] = 0;
    fclose(file);
    draw_rates(seed, 0);
    phases(seed, 0);
    /* (a unit of work is a cycle) */
    const double cycles = (double)PHASES * PARTS * PART, seconds = of_report("\"wall_ns\": ") * 1e-9;
    unsigned compared_figures = 0, wrong = 0;
    for (const struct text_line *metric = lines; metric < lines + all; metric++) {
        double ends[3];
        if (!metric->is_metric || !figure(metric->name, ends))
            continue;
        double truth = formula(metric->formula);
        if (strstr(metric->unit, "/s"))
            truth *= cycles / seconds;
        if (!isfinite(truth))
            continue;
        const double slack = 0.01 * fabs(truth); /* (the program has parts besides the work, and a rate is rounded to 1/65536) */
        compared_figures++;
        const int is_wrong = ends[1] - slack > truth || truth > ends[2] + slack; /* (an end that is not there is none) */
        fprintf(stderr, "%s%s is %f; told %f, between %f and %f\n", is_wrong ? "WRONG: " : "", metric->name, truth, ends[0], ends[1], ends[2]);
        wrong += is_wrong;
    }
    CHECK(compared_figures >= (argc > 2 ? 1 : 10));
    CHECK_EQ(wrong, 0);
    refused("no_such_figure", "'no_such_figure' is no companion figure of this CPU");
    return 0;
}
