/* Regions of a program under `topdown run` without options have the general counters: of many short executions the slots and shares are
 * true within a bound worth reading, also where a hybrid CPU's threads move between both kinds of core, and so is the whole.
 * needs: counters */
#include "lib/stat.h"
#include <topdown_region.h>

enum { TIMES = 40000, EACH = 500, MOVES = 8, LONGER = 50 }; /* (on a hybrid CPU, where readings are of two groups, fewer and longer) */
static const struct vm_mix AROUND = {2, 14, 2, 6, 12, 4, 8};

static void on_cpu(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    CHECK_EQ(sched_setaffinity(0, sizeof set, &set), 0);
}

/* The program: short regions, and as much of another mix around them. */
static int executes(const char *p, const char *e)
{
    const int longer = strcmp(p, e) == 0 ? 1 : LONGER, times = TIMES / longer, each = EACH * longer;
    const int cpu[] = {atoi(p), atoi(e)};
    for (int k = 0; k < times; k++) {
        uint64_t inside = (uint64_t)each / 2, outside = (uint64_t)each / 2;
        if (k % (times / MOVES) == 0)
            on_cpu(cpu[k / (times / MOVES) % 2]);
        vm_mix_set(MIX, 0, 0, 0);
        td_region_begin("short");
        __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(inside) : : "cc");
        td_region_end("short");
        vm_mix_set(AROUND, 0, 0, 0);
        __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(outside) : : "cc");
    }
    return 21;
}

int main(int argc, char **argv)
{
    static const char *const ONE[] = {"retiring", "bad_speculation", "frontend_bound", "backend_bound"};
    static struct csv csv;
    char cpu[2][16];
    if (argc == 3)
        return executes(argv[1], argv[2]);
    stat_begins();
    const int hybrid = p_core() >= 0;
    const double p_unit = unit_slots(TD_FLAG_COUNTERS), e_unit = hybrid ? unit_slots(TD_FLAG_E_CORES) : p_unit;
    snprintf(cpu[0], sizeof cpu[0], "%d", hybrid ? p_core() : 0);
    snprintf(cpu[1], sizeof cpu[1], "%d", hybrid ? e_core() : 0);
    char *const program[] = {strdup(own_path()), cpu[0], cpu[1], NULL};
    CHECK_EQ(WEXITSTATUS(run_under("run", "", program)), 21);
    csv_read(&csv, in_scratch("r.csv"));
    const int row = csv_row(&csv, "short"), whole = csv_row(&csv, "");
    const double error = csv_number(&csv, row, "error_1"), slots = csv_number(&csv, row, "slots");
    const double work = (p_unit + e_unit) / 2 / UNIT * EACH * TIMES;
    fprintf(stderr, "%.0f slots of %.0f, within %g; the whole within %g\n", slots, work, error, csv_number(&csv, whole, "error_1"));
    CHECK_EQ((int)csv_number(&csv, row, "executions"), hybrid ? TIMES / LONGER : TIMES);
    CHECK(error < 0.03 && csv_number(&csv, whole, "error_1") < 0.02);
    CHECK(slots > work && slots < 1.03 * work);
    for (int k = 0; k < 4; k++)
        CHECK_NEAR(csv_number(&csv, row, ONE[k]), truth_of(MIX).l1[k], error);
    free(csv.text);
    CHECK_EQ(WEXITSTATUS(run_under("run", NULL, program)), 21);
    fprintf(stderr, "%s", stat_said());
    CHECK(strstr(stat_said(), "general counters") != NULL);
    return 0;
}
