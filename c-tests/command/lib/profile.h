/* profile.h: the CSV of a profile (docs/record-views.md), compared with the truth. */
#ifndef PROFILE_H
#define PROFILE_H
#include "csv.h"
#include "pmu.h"
#include "truth.h"

static const char *const NODES[] = {"tma_retiring",         "tma_bad_speculation",   "tma_frontend_bound",     "tma_backend_bound",
                                    "tma_heavy_operations", "tma_light_operations",  "tma_branch_mispredicts", "tma_machine_clears",
                                    "tma_fetch_latency",    "tma_fetch_bandwidth",   "tma_memory_bound",       "tma_core_bound"};

/* Of a row, a column "NAME_low" and the like; NaN: it is empty, or there is none. */
static inline double number(const struct csv *csv, int row, const char *name, const char *end)
{
    char column[64];
    snprintf(column, sizeof column, "%s%s", name, end);
    for (int c = 0; c < csv->columns; c++)
        if (strcmp(csv->cell[0][c], column) == 0 && *csv->cell[row][c])
            return atof(csv->cell[row][c]);
    return NAN;
}

/* The row of a function on a kind of core, or (NULL) the first that is of any; 0: there is none. */
static inline int row_on(const struct csv *csv, const char *core, const char *function, const char *scope)
{
    for (int row = 1; row < csv->rows; row++)
        if (strcmp(csv_text(csv, row, "function"), function) == 0 && strcmp(csv_text(csv, row, "scope"), scope) == 0 &&
            (core == NULL || strcmp(csv_text(csv, row, "core"), core) == 0))
            return row;
    return 0;
}

static inline int row_of(const struct csv *csv, const char *function, const char *scope) { return row_on(csv, NULL, function, scope); }

/* The share is in the interval that the row has for it, and if `much`, within a point of it. Whether it has one. */
static inline int share_is_true(const struct csv *csv, int row, const char *node, double expected, int much, double *worst)
{
    const double value = number(csv, row, node, ""), low = number(csv, row, node, "_low"), high = number(csv, row, node, "_high");
    if (isnan(value))
        return 0;
    if (fabs(value - expected) > *worst)
        *worst = fabs(value - expected);
    if (expected < low || expected > high)
        FAIL("%s, %s: %s is %g (%g to %g), in truth %g", csv_text(csv, row, "core"), csv_text(csv, row, "function"), node, value, low,
             high, expected);
    if (much && !(fabs(value - expected) <= 0.01))
        FAIL("%s, %s: %s is %g (%g to %g, %g windows), in truth %g: more than a point", csv_text(csv, row, "core"),
             csv_text(csv, row, "function"), node, value, low, high, number(csv, row, "windows", ""), expected);
    return 1;
}

/* The truth of each share of a row is within its interval, and if `much`, within a point of it. How many shares there are. */
static inline int shares_are_true(const struct csv *csv, int row, const struct truth *truth, int much, double *worst)
{
    int told = 0;
    for (int k = 0; k < 12; k++)
        told += share_is_true(csv, row, NODES[k], k < 4 ? truth->l1[k] : truth->l2[k - 4], much, worst);
    return told;
}

/* How code of this mix divides on the core of a row. `info`: of a handle on this machine. */
static inline void shares_on_core_of(struct vm_mix mix, const struct csv *csv, int row, const struct td_info *info, double share[SHARES])
{
    struct td_info of = *info;
    snprintf(of.core, sizeof of.core, "%s", csv_text(csv, row, "core"));
    const struct known_mix known = known_mix(mix, &of, 0);
    CHECK(memcmp(&known.mix, &mix, sizeof mix) == 0); /* (the core can be set to it) */
    shares_of_known(&known, &of, share);
}

/* The same of any core: of code of this mix, what its nodes are in truth. `info`: of a handle on this machine. */
static inline int nodes_are_true(const struct csv *csv, int row, struct vm_mix mix, const struct td_info *info, int much, double *worst)
{
    double share[SHARES];
    int told = 0;
    shares_on_core_of(mix, csv, row, info, share);
    for (uint32_t id = 1; id < SHARES; id++)
        if (*td_node_name(id))
            told += share_is_true(csv, row, td_node_name(id), share[id], much, worst);
    return told;
}

/* The core of this thread, of which it is known what it counts. */
static inline struct td_info core_of_truth(void)
{
    td_t *const td = measured(NULL);
    const struct td_info info = info_of(td);
    td_close(td);
#if defined(__x86_64__)
    if (strstr(info.core, "Zen") != NULL)
        contention_is_known(&info);
#endif
    return info;
}

/* Writes a file of /proc or /sys. */
static inline void set(const char *path, const char *value)
{
    FILE *const file = fopen(path, "w");
    CHECK(file != NULL && fputs(value, file) >= 0 && fclose(file) == 0);
}

/* The same until this program ends. (The tests of a machine run one after the other) */
static struct {
    const char *path;
    char value[32];
} settings_before[4];
static inline void settings_are_as_before(void)
{
    for (unsigned k = 0; k < 4 && settings_before[k].path; k++)
        set(settings_before[k].path, settings_before[k].value);
}
static inline void set_until_end(const char *path, const char *value)
{
    unsigned k = 0;
    while (settings_before[k].path && strcmp(settings_before[k].path, path))
        CHECK(++k < 4);
    if (settings_before[k].path == NULL) {
        FILE *const file = fopen(path, "r");
        CHECK(file != NULL && fgets(settings_before[k].value, sizeof settings_before[k].value, file) != NULL && fclose(file) == 0);
        settings_before[k].path = path;
        CHECK_EQ(k == 0 ? atexit(settings_are_as_before) : 0, 0);
    }
    set(path, value);
}

/* The kernel lowers its limit of samples itself where interrupts take long, as they do on an emulated machine that shares its CPUs; or not. */
#define MAX_SAMPLE_RATE "/proc/sys/kernel/perf_event_max_sample_rate"
#define CPU_TIME_MAX_PERCENT "/proc/sys/kernel/perf_cpu_time_max_percent"
static inline void kernel_lowers(void) { set(CPU_TIME_MAX_PERCENT, "25\n"); }
static inline void kernel_never_lowers(void)
{
    if (geteuid() != 0)
        return;
    kernel_lowers(); /* (else the limit cannot be set) */
    set(MAX_SAMPLE_RATE, "100000\n"); /* it may have been lowered before */
    set(CPU_TIME_MAX_PERCENT, "0\n");
    atexit(kernel_lowers);
}
#endif
