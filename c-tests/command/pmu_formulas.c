/* Each node of this CPU's tree of deeper levels that `topdown stat --td-level 6` counts is what its published formula says of the rates at
 * which the program's events truly happen. Arguments: the seed.
 * needs: counters, explore */
#include "lib/formulas.h"

/* Of a hybrid CPU its first one, a P-core, is counted, and what counts runs on the last one. */
static int is_hybrid(void) { return access("/sys/devices/cpu_core", F_OK) == 0; }
static void run_on(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (is_hybrid())
        CHECK_EQ(sched_setaffinity(0, sizeof set, &set), 0);
}

int main(int argc, char **argv)
{
    find_text();
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : seed_of(argc, argv);
    run_on(0);
    if (argc > 2) { /* the program */
        draw_rates(seed, 1);
        for (const double end = seconds_of(CLOCK_MONOTONIC) + 8; seconds_of(CLOCK_MONOTONIC) < end;)
            work(100000);
        return 0;
    }
    stat_begins();
    find_rates();
    char seed_text[32];
    fprintf(stderr, "seed %llu, %u slots, time-stamp counter %.3f GHz\n", (unsigned long long)seed, width, tsc_ghz);
    snprintf(seed_text, sizeof seed_text, "%llu", (unsigned long long)seed);
    char *const one_cpu[] = {beside("../release/topdown"), strdup("stat"), strdup("--td-level"), strdup("6"), strdup("-o"),
                             in_scratch("r.json"), strdup("-C0"), strdup(own_path()), strdup("work"), seed_text, NULL};
    char *const process[] = {one_cpu[0], one_cpu[1], one_cpu[2], one_cpu[3], one_cpu[4], one_cpu[5], one_cpu[7], one_cpu[8], seed_text, NULL};
    run_on((int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
    CHECK_EQ(run_alone(is_hybrid() ? one_cpu : process), 0);
    FILE *file = fopen(in_scratch("r.json"), "r");
    CHECK(file != NULL);
    report[fread(report, 1, sizeof report - 1, file)] = 0;
    fclose(file);
    draw_rates(seed, 0);
    unsigned compared_nodes = 0, wrong = 0, unknown = 0;
    for (const struct text_line *node = lines; node < lines + all; node++) {
        double share[3];
        if (node->formula == NULL || node->unit[0] == 0 || node->is_metric || !told(node->name, share))
            continue;
        double truth = formula(node->formula);
        if (!isfinite(truth)) {
            unknown++;
            continue;
        }
        truth = truth < 0 ? 0 : truth > 1 ? 1 : truth;
        const double slack = 0.01 * truth; /* (the program has parts besides the work, and a rate is rounded to 1/65536) */
        compared_nodes++;
        if (!(share[1] - slack <= truth && truth <= share[2] + slack)) {
            wrong++;
            fprintf(stderr, "%s is %f; told %f, between %f and %f\n", node->name, truth, share[0], share[1], share[2]);
        }
    }
    fprintf(stderr, "%u nodes compared, %u of what the rates do not tell\n", compared_nodes, unknown);
    CHECK(compared_nodes >= 30);
    CHECK_EQ(wrong, 0);
    return 0;
}
