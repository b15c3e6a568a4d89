/* listevents [-v] [PATTERN] : the events that have names here, those of the event list and the kernel's, each with what it
 * stands for; with -v its description, too. PATTERN is the shell's. */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "jevents.h"

struct line {
    char *name, *event, *desc;
};

struct lines {
    const char *pattern;
    struct line *line;
    size_t count;
};

static char *copy(const char *text)
{
    char *own = strdup(text ? text : "");
    if (!own) {
        fprintf(stderr, "listevents: out of memory\n");
        exit(1);
    }
    return own;
}

static int add(void *data, char *name, char *event, char *desc)
{
    struct lines *lines = data;
    if (lines->pattern && fnmatch(lines->pattern, name, 0) != 0)
        return 0;
    struct line *grown = realloc(lines->line, (lines->count + 1) * sizeof *grown);
    if (!grown)
        return -1;
    lines->line = grown;
    lines->line[lines->count++] = (struct line){copy(name), copy(event), copy(desc)};
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct line *)a)->name, ((const struct line *)b)->name);
}

int main(int argc, char **argv)
{
    int verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    argc -= verbose;
    argv += verbose;
    if (argc > 2 || (argc > 1 && argv[1][0] == '-')) {
        fprintf(stderr, "usage: listevents [-v] [PATTERN]\n");
        return 2;
    }
    struct lines lines = {argc > 1 ? argv[1] : NULL, NULL, 0};
    int list = read_events(NULL);
    if (list < 0) {
        char *cpu = get_cpu_str();
        fprintf(stderr,
                "listevents: no event list of this CPU (%s: %s), so the kernel's events alone; event_download.py of "
                "pmu-tools fetches lists\n",
                cpu ? cpu : "?", strerror(-list));
        free(cpu);
    } else if (walk_events(add, &lines) < 0) {
        fprintf(stderr, "listevents: the event list cannot be read\n");
        return 1;
    }
    if (walk_perf_events(add, &lines) < 0)
        fprintf(stderr, "listevents: the kernel names no events in /sys/bus/event_source/devices\n");
    if (lines.count > 0)
        qsort(lines.line, lines.count, sizeof *lines.line, by_name);
    for (size_t i = 0; i < lines.count; i++) {
        printf("%-40s %s\n", lines.line[i].name, lines.line[i].event);
        if (verbose && lines.line[i].desc[0])
            printf("\t%s\n", lines.line[i].desc);
        free(lines.line[i].name);
        free(lines.line[i].event);
        free(lines.line[i].desc);
    }
    free(lines.line);
    return lines.count > 0 ? 0 : 1;
}
