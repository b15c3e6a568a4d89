/* Companion figures of `topdown stat --metrics` are what their published formulas say of the rates at which the program's events truly happen,
 * which change while it runs. What cannot be counted, or is none, is refused by its name. Arguments: the seed, and which figures.
 * needs: counters or other-core, not-hybrid */
#include "lib/companions.h"

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
    const char *names = argc > 2 ? argv[2] : in_gate() ? (line_of("info_memory_l3mpki") ? "ipc,info_bad_spec_branch_mpki,info_memory_l3mpki,bandwidth,clock" : "ipc,clock,memory,fp") : "all";
    stat_begins();
    find_rates();
    fprintf(stderr, "seed %llu, %u slots, time-stamp counter %.3f GHz\n", (unsigned long long)seed, width, tsc_ghz);
    run_under_stat(seed, names);
    unsigned compared_figures = 0, wrong = 0;
    for (const struct text_line *metric = lines; metric < lines + all; metric++) {
        double ends[3];
        if (!metric->is_metric || !figure(metric->name, ends))
            continue;
        const double truth = formula(metric->formula);
        if (!isfinite(truth))
            continue;
        compared_figures++;
        wrong += !is_right(metric->name, truth, strstr(metric->unit, "/s") != NULL, ends);
    }
    CHECK(compared_figures >= (argc > 2 ? 1 : 10));
    CHECK_EQ(wrong, 0);
    refused("no_such_figure", "'no_such_figure' is no companion figure of this CPU");
    return 0;
}
