/* formulas.h: the text of this CPU's tree of deeper levels, rates for its events, and what its formulas say of these. */
#ifndef FORMULAS_H
#define FORMULAS_H
#include "stat.h"
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include "vm/mix.h"

/* A line `event`, `figure`, `node` or `metric` of the text. */
struct text_line {
    char name[80], unit[32];
    int is_metric;
    char *formula;            /* NULL: an event, or what the core's own text tells */
    uint64_t config, extra;
    double rate;              /* of an event, in a cycle; NaN: it is the mix's */
    double latency;           /* mean retire latency of an event, in cycles; 0: none takes it */
    double published;         /* the same of some machine, as the text has it; 0: it has none */
    uint64_t per65536;        /* the rate as the emulated machine takes it; 0: it is not to be set */
};
static struct text_line lines[1000];
static size_t all;
static unsigned model, width, is_smt;
static double tsc_ghz;
static char report[1 << 22];

static struct text_line *line_of(const char *name)
{
    for (size_t k = 0; k < all; k++)
        if (strcmp(lines[k].name, name) == 0)
            return &lines[k];
    return NULL;
}

/* A node of the report: its share, low and high end; 0: it was not measured. */
static int told(const char *name, double share[3])
{
    char key[128];
    snprintf(key, sizeof key, "\"tma_%.79s\": { \"value\": ", name);
    const char *node = strstr(report, key);
    return node && sscanf(node + strlen(key), "%lf, \"low\": %lf, \"high\": %lf", &share[0], &share[1], &share[2]) == 3;
}

/* A formula, read from here on. */
static const char *at;
static double worth(const char *name);
static double choice(void);

static int is_next(const char *sign)
{
    at += strspn(at, " ");
    const size_t length = strlen(sign);
    if (strncmp(at, sign, length) != 0 || (isalpha((unsigned char)sign[0]) && at[length] != ' '))
        return 0;
    at += length;
    return 1;
}

static double operand(void)
{
    char word[80];
    double value, other;
    if (is_next("(")) {
        value = choice();
        CHECK(is_next(")"));
        return value;
    }
    const int is_least = strncmp(at, "min(", 4) == 0;
    if (is_least || strncmp(at, "max(", 4) == 0) {
        at += 4;
        value = choice();
        CHECK(is_next(","));
        other = choice();
        CHECK(is_next(")"));
        return (value < other) == is_least ? value : other;
    }
    char *end;
    value = strtod(at, &end);
    if (end > at && *end != '_' && !isalpha((unsigned char)*end)) {
        at = end;
        return value;
    }
    const size_t length = strcspn(at, " (),+*/<>");
    CHECK(length > 0 && length < sizeof word);
    snprintf(word, sizeof word, "%.*s", (int)length, at);
    at += length;
    return worth(word);
}

static double product(void)
{
    double value = operand();
    for (;;)
        if (is_next("*")) {
            value *= operand();
        } else if (is_next("/")) {
            const double by = operand();
            value = value == 0 && by == 0 ? 0 : value / by;
        } else {
            return value;
        }
}

static double sum(void)
{
    double value = product();
    for (;;)
        if (is_next("+"))
            value += product();
        else if (is_next("- "))
            value -= product();
        else
            return value;
}

static double compared(void)
{
    const double value = sum();
    if (is_next("<="))
        return value <= sum();
    if (is_next(">="))
        return value >= sum();
    if (is_next("<"))
        return value < sum();
    if (is_next(">"))
        return value > sum();
    return value;
}

static double choice(void)
{
    const double then = compared();
    if (!is_next("if"))
        return then;
    const double condition = compared();
    CHECK(is_next("else"));
    const double otherwise = choice();
    return condition != 0 ? then : otherwise;
}

static double formula(const char *text)
{
    const char *before = at;
    at = text;
    const double value = choice();
    at = before;
    return value;
}

/* Behind the name of an event: its mean retire latency. */
#define OF_LATENCY ":RETIRE_LATENCY"

