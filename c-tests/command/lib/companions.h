/* companions.h: a program in whose phases events happen at other rates, and the companion figures that a report has of it. */
#ifndef COMPANIONS_H
#define COMPANIONS_H
#include "formulas.h"

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

/* Runs this test as the program, under `topdown stat` with these figures; the report is read, and the rates are those of the program. */
static void run_under_stat(uint64_t seed, const char *names)
{
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
}

/* Whether the truth (of a rate: in a cycle) is in the interval of a figure of the report. */
static int is_right(const char *name, double truth, int is_rate, const double ends[3])
{
    /* (a unit of work is a cycle) */
    const double cycles = (double)PHASES * PARTS * PART, seconds = of_report("\"wall_ns\": ") * 1e-9;
    if (is_rate)
        truth *= cycles / seconds;
    const double slack = 0.01 * fabs(truth); /* (the program has parts besides the work, and a rate is rounded to 1/65536) */
    const int is_wrong = ends[1] - slack > truth || truth > ends[2] + slack; /* (an end that is not there is none) */
    fprintf(stderr, "%s%s is %f; told %f, between %f and %f\n", is_wrong ? "WRONG: " : "", name, truth, ends[0], ends[1], ends[2]);
    return !is_wrong;
}
#endif
