/* The timeline of `topdown run` and `topdown stat`: intervals add up to the whole, to the slot, and each is the truth of its phase within
 * its own bound; phases come in their order, and in a sleep nothing is counted. It has no more than 1,001 intervals, however long the
 * program runs. A Perfetto trace and the page have it, too.
 * needs: counters */
#include "lib/stat.h"

enum { PHASE = 150000000 }; /* instructions: so many nanoseconds there */
static const struct vm_mix SECOND = {40, 4, 4, 8, 8, 8, 12};

/* The program: works, sleeps, and works in another way; so often. */
static int phases(int rounds)
{
    for (int k = 0; k < rounds; k++) {
        uint64_t turns = PHASE / 2 / (uint64_t)rounds;
        vm_mix_set(k % 2 ? SECOND : MIX, 0, 0, 0);
        __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(turns) : : "cc");
        usleep(200000);
    }
    return 5;
}

static struct csv whole, time_of;

static double number(int row, const char *name) { return csv_number(&time_of, row, name); }

/* Whether the shares of an interval are such, within their bound and what passes at its ends. */
static int is_of(int row, struct vm_mix mix)
{
    static const char *const ONE[] = {"tma_retiring", "tma_bad_speculation", "tma_frontend_bound", "tma_backend_bound"};
    const struct truth truth = truth_of(mix);
    const double slots = number(row, "slots");
    for (int k = 0; k < 4; k++) {
        if (!(fabs(number(row, ONE[k]) / slots - truth.l1[k]) < number(row, "error_1") + 0.002))
            return 0;
    }
    return 1;
}

static void timeline_of(const char *subcommand, const char *interval, const char *rounds, double least, double most)
{
    char *const all[] = {beside("../release/topdown"), strdup(subcommand), strdup("--timeline"), in_scratch("time.csv"), strdup("-o"),
                         in_scratch("r.csv"), strdup(interval), strdup(own_path()), strdup("phases"), strdup(rounds), NULL};
    CHECK_EQ(WEXITSTATUS(run_alone(all)), 5);
    fprintf(stderr, "%s", stat_said());
    csv_read(&whole, in_scratch("r.csv"));
    csv_read(&time_of, in_scratch("time.csv"));
    double slots = 0, end = 0, longest = 0, first = 0, second = 0, mixed = 0, idle = 0, turns = 0, retiring = 0, unsure = 0;
    for (int row = 1; row < time_of.rows; row++) {
        const double own = number(row, "slots"), length = number(row, "end_ns") - number(row, "begin_ns");
        CHECK_EQ(number(row, "begin_ns"), end);
        end = number(row, "end_ns");
        CHECK(length > 0);
        longest = length > longest ? length : longest;
        slots += own;
        retiring += own > 0 ? number(row, "tma_retiring") : 0;
        unsure += own > 0 ? own * number(row, "error_1") : 0;
        if (own < 100000) { /* (so few are of any mix, within their bound) */
            idle += length;
        } else if (is_of(row, MIX)) {
            turns += first == 0 || second > 0;
            first += length;
        } else if (is_of(row, SECOND)) {
            CHECK(first > 0);
            second += length;
        } else {
            mixed += 1;
        }
    }
    const int row = csv_row(&whole, "");
    fprintf(stderr, "%s: %d intervals, %.1f ms of the first kind, %.1f of the second, %.1f idle, %.0f mixed\n", subcommand,
            time_of.rows - 1, first / 1e6, second / 1e6, idle / 1e6, mixed);
    fprintf(stderr, "bound of an interval: %.3f\n", unsure / slots);
    CHECK_EQ(slots, csv_number(&whole, row, "slots"));
    CHECK(unsure / slots < 0.1);
    CHECK_NEAR(retiring / slots, csv_number(&whole, row, "retiring"), csv_number(&whole, row, "error_1") + 1e-3);
    CHECK(time_of.rows - 1 >= least && time_of.rows - 1 <= most);
    CHECK(idle >= atoi(rounds) * (200e6 - 2 * longest)); /* (of each sleep, the first and the last may be of both) */
    CHECK(first > 40e6 && second > 40e6 && mixed <= 8);
    free(whole.text);
    free(time_of.text);
}

/* Whether a file begins so, and has this in it. */
static void has(const char *name, const char *begins, const char *in)
{
    static char text[1 << 20];
    FILE *file = fopen(in_scratch(name), "r");
    CHECK(file != NULL);
    const size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    CHECK(length > strlen(begins) && memcmp(text, begins, strlen(begins)) == 0);
    CHECK(memmem(text, length, in, strlen(in)) != NULL);
}

int main(int count, char **arguments)
{
    if (count > 2 && strcmp(arguments[1], "phases") == 0)
        return phases(atoi(arguments[2]));
    stat_begins();
    timeline_of("stat", "-I10", "2", 20, 80);
    timeline_of("run", "--interval=10", "2", 20, 80);
    timeline_of("run", "--per-process", "2", 10, 80);
    char *const html[] = {beside("../release/topdown"), strdup("stat"), strdup("--timeline"), in_scratch("t.pftrace"), strdup("-o"),
                          in_scratch("r.html"), strdup(own_path()), strdup("phases"), strdup("2"), NULL};
    CHECK_EQ(WEXITSTATUS(run_alone(html)), 5);
    has("r.html", "<!DOCTYPE html>", "id=\"timeline\"");
    has("t.pftrace", "\n", "retiring");
    return 0;
}
