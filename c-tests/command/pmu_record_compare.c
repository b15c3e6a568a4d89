/* `topdown compare` of two recordings, of programs whose functions have mixes that are known: the true difference of each share is
 * within the interval of the difference, of one program twice none is significant, and of programs with other mixes some of each
 * function are, in the direction of the truth.
 * needs: counters, not-hybrid */
#include "lib/stat.h"
#include "lib/functions.h"

static const char *const NODES[] = {"tma_retiring",         "tma_bad_speculation",   "tma_frontend_bound",     "tma_backend_bound",
                                    "tma_heavy_operations", "tma_light_operations",  "tma_branch_mispredicts", "tma_machine_clears",
                                    "tma_fetch_latency",    "tma_fetch_bandwidth",   "tma_memory_bound",       "tma_core_bound"};
enum { FUNCTIONS = 4 };

static void record(const char *shape, const char *file)
{
    CHECK_EQ(run_alone((char *[]){beside("../release/topdown"), "record", "-F2000", "--budget=50", "--gap=300", "-o", in_scratch(file),
                                  beside("lib/functions"), "4", "5000", "400", strdup(shape), in_scratch("out"), NULL}), 0);
}

static double of_mix(unsigned k, int node)
{
    const struct truth truth = truth_of(mix_of_function(k));
    return node < 4 ? truth.l1[node] : truth.l2[node - 4];
}

/* How many shares of functions have changed significantly, if those of the one after have so much later mixes. */
static int compare(const char *before, const char *after, unsigned later)
{
    static struct csv csv;
    CHECK_EQ(run_alone((char *[]){beside("../release/topdown"), "compare", "-o", in_scratch("r.csv"), in_scratch(before), in_scratch(after), NULL}), 0);
    csv_read(&csv, in_scratch("r.csv"));
    int significant[FUNCTIONS] = {0}, told = 0, all = 0;
    for (int row = 1; row < csv.rows; row++) {
        unsigned k;
        int node = 0;
        while (node < 12 && strcmp(csv_text(&csv, row, "figure"), NODES[node]) != 0)
            node++;
        if (node == 12 || sscanf(csv_text(&csv, row, "function"), "f%u", &k) != 1 || strcmp(csv_text(&csv, row, "scope"), "own") != 0 ||
            !*csv_text(&csv, row, "difference"))
            continue;
        const double expected = of_mix(k + later, node) - of_mix(k, node), low = csv_number(&csv, row, "difference_low"),
                     high = csv_number(&csv, row, "difference_high");
        if (expected < low || expected > high)
            FAIL("f%u: %s: from %g to %g, in truth %g", k, NODES[node], low, high, expected);
        const int yes = strcmp(csv_text(&csv, row, "significant"), "yes") == 0;
        CHECK(yes == (low > 0 || high < 0));
        significant[k] += yes;
        all += yes;
        told++;
    }
    free(csv.text);
    fprintf(stderr, "%s to %s: %d shares, %d of them have changed\n", before, after, told, all);
    CHECK(told >= FUNCTIONS * 4);
    for (int k = 0; k < FUNCTIONS && later; k++)
        CHECK(significant[k] > 0);
    return all;
}

int main(void)
{
    stat_begins();
    record("plain", "one.json");
    record("plain", "two.json");
    record("other", "other.json");
    CHECK_EQ(compare("one.json", "two.json", 0), 0);
    CHECK(compare("one.json", "other.json", OTHER_MIXES) > 0);
    return 0;
}
