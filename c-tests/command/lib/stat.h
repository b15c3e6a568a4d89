/* stat.h: runs programs of shapes.c, alone or under `topdown stat`, as an ordinary user. */
#ifndef STAT_H
#define STAT_H
#include "csv.h"
#include "pmu.h"
#include "shapes.h"
#include <fcntl.h>
#include <libgen.h>
#include <stdarg.h>
#include <sys/resource.h>

static char stat_directory[PATH_MAX], stat_scratch[] = "/tmp/stat.XXXXXX";

/* A file of the scratch directory, or a program beside this one. (Never freed: the test ends soon.) */
static inline char *stat_path(const char *directory, const char *name)
{
    char *path = NULL;
    CHECK(asprintf(&path, "%s/%s", directory, name) > 0);
    return path;
}
static inline char *beside(const char *name) { return stat_path(stat_directory, name); }
static inline char *in_scratch(const char *name) { return stat_path(stat_scratch, name); }

static inline void stat_clean(void)
{
    char line[64];
    snprintf(line, sizeof line, "rm -rf %s", stat_scratch);
    if (system(line))
        fprintf(stderr, "%s stays\n", stat_scratch);
}

static inline void stat_begins_without_mix(void)
{
    snprintf(stat_directory, sizeof stat_directory, "%s", own_path());
    dirname(stat_directory);
    if (access(beside("../release/topdown"), X_OK))
        SKIP("%s is not there", beside("../release/topdown"));
    CHECK(mkdtemp(stat_scratch) != NULL && chmod(stat_scratch, 0777) == 0);
    atexit(stat_clean);
}

static inline void stat_begins(void)
{
    needs_known_mix();
    stat_begins_without_mix();
    mix_is(MIX); /* (on Ice Lake, of programs with this mix: without clears) */
}

/* Runs a command, and returns how it ended; what it says on standard error is in the file `said`. */
static inline int run_alone(char *const *arguments)
{
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        CHECK_EQ(dup2(open(in_scratch("said"), O_CREAT | O_WRONLY | O_TRUNC, 0666), 2), 2);
        CHECK(geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0));
        execv(arguments[0], arguments);
        _exit(126);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return status;
}

/* The same under `topdown` with such a subcommand, and an option ("" for none); its report is r.csv, or without (NULL) a text, in `said`. */
static inline int run_under(const char *subcommand, const char *option, char *const *arguments)
{
    char *all[24] = {beside("../release/topdown"), strdup(subcommand)};
    int n = 2;
    if (option) {
        if (*option)
            all[n++] = strdup(option);
        all[n++] = strdup("-o");
        all[n++] = in_scratch("r.csv");
    }
    while (*arguments)
        all[n++] = *arguments++;
    return run_alone(all);
}

static inline int run_counted(const char *option, char *const *arguments) { return run_under("stat", option, arguments); }

/* A text of the scratch directory. (The same memory each time) */
static inline char *text_in(const char *name)
{
    static char buffer[1 << 20];
    FILE *file = fopen(in_scratch(name), "r");
    CHECK(file != NULL);
    buffer[fread(buffer, 1, sizeof buffer - 1, file)] = 0;
    fclose(file);
    return buffer;
}

/* Of /proc/cpuinfo: the first number behind this key, as scanf(3) has it. */
static inline unsigned of_cpuinfo(const char *key)
{
    char line[256];
    unsigned value = 0;
    FILE *const file = fopen("/proc/cpuinfo", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) && sscanf(line, key, &value) != 1)
        ;
    fclose(file);
    return value;
}

/* What was said on standard error. */
static inline char *stat_said(void)
{
    char *const buffer = text_in("said");
    for (char *at = buffer; (at = strstr(at, "\n  ")) != NULL;)
        memmove(at, at + 2, strlen(at + 2) + 1), *at = ' '; /* lines that were wrapped */
    return buffer;
}

/* Slots of a unit of work on these cores. */
static inline double unit_slots(uint32_t flags)
{
    struct td_options options = options_of(flags, 1);
    td_t *td;
    td_must(td_open(&td, &options));
    const double width = info_of(td).slots_per_cycle;
    td_close(td);
    return width * UNIT;
}

/* Whether the published metrics of this core take INT_MISC.UOP_DROPPING. */
static inline int drops_slots(void)
{
    td_t *const td = measured(NULL);
    const struct td_info info = info_of(td);
    td_close(td);
    return core_drops_slots(info.core);
}

/* The report's shares of the whole are within their bounds, plus this, of the truth. */
static inline void stat_is_true(const struct csv *csv, double besides)
{
    static const char *const ONE[] = {"retiring", "bad_speculation", "frontend_bound", "backend_bound"};
    static const char *const TWO[] = {"heavy_operations", "light_operations", "branch_mispredicts", "machine_clears",
                                      "fetch_latency", "fetch_bandwidth", "memory_bound", "core_bound"};
    const struct truth truth = truth_of(MIX);
    const int row = csv_row(csv, "");
    const double one = csv_number(csv, row, "error_1"), two = csv_number(csv, row, "error_2");
    for (int k = 0; k < 4; k++)
        CHECK_NEAR(csv_number(csv, row, ONE[k]), truth.l1[k], one + besides);
    for (int k = 0; k < 8 && !isnan(two); k++)
        CHECK_NEAR(csv_number(csv, row, TWO[k]), truth.l2[k], two + besides);
    for (int k = 0; k < 12; k++) {
        char name[64], low[72], high[72];
        snprintf(name, sizeof name, "tma_%s", k < 4 ? ONE[k] : TWO[k - 4]);
        snprintf(low, sizeof low, "%s_low", name);
        snprintf(high, sizeof high, "%s_high", name);
        const double is = k < 4 ? truth.l1[k] : truth.l2[k - 4];
        if (csv_has(csv, low) && *csv_text(csv, row, low))
            CHECK(csv_number(csv, row, low) - besides <= is && is <= csv_number(csv, row, high) + besides);
    }
}

/* Whether backend bound, too, has slots of an event for which no counter may be left. */
static inline int backend_is_corrected(void)
{
#if defined(__x86_64__)
    return is_ice_lake();
#else
    return 0;
#endif
}

/* How wide the widest interval of the whole is down to this level, of nodes that slots of INT_MISC.UOP_DROPPING are of (`touched`), or of
 * the others, which are exact whether or not a counter is left for these. */
static inline double stat_widest(const struct csv *csv, int touched, int level)
{
    static const char *const NAMES[2][4] = {{"tma_retiring", "tma_backend_bound", "tma_heavy_operations", "tma_branch_mispredicts"},
                                            {"tma_frontend_bound", "tma_bad_speculation", "tma_fetch_latency", "tma_machine_clears"}};
    double widest = 0;
    int told = 0;
    for (int k = 0; k < 2 * level; k++) {
        char low[72], high[72];
        snprintf(low, sizeof low, "%s_low", NAMES[touched][k]);
        snprintf(high, sizeof high, "%s_high", NAMES[touched][k]);
        const int row = csv_row(csv, "");
        if (!csv_has(csv, low) || !*csv_text(csv, row, low))
            continue;
        told++;
        if (touched || k != 1 || !backend_is_corrected())
            widest = fmax(widest, csv_number(csv, row, high) - csv_number(csv, row, low));
    }
    CHECK(told >= 2); /* those of level 1 */
    return widest;
}
#endif
