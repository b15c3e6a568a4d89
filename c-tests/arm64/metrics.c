/* arm64, on the emulated machine: companion figures of `topdown stat --metrics` are what their published formulas say of the rates at which
 * events truly happen in a program whose phases differ, and level 1 beside them is that of all phases. What no group has room for is not told, and why; what is no figure is refused.
 * Arguments: how many general-purpose counters the machine has, if it is not a core's name.
 * needs: arguments */
#include "phases.h"
#include <ctype.h>

enum { PHASES = 3, PARTS = 300, PART = 8000000 };
static const struct vm_mix PHASE_MIXES[PHASES] = {{40, 8, 8, 4, 12, 8, 8}, {8, 32, 8, 8, 0, 12, 4}, {16, 8, 20, 8, 16, 16, 0}};

/* Figures: what happens is divided by what happens, and times what. */
struct figure {
    const char *name;
    uint32_t of, by;
    double times;
};
static const struct figure FIGURES[] = {
    {"ipc", 0x08, 0x11, 1},
    {"branch_mpki", 0x22, 0x08, 1000},
    {"branch_misprediction_ratio", 0x22, 0x21, 1},
    {"l1d_cache_miss_ratio", 0x03, 0x04, 1},
    {"dtlb_mpki", 0x34, 0x08, 1000},
    {"load_percentage", 0x70, 0x1b, 1},
    {"backend_stalled_cycles", 0x24, 0x11, 1},
};
enum { ALL = sizeof FIGURES / sizeof FIGURES[0] };
/* (that of group General is ipc; ours of that name has others, too) */
static const char NAMES[] = "General,branch_mpki,branch_misprediction_ratio,l1d_cache_miss_ratio,dtlb_mpki,load_percentage,backend_stalled_cycles";

/* Events whose rates are set, per 65536 instructions in each phase. */
static const struct {
    uint32_t event;
    uint64_t rate[PHASES];
} RATES_SET[] = {
    {0x22, {300, 900, 100}}, {0x21, {12000, 15000, 9000}}, {0x03, {500, 4000, 2000}}, {0x04, {20000, 26000, 15000}}, {0x34, {40, 300, 0}},
};

static struct known_mix known[PHASES];
static void phases_are_defined(void)
{
    td_t *td = NULL;
    td_must(td_open(&td, NULL));
    td_must(td_get_info(td, &info));
    td_close(td);
    for (int phase = 0; phase < PHASES; phase++) {
        known[phase] = known_mix(PHASE_MIXES[phase], &info, -1);
        for (size_t k = 0; k < sizeof RATES_SET / sizeof RATES_SET[0]; k++)
            vm_rate_set(known[phase].phase, RATES_SET[k].event, RATES_SET[k].rate[phase]);
    }
}

static const struct known_mix *of_part(int part) { return &known[part * part / 7 % PHASES]; }

static void works(void)
{
    for (int part = 0; part < PARTS; part++) {
        vm_phase_set(of_part(part)->phase);
        work(PART);
    }
    vm_phase_set(0);
}

static double true_figure(const struct figure *figure)
{
    double of = 0, by = 0;
    for (int part = 0; part < PARTS; part++) {
        const uint64_t phase = of_part(part)->phase;
        of += (double)told_rate(phase, figure->of), by += (double)told_rate(phase, figure->by);
    }
    return of / by * figure->times;
}

static char report[1 << 20];

/* A value of the report, low and high end behind it. */
static void told(const char *key, double ends[3])
{
    const char *one = strstr(report, key);
    if (one == NULL || sscanf(one + strlen(key), "%lf, \"low\": %lf, \"high\": %lf", &ends[0], &ends[1], &ends[2]) != 3)
        FAIL("there is no %s: %s", key, report);
}

/* Level 1, of all groups: how many shares are not what their formulas say. */
static unsigned wrong_shares(void)
{
    static const char *const names[4] = {"retiring", "bad_speculation", "frontend_bound", "backend_bound"};
    struct node_truth truth = {0};
    double share[SHARES];
    unsigned wrong = 0;
    for (int part = 0; part < PARTS; part++)
        add_stretch(&truth, of_part(part), of_part(part)->slots_per_instruction * PART);
    node_shares(&truth, &info, share);
    for (int k = 0; k < 4; k++) {
        char key[64];
        double ends[3];
        snprintf(key, sizeof key, "\"tma_%s\": { \"value\": ", names[k]);
        told(key, ends);
        const double is = share[TD_NODE_RETIRING + k];
        const int is_wrong = ends[1] > is || is > ends[2];
        printf("%s%s is %f; told %f, between %f and %f\n", is_wrong ? "WRONG: " : "", names[k], is, ends[0], ends[1], ends[2]);
        wrong += is_wrong;
    }
    return wrong;
}

static void report_is(const char *command)
{
    FILE *pipe = popen(command, "r");
    CHECK(pipe != NULL);
    report[fread(report, 1, sizeof report - 1, pipe)] = 0;
    pclose(pipe);
}

static void refused(const char *names, const char *why)
{
    char command[256];
    snprintf(command, sizeof command, "topdown stat --metrics %s true 2>&1; echo status $?", names);
    report_is(command);
    if (strstr(report, why) == NULL || strstr(report, "status 125") == NULL)
        FAIL("%s", report);
}

int main(int argc, char **argv)
{
    phases_are_defined();
    if (argc > 1 && strcmp(argv[1], "work") == 0) {
        works();
        return 0;
    }
    const int counters = argc > 1 && isdigit((unsigned char)argv[1][0]) ? atoi(argv[1]) : 6;
    refused("no_such_figure", "'no_such_figure' is no companion figure of this CPU");
    report_is("topdown list --metrics");
    CHECK(strstr(report, "branch_mpki  per 1000 instructions  [branches mpki Branch_Effectiveness]") != NULL);
    if (counters < 6) {
        CHECK(strstr(report, "not counted here: with level 1 it takes 6 general-purpose counters, and 5 are here") != NULL);
        refused("branch_mpki", "'branch_mpki' cannot be counted here: with level 1 it takes");
        return 0;
    }
    CHECK(strstr(report, "not counted here") == NULL);
    char command[512];
    snprintf(command, sizeof command, "topdown stat --metrics %s -o /tmp/metrics.json -- %s work 2>&1; cat /tmp/metrics.json", NAMES, argv[0]);
    report_is(command);
    unsigned wrong = wrong_shares();
    for (const struct figure *figure = FIGURES; figure < FIGURES + ALL; figure++) {
        char key[128];
        double ends[3];
        const double truth = true_figure(figure);
        snprintf(key, sizeof key, "\"name\": \"%s\", \"value\": ", figure->name);
        told(key, ends);
        const int is_wrong = ends[1] > truth || truth > ends[2];
        printf("%s%s is %f; told %f, between %f and %f\n", is_wrong ? "WRONG: " : "", figure->name, truth, ends[0], ends[1], ends[2]);
        wrong += is_wrong;
    }
    CHECK_EQ(wrong, 0);
    return 0;
}
