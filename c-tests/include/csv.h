/* csv.h: the CSV that the command topdown writes of a measured program (docs/report-formats.md), as the tests read it. */
#ifndef CSV_H
#define CSV_H
#include "check.h"
#include <limits.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CSV_ROWS = 4096, CSV_COLUMNS = 256 };

struct csv {
    char *text;
    int rows, columns;
    char *cell[CSV_ROWS][CSV_COLUMNS]; /* row 0 has the names */
};

/* Splits a line in place. (No name of the tests has a line feed in it.) */
static inline int csv_split(char *line, char **cell)
{
    int n = 0;
    for (char *from = line, *to;; from = to + 1) {
        CHECK(n < CSV_COLUMNS);
        if (*from == '"') {
            char *out = cell[n++] = from + 1;
            for (to = from + 1; *to != '"' || to[1] == '"'; to++)
                to += *to == '"', *out++ = *to;
            *out = 0;
            to++;
        } else {
            cell[n++] = from;
            to = from + strcspn(from, ",");
        }
        if (*to == 0)
            return n;
        *to = 0;
    }
}

static inline void csv_read(struct csv *csv, const char *path)
{
    FILE *file = fopen(path, "r");
    size_t size = 0;
    memset(csv, 0, sizeof *csv);
    if (file == NULL)
        FAIL("no report in %s", path);
    CHECK(getdelim(&csv->text, &size, 0, file) > 0);
    fclose(file);
    for (char *line = strtok(csv->text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        CHECK(csv->rows < CSV_ROWS);
        const int n = csv_split(line, csv->cell[csv->rows++]);
        CHECK(csv->rows == 1 || n == csv->columns);
        csv->columns = n;
    }
}

static inline int csv_has(const struct csv *csv, const char *column)
{
    for (int c = 0; c < csv->columns; c++)
        if (strcmp(csv->cell[0][c], column) == 0)
            return 1;
    return 0;
}

static inline const char *csv_text(const struct csv *csv, int row, const char *column)
{
    for (int c = 0; c < csv->columns; c++)
        if (strcmp(csv->cell[0][c], column) == 0)
            return csv->cell[row][c];
    FAIL("the report has no column %s", column);
    return NULL;
}

/* NAN: it is not known. */
static inline double csv_number(const struct csv *csv, int row, const char *column)
{
    const char *text = csv_text(csv, row, column);
    return *text ? strtod(text, NULL) : NAN;
}

/* The row of a region over all threads and processes; of all that ran for an empty name; -1: there is none. */
/* The first row that has this text in a column; -1: there is none. */
static inline int csv_find_in(const struct csv *csv, const char *column, const char *text)
{
    for (int row = 1; row < csv->rows; row++)
        if (strcmp(csv_text(csv, row, column), text) == 0)
            return row;
    return -1;
}

static inline int csv_find(const struct csv *csv, const char *region)
{
    for (int row = 1; row < csv->rows; row++)
        if (strcmp(csv_text(csv, row, "region"), region) == 0 && *csv_text(csv, row, "pid") == 0)
            return row;
    return -1;
}

static inline int csv_row(const struct csv *csv, const char *region)
{
    const int row = csv_find(csv, region);
    if (row < 0)
        FAIL("the report has no region '%s'", region);
    return row;
}

/* Runs this program again with an argument, under the preload library; its wait status, and its report if it made one. */
static inline int under_preload(const char *self, const char *argument, struct csv *csv)
{
    char library[PATH_MAX], report[] = "/tmp/report-XXXXXX.csv";
    const char *last = strrchr(self, '/');
    snprintf(library, sizeof library, "%.*s/../release/libtopdown-preload.so", last ? (int)(last - self) : 1,
             last ? self : ".");
    close(mkstemps(report, 4));
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        setenv("LD_PRELOAD", library, 1);
        setenv("TOPDOWN_OUTPUT", report, 1);
        execl(own_path(), self, argument, (char *)NULL);
        _exit(127);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (csv != NULL)
        csv_read(csv, report);
    unlink(report);
    return status;
}
#endif
