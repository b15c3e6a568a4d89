/* `topdown record` is true of programs of phases that sleep differently, and in which the same functions have other mixes: five phases, an input phase
 * and a compute phase, three threads, phases that come again and again. Bursts come several times as often in the time of a thread that
 * sleeps; each share of each function, and of all, is in its interval nevertheless, and so is each function's part of the time.
 * pmu_record_phases NAME: one of the programs (lib/phases.h).
 * needs: counters or other-core, not-hybrid */
#include "lib/stat.h"
#include "lib/phases.h"
#include "lib/profile.h"

static struct td_info info;

/* Cycles of a function in a phase. */
static double cycles[MOST_PHASES][OF_PHASE];

static void read_cycles(const struct phased_program *program)
{
    FILE *const spent = fopen(in_scratch("out"), "r");
    CHECK(spent != NULL);
    for (unsigned phase = 0; phase < program->phases; phase++)
        for (unsigned k = 0; k < OF_PHASE; k++)
            CHECK_EQ(fscanf(spent, "%lf", &cycles[phase][k]), 1);
    fclose(spent);
}

/* Shares of a function, or (k = OF_PHASE) of all, in all phases together; the cycles. */
static double truth_of_function(const struct phased_program *program, const struct csv *csv, int row, unsigned k, double truth[SHARES])
{
    double all = 0;
    memset(truth, 0, SHARES * sizeof *truth);
    for (unsigned phase = 0; phase < program->phases; phase++)
        for (unsigned of = k < OF_PHASE ? k : 0; of < OF_PHASE && (k == OF_PHASE || of == k); of++) {
            double share[SHARES] = {0};
            shares_on_core_of(mix_of_function(in_phase(of, phase)), csv, row, &info, share);
            for (uint32_t id = 1; id < SHARES; id++)
                truth[id] += cycles[phase][of] * share[id];
            all += cycles[phase][of];
        }
    for (uint32_t id = 1; id < SHARES; id++)
        truth[id] /= all;
    return all;
}

/* Of a row, the truth is within its intervals, of which each has it in 19 of 20 recordings: within one and a half of them. `besides`: another part
 * of it may be anything. How far off the worst is. */
static double row_is_true(const struct csv *csv, int row, const double truth[SHARES], double besides)
{
    double worst = 0;
    int told = 0;
    for (uint32_t id = 1; id < SHARES; id++) {
        const char *const node = td_node_name(id);
        const double is = *node ? number(csv, row, node, "") : NAN;
        if (isnan(is))
            continue;
        const double low = number(csv, row, node, "_low"), high = number(csv, row, node, "_high");
        told++;
        worst = fmax(worst, fabs(is - truth[id]));
        if (truth[id] * (1 - besides) + besides < is - 1.5 * (is - low) || truth[id] * (1 - besides) > is + 1.5 * (high - is))
            FAIL("%s: %s is %g (%g to %g, %g windows), in truth %g", csv_text(csv, row, "function"), node, is, low, high,
                 number(csv, row, "windows", ""), truth[id]);
    }
    CHECK(told > 0);
    return worst;
}

static void program_is_true(const struct phased_program *program)
{
    static struct csv csv;
    double truth[SHARES], worst = 0, time = 0;
    char *const arguments[] = {"--budget=50", beside("lib/phases"), strdup(program->name), in_scratch("out"), NULL};
    CHECK_EQ(run_under("record", "-F2000", arguments), 0);
    CHECK_EQ(strlen(stat_said()), 0);
    csv_read(&csv, in_scratch("r.csv"));
    read_cycles(program);
    for (unsigned k = 0; k < OF_PHASE; k++)
        time += number(&csv, row_of(&csv, (const char *[]){"f0", "f1", "f2", "f3"}[k], "own"), "time", "");
    /* (the rest chooses functions, and tells the emulated machine their mixes by system calls) */
    const double all = truth_of_function(program, &csv, 1, OF_PHASE, truth), of_all = row_is_true(&csv, 1, truth, 1 - time);
    for (unsigned k = 0; k < OF_PHASE; k++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", k);
        const int row = row_of(&csv, name, "own");
        CHECK(row > 0);
        const double part = time * truth_of_function(program, &csv, row, k, truth) / all;
        const double is = number(&csv, row, "time", ""), low = number(&csv, row, "time", "_low"), high = number(&csv, row, "time", "_high");
        worst = fmax(worst, row_is_true(&csv, row, truth, 0));
        if (part < is - 2 * (is - low) || part > is + 2 * (high - is))
            FAIL("%s has %g of the time (%g to %g), in truth %g", name, is, low, high, part);
    }
    fprintf(stderr, "%s: of all the worst share %.2f points off (retiring ±%.2f), of the functions %.2f\n", program->name, 100 * of_all,
            100 * (number(&csv, 1, NODES[0], "_high") - number(&csv, 1, NODES[0], "")), 100 * worst);
    free(csv.text);
}

int main(int argc, char **argv)
{
    stat_begins();
    kernel_never_lowers();
    info = core_of_truth();
    int ran = 0;
    for (unsigned k = 0; k < sizeof PHASED / sizeof *PHASED; k++)
        if (argc < 2 || strcmp(argv[1], PHASED[k].name) == 0) {
            program_is_true(&PHASED[k]);
            ran++;
        }
    CHECK(ran > 0);
    return 0;
}
