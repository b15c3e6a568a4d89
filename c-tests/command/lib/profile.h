/* profile.h: the CSV of a profile (docs/record.md), compared with the truth. */
#ifndef PROFILE_H
#define PROFILE_H
#include "csv.h"
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

static inline int row_of(const struct csv *csv, const char *function, const char *scope)
{
    for (int row = 1; row < csv->rows; row++)
        if (strcmp(csv_text(csv, row, "function"), function) == 0 && strcmp(csv_text(csv, row, "scope"), scope) == 0)
            return row;
    return 0;
}

/* The truth of each share of a row is within its interval, and if `much`, within a point of it. How many shares there are. */
static inline int shares_are_true(const struct csv *csv, int row, const struct truth *truth, int much, double *worst)
{
    int told = 0;
    for (int k = 0; k < 12; k++) {
        const double expected = k < 4 ? truth->l1[k] : truth->l2[k - 4], value = number(csv, row, NODES[k], "");
        if (isnan(value))
            continue;
        told++;
        if (fabs(value - expected) > *worst)
            *worst = fabs(value - expected);
        if (expected < number(csv, row, NODES[k], "_low") || expected > number(csv, row, NODES[k], "_high"))
            FAIL("%s: %s is %g (%g to %g), in truth %g", csv_text(csv, row, "function"), NODES[k], value,
                 number(csv, row, NODES[k], "_low"), number(csv, row, NODES[k], "_high"), expected);
        if (much)
            CHECK_NEAR(value, expected, 0.01);
    }
    return told;
}
#endif
