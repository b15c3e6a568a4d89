/* Metrics of files, in Intel's and in perf's format, are what their formulas say of the rates at which the program's events truly happen, which
 * change while it runs: random formulas of events by their names, with masks, raw, and as a file describes them. What cannot be counted is not told,
 * with the reason; a built-in figure of the same name gives way; and what is no file of metrics is refused by its name. Arguments: the seed.
 * needs: counters or other-core, not-hybrid */
#include "lib/companions.h"

enum { FORMULAS = 9, OPERANDS = 4, EACH = 7 };
/* $0 to $3 are events. What perf has, and what the judge reads of the same. */
static const char *const SHAPES[FORMULAS][2] = {
    {"$0 / $1", "$0 / $1"},
    {"( $0 + 2 * $1 ) / ( $2 + $3 )", "( $0 + 2 * $1 ) / ( $2 + $3 )"},
    {"1000 * $0 / ( $1 + $2 )", "1000 * $0 / ( $1 + $2 )"},
    {"min($0, $1) / max($2, $3)", "min( $0 , $1 ) / max( $2 , $3 )"},
    {"$0 / $2 if $0 > $1 else $1 / $2", "$0 / $2 if $0 > $1 else $1 / $2"},
    {"( $0 / 2 if $1 < 0 else $0 ) / $1", "$0 / $1"},
    {"( $0 + $1 ) / ( $0 + $1 + $2 )", "( $0 + $1 ) / ( $0 + $1 + $2 )"},
    {"d_ratio($0, $1) + -0.5 * 4 / 4", "$0 / $1 - 0.5"},
    {"64 * $0 / 1000000000 / duration_time", "64 * $0 / 1000000000"},
};
enum { OF_PERF = 7, RATE = 8 }; /* (from the first on they are perf's alone) */
static const char *const ALIASES[OPERANDS] = {"a", "b", "c_1", "d"};

struct metric {
    char name[32], judge[1000];
    int is_rate;
};
static struct metric metrics[2 * EACH + 2];
static size_t all_metrics;

/* With words in the places of $0 to $3. */
static void put_in(char *out, size_t size, const char *shape, char words[OPERANDS][120])
{
    size_t length = 0;
    for (; *shape; shape++) {
        const int is_word = *shape == '$';
        length += (size_t)snprintf(out + length, size - length, "%.*s", is_word ? 119 : 1, is_word ? words[shape[1] - '0'] : shape);
        CHECK(length < size);
        shape += is_word;
    }
}

/* Whether it has a mask alone behind its name, and what is before that is an event, too. */
static int is_masked(const struct text_line *line, char base[80], unsigned *mask)
{
    const char *colon = strchr(line->name, ':');
    if (colon == NULL)
        return 0;
    snprintf(base, 80, "%.*s", (int)(colon - line->name), line->name);
    char rest = 0;
    return sscanf(colon, ":C%u%c", mask, &rest) == 1 && line_of(base) != NULL && line_of(base)->formula == NULL;
}

/* Whether another name of the same event, behind it, has set its rate. */
static int is_renamed(const struct text_line *line)
{
    for (const struct text_line *other = line + 1; other < lines + all; other++)
        if (other->config == line->config && other->extra == line->extra && other->formula == NULL)
            return 1;
    return 0;
}

/* An event that has a rate; one with a mask, if there is one and it is to have one. */
static const struct text_line *draw_event(uint64_t *seed, int with_mask)
{
    for (int tried = 0;; tried++) {
        const struct text_line *line = &lines[next_random(seed) % all];
        char base[80];
        unsigned mask;
        if (line->formula || !isfinite(line->rate) || line->config == 0 || !isupper((unsigned char)line->name[0]) || is_renamed(line))
            continue;
        const int has_mask = is_masked(line, base, &mask);
        if (has_mask || (strchr(line->name, ':') == NULL && (!with_mask || tried > 10000)))
            return line;
    }
}