/* What is behind a name, in so many cycles. (As they are published a few formulas say another thing of one cycle than of many.) */
static double cycles = 1;

static double worth(const char *name)
{
    double share[3];
    if (strcmp(name, "smt_on") == 0)
        return is_smt;
    if (strcmp(name, "tsc_ghz") == 0)
        return tsc_ghz;
    if (strncmp(name, "TOPDOWN.SLOTS", 13) == 0)
        return width * cycles;
    if (strlen(name) > strlen(OF_LATENCY) && strcmp(name + strlen(name) - strlen(OF_LATENCY), OF_LATENCY) == 0) {
        char event[80];
        snprintf(event, sizeof event, "%.*s", (int)(strlen(name) - strlen(OF_LATENCY)), name);
        return line_of(event) && line_of(event)->latency > 0 ? line_of(event)->latency : NAN;
    }
    const struct text_line *line = line_of(name);
    /* (a figure and a metric of one name are the same) */
    if (line && isupper((unsigned char)name[0]))
        return line->rate * cycles;
    if (line && line->formula)
        return formula(line->formula);
    return told(name, share) ? share[0] : NAN;
}

/* Reads the text that has this model, of its first steppings; 0: it is another. */
static int read_text(const char *path)
{
    static char text[4096];
    char wanted[16];
    int is_it = 0;
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    snprintf(wanted, sizeof wanted, " 0x%x", model);
    all = 0;
    while (fgets(text, sizeof text, file)) {
        struct text_line line = {.rate = NAN};
        text[strcspn(text, "\n")] = ' ';
        if (strncmp(text, "cpu ", 4) == 0)
            is_it = strstr(text, wanted) != NULL && strstr(text, " from ") == NULL;
        const char *extra = strstr(text, " extra ");
        if (sscanf(text, "event %79s %" SCNi64, line.name, (int64_t *)&line.config) == 2) {
            const char *published = strstr(text, " latency ");
            line.published = published ? strtod(published + 9, NULL) : 0;
            line.extra = extra ? strtoull(extra + 7, NULL, 0) : 0;
            line.rate = strstr(text, " fixed") ? 1 : NAN; /* (an instruction takes a cycle, and a cycle one of the reference) */
        } else {
            char *value = strstr(text, " = "), *of = strstr(text, ", of "), *below = strstr(text, " > ");
            const int is_figure = strncmp(text, "figure", 6) == 0;
            line.is_metric = strncmp(text, "metric", 6) == 0;
            if (value == NULL || !(is_figure || line.is_metric || strncmp(text, "node", 4) == 0))
                continue;
            char *in = line.is_metric ? strstr(text, ", in ") : NULL;
            const char *name = !is_figure && below && below < value ? below + 3 : text + 6;
            CHECK_EQ(sscanf(name, "%79s", line.name), 1);
            if (in) {
                CHECK_EQ(sscanf(in + 5, "%31[^,]", line.unit), 1);
                *in = 0;
            } else if (of) {
                CHECK_EQ(sscanf(of + 5, "%31[a-z]", line.unit), 1);
                *of = 0;
            }
            line.formula = strncmp(value + 3, "told", 4) == 0 ? NULL : strdup(value + 3);
        }
        CHECK(all < sizeof lines / sizeof lines[0]);
        lines[all++] = line;
    }
    fclose(file);
    return is_it;
}

/* What the core's own text counts: of this the mix tells the rate. */
static uint64_t own[100];
static size_t all_own;

static void read_own(void)
{
    char command[256], line[256];
    snprintf(command, sizeof command,
             "for text in $(grep -liE '^cpu .* 0x%x( |$)' cpus/intel-*.txt); do grep -E '^(event|leader)' $text; done", model);
    FILE *pipe = popen(command, "r");
    CHECK(pipe != NULL);
    while (fgets(line, sizeof line, pipe) && all_own < 100)
        if (sscanf(line, "%*s %*s %" SCNi64, (int64_t *)&own[all_own]) == 1)
            all_own++;
    pclose(pipe);
    CHECK(all_own > 3);
}

