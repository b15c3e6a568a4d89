/* `topdown record` is true of programs of phases that sleep differently, and in which the same functions have other mixes: five phases, an input phase
 * and a compute phase, three threads, phases that come again and again. Bursts come several times as often in the time of a thread that
 * sleeps; the intervals of shares, of functions and of all, and of each function's part of the time, have the truth in them nevertheless, but for
 * as many as chance leaves out of intervals of 95 %.
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

/* Figures of all programs by node, and of the time (TIME): how many have been checked, and of how many the truth is outside the interval. */
enum { TIME = 0 };
static unsigned checked[SHARES], outside[SHARES];

/* The truth is between `truth` and `most`. */
static void interval_is(const struct csv *csv, int row, uint32_t id, const char *name, double truth, double most)
{
    const double low = number(csv, row, name, "_low"), high = number(csv, row, name, "_high");
    CHECK(low <= high);
    checked[id]++;
    if (most >= low && truth <= high)
        return;
    outside[id]++;
    fprintf(stderr, "%s: %s is %g (%g to %g, %g windows), in truth %g\n", csv_text(csv, row, "function"), name, number(csv, row, name, ""), low,
            high, number(csv, row, "windows", ""), truth);
}

/* So many of `n` intervals of 95 % may leave the truth out: more do in less than one run in 10,000. */
static unsigned most_outside(unsigned n)
{
    unsigned most = 0;
    double of_most = pow(0.95, n), up_to = of_most;
    for (; 1 - up_to > 1e-4; up_to += of_most) {
        of_most *= (double)(n - most) / (most + 1) * 0.05 / 0.95;
        most++;
    }
    return most;
}

/* By node: rows are of other bursts each, but the shares of a row are of the same ones. */
static void intervals_are_true(void)
{
    unsigned bad = 0;
    for (uint32_t id = 0; id < SHARES; id++) {
        const char *const name = id == TIME ? "time" : td_node_name(id);
        if (checked[id] == 0)
            continue;
        fprintf(stderr, "%s: the truth is outside %u of %u intervals (%u by chance)\n", name, outside[id], checked[id], most_outside(checked[id]));
        bad += outside[id] > most_outside(checked[id]);
    }
    CHECK(checked[TIME] > 0);
    CHECK_EQ(bad, 0);
}

/* Counts a row's intervals. `besides`: another part of it may be anything. How far off the worst share is. */
static double row_is_counted(const struct csv *csv, int row, const double truth[SHARES], double besides)
{
    double worst = 0;
    int told = 0;
    for (uint32_t id = 1; id < SHARES; id++) {
        const char *const node = td_node_name(id);
        const double is = *node ? number(csv, row, node, "") : NAN;
        if (isnan(is))
            continue;
        told++;
        worst = fmax(worst, fabs(is - truth[id]));
        interval_is(csv, row, id, node, truth[id] * (1 - besides), truth[id] * (1 - besides) + besides);
    }
    CHECK(told > 0);
    return worst;
}

static void program_is_counted(const struct phased_program *program)
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
    const double all = truth_of_function(program, &csv, 1, OF_PHASE, truth), of_all = row_is_counted(&csv, 1, truth, 1 - time);
    for (unsigned k = 0; k < OF_PHASE; k++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", k);
        const int row = row_of(&csv, name, "own");
        CHECK(row > 0);
        const double part = time * truth_of_function(program, &csv, row, k, truth) / all;
        worst = fmax(worst, row_is_counted(&csv, row, truth, 0));
        interval_is(&csv, row, TIME, "time", part, part);
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
            program_is_counted(&PHASED[k]);
            ran++;
        }
    CHECK(ran > 0);
    intervals_are_true();
    return 0;
}