/* An event in perf's words: by its name, with a mask as a term, raw, or as this file describes it. */
static void in_perf_words(const struct text_line *line, uint64_t how, char out[120], FILE *file)
{
    char base[80];
    unsigned mask;
    if (is_masked(line, base, &mask)) {
        snprintf(out, 120, "cpu@%s\\\\,cmask\\\\=%u@", base, mask);
    } else if (how % 3 == 0 && line->extra == 0 && line->rate != 1 && line->config >> 32 == 0) {
        snprintf(out, 120, "r%" PRIx64, line->config);
    } else if (how % 3 == 1 && line->rate != 1 && line->config >> 32 == 0) {
        snprintf(out, 120, "FILE.%s", line->name);
        fprintf(file,
                ",\n {\"EventName\": \"%s\", \"EventCode\": \"0x%x\", \"UMask\": \"0x%x\", \"CounterMask\": \"%u\", \"Invert\": \"%u\",\n"
                "  \"EdgeDetect\": \"%u\", \"MSRIndex\": \"%s\", \"MSRValue\": \"0x%" PRIx64 "\", \"Counter\": \"0,1,2,3\"}",
                out, (unsigned)line->config & 0xff, (unsigned)(line->config >> 8) & 0xff, (unsigned)(line->config >> 24) & 0xff,
                (unsigned)(line->config >> 23) & 1, (unsigned)(line->config >> 18) & 1, line->extra ? "0x1a6,0x1a7" : "0x00", line->extra);
    } else {
        snprintf(out, 120, "%s", line->name);
        for (char *c = out; how % 2 && *c; c++)
            *c = (char)tolower((unsigned char)*c);
    }
}

/* Writes a metric with random events, in this file of perf's format or of Intel's. */
static void write_metric(uint64_t *seed, size_t shape, FILE *file, int is_intel, int is_first)
{
    struct metric *metric = &metrics[all_metrics++];
    char words[OPERANDS][120], names[OPERANDS][120], text[2000];
    uint64_t how[OPERANDS];
    const struct text_line *events[OPERANDS];
    snprintf(metric->name, sizeof metric->name, "%s_%zu_of_shape_%zu", is_intel ? "intel" : "perf", all_metrics, shape);
    metric->is_rate = shape == RATE;
    for (int k = 0; k < OPERANDS; k++) {
        events[k] = draw_event(seed, k == 0 && !is_intel);
        how[k] = next_random(seed);
        snprintf(names[k], sizeof names[k], "%s", events[k]->name);
        snprintf(words[k], sizeof words[k], "%s", ALIASES[k]);
    }
    put_in(metric->judge, sizeof metric->judge, SHAPES[shape][1], names);
    fprintf(file, "%s", is_first ? "" : ",\n");
    if (is_intel) {
        fprintf(file, " {\"MetricName\": \"%s\", \"LegacyName\": \"metric_x\", \"UnitOfMeasure\": \"per event\", \"Events\": [", metric->name);
        for (int k = 0; k < OPERANDS; k++)
            fprintf(file, "%s{\"Name\": \"%s\", \"Alias\": \"%s\"}", k ? ", " : "", names[k], ALIASES[k]);
        put_in(text, sizeof text, SHAPES[shape][0], words);
        fprintf(file, "],\n  \"Constants\": [], \"Formula\": \"%s\"}", text);
        return;
    }
    FILE *others = tmpfile();
    CHECK(others != NULL);
    for (int k = 0; k < OPERANDS; k++)
        in_perf_words(events[k], how[k], words[k], others);
    put_in(text, sizeof text, SHAPES[shape][0], words);
    fprintf(file, " {\"MetricName\": \"%s\", \"MetricExpr\": \"%s\", \"ScaleUnit\": \"1per_event\"}", metric->name, text);
    rewind(others);
    for (int c; (c = fgetc(others)) != EOF;)
        fputc(c, file);
    fclose(others);
}

static const char *built_in_ipc(void)
{
    return line_of("info_thread_ipc") ? "info_thread_ipc" : "info_core_ipc";
}

