/* `topdown record` counts returns beside the slots where a counter is left: of functions that run for longer than windows the intervals are
 * less than half as wide as without these counts; and of functions that are left for others and come back to without a return (they call each
 * other, jump to each other, or one is inlined into the other) they have the truth.
 * needs: counters, not-hybrid */
#include "lib/stat.h"
#include "lib/activations.h"
#include "lib/profile.h"

static struct td_info info;

/* Records a program, and returns in how many bursts nothing returned. `without` gets the recording without what is known of returns. */
static int recorded(char *const *program, const char *with, const char *without)
{
    static char line[1 << 16];
    char *words[16] = {beside("../release/topdown"), "record", "-F2000", "--budget=50", "-o", strdup(with)};
    int count = 6, none = 0;
    if (core_drops_slots(info.core))
        words[count++] = "--td-level=1"; /* (level 2 takes all counters) */
    while (*program)
        words[count++] = *program++;
    CHECK_EQ(run_alone(words), 0);
    FILE *const from = fopen(with, "r"), *const to = fopen(without, "w");
    CHECK(from != NULL && to != NULL);
    while (fgets(line, sizeof line, from)) {
        char *const calls = strstr(line, ",\"calls\":");
        if (calls) {
            none += strstr(calls, "\"returns\":[0,0]") != NULL;
            strcpy(calls, "}}\n");
        }
        fputs(line, to);
    }
    CHECK(fclose(from) == 0 && fclose(to) == 0);
    return none;
}

/* The profile of a recording is true of the functions of these names (%u: their places). How wide their intervals of level 1 are together. */
static double width_of(const char *recording, const char *const *names, unsigned count)
{
    static struct csv csv;
    double all = 0;
    CHECK_EQ(run_alone((char *[]){beside("../release/topdown"), "record", "--from", strdup(recording), "-o", in_scratch("r.csv"), NULL}), 0);
    csv_read(&csv, in_scratch("r.csv"));
    for (unsigned k = 0; k < count; k++) {
        const int row = row_of(&csv, names[k], "own");
        double worst = 0, wide = 0;
        CHECK(row > 0);
        CHECK(nodes_are_true(&csv, row, mix_of_function(k), &info, 0, &worst) > 0);
        for (unsigned node = 0; node < 4; node++)
            wide += number(&csv, row, NODES[node], "_high") - number(&csv, row, NODES[node], "_low");
        fprintf(stderr, "%s: %g windows, the worst share %.2f points off, intervals of level 1 ±%.2f on average\n", names[k],
                number(&csv, row, "windows", ""), 100 * worst, 100 * wide / 8);
        all += wide;
    }
    free(csv.text);
    return all;
}

int main(void)
{
    stat_begins();
    kernel_never_lowers();
    info = core_of_truth();
    char *const with = in_scratch("with.recording"), *const without = in_scratch("without.recording");
    char *const functions[] = {beside("lib/functions"), "4", "100000", "400", "plain", in_scratch("spent"), NULL};
    static const char *const of_functions[] = {"f0", "f1", "f2", "f3"};
    CHECK(recorded(functions, with, without) > 100);
    CHECK(width_of(with, of_functions, 4) < 0.5 * width_of(without, of_functions, 4));
    char *const activations[] = {beside("lib/activations"), "1000", NULL};
    static const char *const of_activations[] = {"leaf", "down_a", "down_b", "jump_a", "jump_b", "host", "inner"};
    CHECK(recorded(activations, with, without) > 100);
    width_of(with, of_activations, ACTIVE);
    return 0;
}
