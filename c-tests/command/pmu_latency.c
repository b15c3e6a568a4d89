/* Retire latencies: what `topdown stat --record-tpebs` tells of events is their mean latency, within a tenth of a cycle and within its own
 * interval, and nodes that follow from latencies are what their published formulas say of these and of the rates at which the program's
 * events truly happen. By published constants (--tpebs-mode) they have no bound. Without it such a node is refused with the option's name. Arguments: the seed.
 * needs: counters, explore */
#include "lib/formulas.h"

enum { MOST_NODES = 8, MOST_EVENTS = 40 };

static struct text_line *timed[MOST_EVENTS];
static int all_timed;

/* `topdown stat` with these, of a program with the rates that runs so many milliseconds; its exit status. */
static int stat_of(const char *const *options, const char *milliseconds)
{
    char *command[24];
    int count = 0;
    command[count++] = beside("../release/topdown");
    command[count++] = strdup("stat");
    for (; *options; options++)
        command[count++] = strdup(*options);
    for (const char *const *more = (const char *const[]){"-o", in_scratch("r.json"), access("/sys/devices/cpu_core", F_OK) ? NULL : "-C0", NULL}; *more; more++)
        command[count++] = strdup(*more);
    for (const char *const *program = (const char *const[]){own_path(), in_scratch("rates"), milliseconds, NULL}; *program; program++)
        command[count++] = strdup(*program);
    command[count] = NULL;
    const int status = run_alone(command);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void read_report(void)
{
    FILE *file = fopen(in_scratch("r.json"), "r");
    CHECK(file != NULL);
    report[fread(report, 1, sizeof report - 1, file)] = 0;
    fclose(file);
}

/* A companion figure: its value and the ends of its interval (no upper one: infinite). 0: it was not measured. */
static int figure_of(const char *name, double of[3])
{
    char key[128];
    snprintf(key, sizeof key, "\"name\": \"%s\"", name);
    const char *figure = strstr(report, key);
    if (figure == NULL || sscanf(strstr(figure, "\"value\": "), "\"value\": %lf", &of[0]) != 1)
        return 0;
    if (sscanf(strstr(figure, "\"low\": "), "\"low\": %lf", &of[1]) != 1)
        of[1] = 0;
    if (sscanf(strstr(figure, "\"high\": "), "\"high\": %lf", &of[2]) != 1)
        of[2] = INFINITY;
    return 1;
}

/* Compares the nodes that take latencies; how many. */
static int nodes_are_true(void)
{
    int compared = 0, wrong = 0;
    for (const struct text_line *node = lines; node < lines + all; node++) {
        double share[3];
        if (node->formula == NULL || node->unit[0] == 0 || node->is_metric || !strstr(node->formula, OF_LATENCY) || !told(node->name, share))
            continue;
        double truth = formula(node->formula);
        if (!isfinite(truth))
            continue; /* (what the rates do not tell) */
        truth = truth < 0 ? 0 : truth > 1 ? 1 : truth;
        const int is_off = share[1] > truth || truth > share[2];
        compared++;
        wrong += is_off;
        fprintf(stderr, "%s%s: %f, between %f and %f; is %f\n", is_off ? "WRONG " : "", node->name, share[0], share[1], share[2], truth);
    }
    CHECK_EQ(wrong, 0);
    return compared;
}

static int latencies_are_true(void)
{
    int compared = 0, wrong = 0;
    for (int k = 0; k < all_timed; k++) {
        char name[100];
        double of[3];
        snprintf(name, sizeof name, "%s:R", timed[k]->name);
        if (!figure_of(name, of))
            continue;
        const int is_off = fabs(of[0] - timed[k]->latency) > 0.1 || of[1] > timed[k]->latency || of[2] < timed[k]->latency;
        compared++;
        wrong += is_off;
        fprintf(stderr, "%s%s: %.3f, between %.3f and %.3f; is %.3f\n", is_off ? "WRONG " : "", name, of[0], of[1], of[2], timed[k]->latency);
    }
    CHECK_EQ(wrong, 0);
    return compared;
}

/* For the program. */
static void rates_are_kept(void)
{
    FILE *file = fopen(in_scratch("rates"), "w");
    CHECK(file != NULL && fwrite(lines, sizeof lines[0], all, file) == all && fclose(file) == 0);
}

/* A latency that the field of a sample does not hold may be of any length. */
static void saturated_is_told(struct text_line *event)
{
    char metric[100];
    double of[3];
    const double latency = event->latency;
    snprintf(metric, sizeof metric, "%s:R", event->name);
    event->latency = 65535;
    rates_are_kept();
    if (stat_of((const char *const[]){"--metrics", metric, NULL}, "2000") != 0)
        FAIL("%s", stat_said());
    read_report();
    CHECK(figure_of(metric, of));
    fprintf(stderr, "%s: %f, %f to %f\n", metric, of[0], of[1], of[2]);
    CHECK(of[0] > latency && of[0] <= 65535 && of[1] <= of[0] && isinf(of[2]));
    event->latency = latency;
    rates_are_kept();
}

/* Constants stand for latencies where that is asked for: they are those of the text, and what follows from them has no bound. */
static void constants_have_no_bound(const char *nodes, const char *metrics, int wanted)
{
    int compared = 0, has_constants = 0;
    for (int k = 0; k < all_timed; k++)
        has_constants |= timed[k]->published > 0;
    const int status = stat_of((const char *const[]){"--tpebs-mode", "published", "--nodes", nodes, "--metrics", metrics, NULL}, "4000");
    CHECK_EQ(status, has_constants ? 0 : 125);
    if (!has_constants) {
        CHECK(strstr(stat_said(), "no retire latencies are published for this CPU") != NULL);
        return;
    }
    read_report();
    CHECK(strstr(report, "retire latencies are constants that Intel has published of one machine, not measured here") != NULL);
    for (int k = 0; k < all_timed; k++) {
        char name[100];
        double of[3];
        snprintf(name, sizeof name, "%s:R", timed[k]->name);
        if (!figure_of(name, of))
            continue;
        fprintf(stderr, "%s: %.6f, is %.2f\n", name, of[0], timed[k]->published);
        CHECK_EQ((long long)(of[0] * 100 + 0.5), (long long)(timed[k]->published * 100 + 0.5));
        CHECK(of[1] == 0 && isinf(of[2]));
        compared++;
    }
    CHECK(compared > 0);
    for (const struct text_line *node = lines; node < lines + all; node++) {
        double share[3];
        if (node->formula == NULL || node->unit[0] == 0 || node->is_metric || !strstr(node->formula, OF_LATENCY) || !told(node->name, share))
            continue;
        fprintf(stderr, "%s: %f, between %f and %f\n", node->name, share[0], share[1], share[2]);
        CHECK(share[0] >= 0 && share[1] == 0 && share[2] == 1);
        wanted--;
    }
    CHECK_EQ(wanted, 0);
}

int main(int argc, char **argv)
{
    /* (of a hybrid CPU its first one, a P-core, is counted, and nothing else runs there than the program) */
    const int is_hybrid = access("/sys/devices/cpu_core", F_OK) == 0;
    if (is_hybrid)
        move_to(0, 0);
    if (argc > 2) { /* the program, which does nothing but that work */
        FILE *file = fopen(argv[1], "r");
        CHECK(file != NULL);
        all = fread(lines, sizeof lines[0], sizeof lines / sizeof lines[0], file);
        fclose(file);
        set_rates();
        for (const double end = seconds_of(CLOCK_MONOTONIC) + atof(argv[2]) / 1000; seconds_of(CLOCK_MONOTONIC) < end;)
            work(100000);
        return 0;
    }
    find_text();
    const uint64_t seed = seed_of(argc, argv);
    stat_begins();
    char nodes[1024] = "", metrics[1024] = "";
    for (struct text_line *line = lines; line < lines + all && all_timed < MOST_EVENTS; line++)
        if (takes_latency(line->name))
            timed[all_timed++] = line;
    if (all_timed == 0) {
        CHECK_EQ(stat_of((const char *const[]){"--record-tpebs", NULL}, "1"), 125);
        CHECK(strstr(stat_said(), "no node of this CPU's tree follows from retire latencies") != NULL);
        return 0;
    }
    find_rates();
    if (is_hybrid)
        move_to(0, (int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
    draw_rates(seed, 0);
    cycles = 1e9;
    for (int k = 0; k < all_timed; k++) { /* (seldom and short enough that nodes are not all of the cycles) */
        timed[k]->per65536 /= 8;
        timed[k]->rate = (double)timed[k]->per65536 / 65536;
        timed[k]->latency = floor(timed[k]->latency * 100 / 8) / 100;
    }
    rates_are_kept();
    /* one node after the other that is told so, from one that is drawn on */
    int wanted = 0;
    for (size_t k = 0, first = seed % all; k < all && wanted < 2; k++) {
        const struct text_line *node = &lines[(first + k) % all];
        if (node->formula == NULL || node->unit[0] == 0 || node->is_metric || !strstr(node->formula, OF_LATENCY))
            continue;
        CHECK_EQ(stat_of((const char *const[]){"--nodes", node->name, NULL}, "1"), 125);
        CHECK(strstr(stat_said(), "--record-tpebs samples it") != NULL);
        snprintf(nodes + strlen(nodes), sizeof nodes - strlen(nodes), "%s%s", wanted ? "," : "", node->name);
        wanted++;
    }
    CHECK_EQ(wanted, 2);
    const int events = in_gate() ? 2 : 4;
    for (int k = 0; k < events; k++)
        snprintf(metrics + strlen(metrics), sizeof metrics - strlen(metrics), "%s%s:R", k ? "," : "", timed[(seed + (uint64_t)k) % (uint64_t)all_timed]->name);
    fprintf(stderr, "seed %llu: %s; %s\n", (unsigned long long)seed, nodes, metrics);
    if (stat_of((const char *const[]){"--record-tpebs", "--nodes", nodes, "--metrics", metrics, NULL}, "4000") != 0)
        FAIL("%s", stat_said());
    read_report();
    CHECK_EQ(latencies_are_true(), events);
    CHECK_EQ(nodes_are_true(), wanted);
    constants_have_no_bound(nodes, metrics, wanted);
    if (in_gate())
        return 0;
    saturated_is_told(timed[seed % (uint64_t)all_timed]);
    if (stat_of((const char *const[]){"--record-tpebs", "--td-level", "6", NULL}, "20000") != 0)
        FAIL("%s", stat_said());
    read_report();
    CHECK(latencies_are_true() > all_timed / 2);
    CHECK(nodes_are_true() > 8);
    return 0;
}