/* Both files. */
static void write_files(uint64_t seed)
{
    FILE *intel = fopen(in_scratch("intel.json"), "w"), *perf = fopen(in_scratch("perf.json"), "w");
    CHECK(intel != NULL && perf != NULL);
    fprintf(intel, "{\"Header\": {\"Version\": \"1\"}, \"Metrics\": [\n");
    fprintf(perf, "[\n");
    for (size_t k = 0; k < EACH; k++) {
        write_metric(&seed, next_random(&seed) % OF_PERF, intel, 1, k == 0);
        write_metric(&seed, k < 2 ? OF_PERF + k : next_random(&seed) % OF_PERF, perf, 0, k == 0);
    }
    /* what takes others, and what cannot be counted */
    struct metric *sum = &metrics[all_metrics++];
    snprintf(sum->name, sizeof sum->name, "perf_sum");
    snprintf(sum->judge, sizeof sum->judge, "( %.400s ) + 2 * ( %.400s )", metrics[0].judge, metrics[5].judge);
    fprintf(perf, ",\n {\"MetricName\": \"perf_sum\", \"MetricExpr\": \"%s + 2 * %s\"}", metrics[0].name, metrics[5].name);
    /* (in the place of a built-in one, and of an event of the kernel's) */
    snprintf(metrics[all_metrics].name, sizeof metrics[0].name, "tma_%s", built_in_ipc());
    snprintf(metrics[all_metrics].judge, sizeof metrics[0].judge, "2");
    fprintf(perf, ",\n {\"MetricName\": \"%s\", \"MetricExpr\": \"2 * INST_RETIRED.ANY / cpu\\\\-cycles\"}", metrics[all_metrics++].name);
    fprintf(perf, ",\n {\"MetricName\": \"perf_uncore\", \"MetricExpr\": \"UNC_CHA_CLOCKTICKS / 2\"}");
    fprintf(perf, ",\n {\"MetricName\": \"perf_kernel\", \"MetricExpr\": \"INST_RETIRED.ANY:k / 2\"}\n]\n");
    fprintf(intel, "\n]}\n");
    CHECK(fclose(intel) == 0 && fclose(perf) == 0);
}

static void not_told(const char *name, const char *why)
{
    char key[160];
    double ends[3];
    snprintf(key, sizeof key, "\"name\": \"%s\"", name);
    const char *one = strstr(report, key);
    CHECK(one != NULL && !figure(name, ends));
    const char *reason = strstr(one, "\"why\": \"");
    if (reason == NULL || strstr(reason, why) == NULL || strstr(reason, why) > strchr(reason, '\n'))
        FAIL("%s: %.300s", name, one);
}

static void write_text(const char *name, const char *text)
{
    FILE *file = fopen(in_scratch(name), "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

int main(int argc, char **argv)
{
    find_text();
    const int is_program = argc > 2 && strcmp(argv[1], "work") == 0;
    const uint64_t seed = is_program ? strtoull(argv[2], NULL, 0) : seed_of(argc, argv);
    if (is_program) {
        draw_rates(seed, 1);
        phases(seed, 1);
        return 0;
    }
    stat_begins();
    find_rates();
    draw_rates(seed, 0); /* (which events have a rate) */
    phases(seed, 0);
    write_files(seed);
    fprintf(stderr, "seed %llu, %u slots, time-stamp counter %.3f GHz\n", (unsigned long long)seed, width, tsc_ghz);
    char files[2 * PATH_MAX];
    snprintf(files, sizeof files, "%s,ipc,%s", in_scratch("intel.json"), in_scratch("perf.json"));
    run_under_stat(seed, files);
    unsigned compared = 0, wrong = 0;
    for (const struct metric *metric = metrics; metric < metrics + all_metrics; metric++) {
        double ends[3];
        const double truth = formula(metric->judge);
        if (!figure(metric->name, ends)) {
            fprintf(stderr, "%s is %f, and not told\n", metric->name, truth);
            continue;
        }
        CHECK(isfinite(truth));
        compared++;
        wrong += !is_right(metric->name, truth, metric->is_rate, ends);
    }
    double ends[3];
    char replaced[80];
    snprintf(replaced, sizeof replaced, "not as they are built in: %s\n", built_in_ipc());
    CHECK(!figure(built_in_ipc(), ends) && strstr(stat_said(), replaced));
    CHECK(figure("info_thread_cpi", ends) || figure("info_core_cpi", ends));
    CHECK(compared >= all_metrics / 2);
    CHECK_EQ(wrong, 0);
    not_told("perf_uncore", "UNC_CHA_CLOCKTICKS is an uncore event");
    not_told("perf_kernel", "user and kernel mode are not counted apart");
    write_text("broken.json", "[\n {\"MetricName\": \"a\", \"MetricExpr\": \"b\"},\n {]\n");
    refused(in_scratch("broken.json"), "broken.json: it is not JSON: key must be a string at line 3");
    write_text("uncore.json", "[{\"MetricName\": \"a\", \"MetricExpr\": \"UNC_B / 2\"}]");
    refused(in_scratch("uncore.json"), "uncore.json: none of its 1 metrics can be counted on this CPU: name a file for it; of a: UNC_B is an uncore event");
    refused("/nowhere/metrics.json", "/nowhere/metrics.json: No such file");
    write_text("slots.json", "[{\"MetricName\": \"a\", \"MetricExpr\": \"2 / duration_time\"}]");
    refused(in_scratch("slots.json"), "none of these figures takes an event");
    return 0;
}