static int is_own(uint64_t config)
{
    for (size_t k = 0; k < all_own; k++)
        if (own[k] == config)
            return 1;
    return 0;
}

/* Whether some formula takes the retire latency of this event. */
static int takes_latency(const char *event)
{
    char wanted[100];
    snprintf(wanted, sizeof wanted, " %.79s%s", event, OF_LATENCY);
    for (const struct text_line *line = lines; line < lines + all; line++)
        if (line->formula && strstr(line->formula, wanted))
            return 1;
    return 0;
}

static unsigned number_of(const char *command)
{
    unsigned number = 0;
    FILE *pipe = popen(command, "r");
    CHECK(pipe != NULL);
    if (fscanf(pipe, "%u", &number) != 1)
        number = 0;
    pclose(pipe);
    return number;
}

/* The rates that were drawn are those of this thread's work from now on. */
static inline void set_rates(void)
{
    const struct vm_mix mix = {24, 8, 12, 6, 9, 10, 9};
    vm_mix_set(mix, 0, 0, 0);
    vm_rates_clear();
    for (const struct text_line *line = lines; line < lines + all; line++) {
        const uint64_t per100 = (uint64_t)(line->latency * 100 + 0.5);
        if (line->per65536)
            CHECK(line->extra ? vm_rate_set_extra(line->config, line->extra, line->per65536, VM_PER_CYCLE)
                              : vm_rate_set(line->config, line->per65536, VM_PER_CYCLE));
        if (per100)
            CHECK(line->extra ? vm_latency_set_extra(line->config, line->extra, per100, 0) : vm_latency_set(line->config, per100, 0));
    }
}

/* Rates, the same for the program and for who judges it. */
static inline void draw_rates(uint64_t seed, int set)
{
    for (struct text_line *line = lines; line < lines + all; line++) {
        if (!isupper((unsigned char)line->name[0]) && !isdigit((unsigned char)line->name[0]))
            continue;
        if (line->formula || line->config == 0 || line->rate == 1)
            continue;
        const uint64_t per65536 = 1000 + next_random(&seed) % 20000;
        if (is_own(line->config))
            continue;
        line->rate = (double)per65536 / 65536;
        line->per65536 = per65536;
    }
    for (struct text_line *line = lines; line < lines + all; line++) {
        if (!takes_latency(line->name))
            continue;
        const uint64_t per100 = 50 + next_random(&seed) % 9000;
        line->latency = (double)per100 / 100;
    }
    if (set)
        set_rates();
    struct text_line *retired = line_of("UOPS_RETIRED.SLOTS");
    if (retired)
        retired->rate = 24 / 64.0 * width;
}

/* Finds the text of this CPU, or skips the test. */
static void find_text(void)
{
    char path[256];
    int is_found = 0;
    model = number_of("sed -n 's/^model[[:space:]]*: //p' /proc/cpuinfo");
    FILE *texts = popen("ls cpus/deep/*.txt", "r");
    while (!is_found && fscanf(texts, "%255s", path) == 1)
        is_found = read_text(path);
    pclose(texts);
    if (!is_found)
        SKIP("no tree of deeper levels has model %u", model);
    read_own();
    is_smt = number_of("cat /sys/devices/system/cpu/smt/active");
}

static double seconds_of(clockid_t clock)
{
    struct timespec now;
    CHECK_EQ(clock_gettime(clock, &now), 0);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Finds out how many slots a cycle has, and how fast the time-stamp counter runs. */
static void find_rates(void)
{
    td_t *td = NULL;
    struct td_info info = {0};
    td_must(td_open(&td, NULL));
    td_must(td_get_info(td, &info));
    width = info.slots_per_cycle;
    td_close(td);
    const double from = seconds_of(CLOCK_MONOTONIC);
    const uint64_t ticks = __builtin_ia32_rdtsc();
    work(100000000);
    tsc_ghz = (double)(__builtin_ia32_rdtsc() - ticks) * 1e-9 / (seconds_of(CLOCK_MONOTONIC) - from);
}
#endif
