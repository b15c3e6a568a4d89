/* `topdown record --locate NODE` samples the event that the text of this CPU's tree names: of two functions in which it happens at known rates each
 * has its part of it, in threads, in processes that are started, and of a CPU; precisely where the CPU has PEBS. What is wrong is said
 * before the program runs. Arguments: the seed, and how many nodes are tried.
 * needs: counters */
#include "lib/stat.h"
#include "lib/functions.h"
#include "lib/profile.h"
#include "coverage.h"
#include <glob.h>
#include <inttypes.h>
#include <pthread.h>
#include "vm/mix.h"

/* A node, and the first event that locates it. */
struct located { char node[64], event[64]; uint64_t config, extra; };
static struct located nodes[200];
static size_t count;
static char without[64]; /* a node that no event locates alone */

/* Whether the line names this CPU. */
static int is_of(char *line, unsigned model, unsigned stepping)
{
    int is_there = 0;
    for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
        if (strcmp(word, "from") == 0)
            return is_there && stepping >= strtoul(strtok(NULL, " \n"), NULL, 0);
        is_there |= strncmp(word, "0x", 2) == 0 && strtoul(word, NULL, 0) == model;
    }
    return is_there;
}

/* Reads the nodes of this CPU's text, which the project's directory has. */
static void read_text(void)
{
    const unsigned model = of_cpuinfo("model : %u"), stepping = of_cpuinfo("stepping : %u");
    char line[4096], event[64], *sample;
    glob_t texts;
    CHECK_EQ(glob("cpus/deep/*.txt", 0, NULL, &texts), 0);
    for (size_t k = 0; k < texts.gl_pathc; k++) {
        FILE *const file = fopen(texts.gl_pathv[k], "r");
        int is_this = 0;
        struct located known[400];
        size_t events = 0;
        CHECK(file != NULL);
        while (fgets(line, sizeof line, file)) {
            if (strncmp(line, "cpu ", 4) == 0 && (is_this = is_of(line, model, stepping)))
                count = 0; /* (a later stepping has a text of its own) */
            if (!is_this)
                continue;
            struct located *const one = &known[events];
            if (sscanf(line, "event %63s %" SCNx64, one->event, &one->config) == 2 && strstr(line, " fixed") == NULL && events < 399) {
                const char *const extra = strstr(line, " extra ");
                one->extra = extra ? strtoull(extra + 7, NULL, 0) : 0;
                events++;
            }
            sample = strstr(line, ", sample ");
            const char *const below = strchr(line, '>');
            if (strncmp(line, "node ", 5) == 0 && below && sample == NULL)
                CHECK(sscanf(below, "> %63s", without) == 1);
            if (strncmp(line, "node ", 5) != 0 || sample == NULL || sscanf(sample, ", sample %63s", event) != 1)
                continue;
            for (size_t e = 0; e < events && count < 200; e++)
                if (strcmp(known[e].event, event) == 0) {
                    nodes[count] = known[e];
                    CHECK(sscanf(below ? below + 1 : line + 5, " %63s", nodes[count].node) == 1);
                    count++;
                }
        }
        fclose(file);
    }
    globfree(&texts);
}

FUNCTION(much)
FUNCTION(less)

/* The event happens so often in 65,536 instructions of each. */
enum { MUCH = 1500, LESS = 500, TURNS = 100000, ROUNDS = 400 };
/* As one program, or as so many of some milliseconds, each of which executes the next. */
enum { EXECS = 25 };
static int rounds = ROUNDS;
static const struct vm_mix OF_EACH[2] = {{12, 2, 4, 0, 12, 12, 2}, {14, 2, 4, 0, 12, 12, 2}};
static uint64_t config, extra;

static void *works(void *none)
{
    for (int k = 0; k < 2; k++) {
        vm_mix_set(OF_EACH[k], 0, 0, 0);
        const uint64_t rate = k ? LESS : MUCH;
        CHECK(extra ? vm_rate_set_extra(config, extra, rate, VM_PER_INSTRUCTION) : vm_rate_set(config, rate, VM_PER_INSTRUCTION));
    }
    for (int round = 0; round < rounds; round++) {
        vm_mix_set(OF_EACH[0], 0, 0, 0);
        much(TURNS);
        vm_mix_set(OF_EACH[1], 0, 0, 0);
        less(TURNS);
    }
    return none;
}

/* The program: on this thread, on a second one, too, or in a process of its own. */
static int program(char **argv)
{
    pthread_t other;
    const char *const how = argv[2];
    const int left = strncmp(how, "execs", 5) == 0 ? atoi(how + 5) : 0;
    if (left > 0)
        rounds = ROUNDS / EXECS;
    if (strcmp(how, "threads") == 0) {
        CHECK_EQ(pthread_create(&other, NULL, works, NULL), 0);
        works(NULL);
        CHECK_EQ(pthread_join(other, NULL), 0);
    } else if (strcmp(how, "started") == 0) {
        const pid_t child = fork();
        if (child == 0) {
            works(NULL);
            _exit(0);
        }
        CHECK_EQ(waitpid(child, NULL, 0), child);
    } else {
        works(NULL);
    }
    if (left > 1) {
        char again[32];
        snprintf(again, sizeof again, "execs%d", left - 1);
        argv[2] = again;
        execv(argv[0], argv);
    }
    return 0;
}

/* Runs the program so, recorded with these options, into this file. */
static int recorded(const struct located *one, const char *how, char *const *options, const char *file)
{
    char *all[24] = {beside("../release/topdown"), strdup("record"), strdup("-o"), in_scratch(file), strdup("--locate"), strdup(one->node)};
    int n = 6;
    while (*options)
        all[n++] = *options++;
    char number[2][32];
    snprintf(number[0], sizeof number[0], "%" PRIu64, one->config);
    snprintf(number[1], sizeof number[1], "%" PRIu64, one->extra);
    char *const command[] = {strdup("--"), strdup(own_path()), strdup("program"), strdup(how), strdup(number[0]), strdup(number[1])};
    for (size_t k = 0; k < sizeof command / sizeof command[0]; k++)
        all[n++] = command[k];
    return run_alone(all);
}

/* Each function has as many of the events as happened in it, as far as the interval of its part tells; in what is started as many for the other's,
 * since a thread is sampled once its counters are open. */
static void counts_are_true(const struct located *one, const char *how)
{
    static struct csv csv;
    csv_read(&csv, in_scratch("r.csv"));
    double events[2], error[2];
    for (int k = 0; k < 2; k++) {
        const int row = row_of(&csv, k ? "less" : "much", "own");
        CHECK(row > 0);
        events[k] = number(&csv, row, "events", "");
        const double width = number(&csv, row, "part", "_high") - number(&csv, row, "part", "_low");
        error[k] = width / number(&csv, row, "part", "");
        CHECK(width < 0.15);
        fprintf(stderr, "%s (%s), %s: %s has %.0f ± %.0f\n", one->node, one->event, how, k ? "less" : "much", events[k], error[k] / 2 * events[k]);
    }
    const int is_sampled_whole = strcmp(how, "threads") != 0 && strcmp(how, "started") != 0;
    if (is_sampled_whole)
        CHECK(fabs((LESS + MUCH) / 65536.0 * 2 * TURNS * ROUNDS / (events[0] + events[1]) - 1) <= error[0] / 2);
    const double ratio = (double)MUCH / LESS * events[1] / events[0], half = (error[0] + error[1]) / 2;
    lies_within(one->node, ratio, ratio - half, ratio + half, 1);
}

static void is_located(const struct located *one, const char *how, char *option)
{
    CHECK_EQ(recorded(one, how, (char *[]){strdup("--period"), strdup("2003"), option, NULL}, "r.csv"), 0);
    counts_are_true(one, how);
}

/* Said, and the program has not run. */
static void refused(const char *words, const char *const *options)
{
    char *all[16] = {beside("../release/topdown"), strdup("record")};
    int n = 2;
    while (*options)
        all[n++] = strdup(*options++);
    all[n++] = strdup("/bin/false");
    CHECK_EQ(WEXITSTATUS(run_alone(all)), 125);
    if (strstr(stat_said(), words) == NULL)
        FAIL("'%s' and not '%s'", stat_said(), words);
}

int main(int argc, char **argv)
{
    if (argc > 4 && strcmp(argv[1], "program") == 0) {
        config = strtoull(argv[3], NULL, 0);
        extra = strtoull(argv[4], NULL, 0);
        return program(argv);
    }
    stat_begins();
    read_text();
    if (count == 0) {
        refused("no tree with events that locate its nodes is published for this CPU", (const char *[]){"--locate", "l3_bound", NULL});
        return 0;
    }
    kernel_never_lowers();
    uint64_t seed = seed_of(argc, argv);
    fprintf(stderr, "seed %llu, %zu nodes\n", (unsigned long long)seed, count);
    const size_t first = next_random(&seed) % count, wanted = argc > 2 ? strtoul(argv[2], NULL, 0) : in_gate() ? 1 : 8;
    for (size_t k = 0; k < wanted; k++)
        is_located(&nodes[(first + k * 7) % count], "alone", NULL);
    /* one that an extra register chooses, of a CPU */
    size_t chosen = first;
    while (nodes[chosen].extra == 0)
        chosen = (chosen + 1) % count;
    set_until_end("/proc/sys/kernel/perf_event_paranoid", "-1\n");
    is_located(&nodes[chosen], "alone", strdup("-a"));
    const struct located *const one = &nodes[first];
    is_located(one, "threads", NULL);
    is_located(one, "started", NULL);
    is_located(one, "execs25", NULL);
    /* too few samples: it is said how to have more, and how precise they are */
    CHECK_EQ(recorded(one, "alone", (char *[]){strdup("--period"), strdup("1000003"), NULL}, "r.txt"), 0);
    const char *const said = text_in("r.txt");
    fprintf(stderr, "%s", said);
    CHECK(strstr(said, one->event) != NULL && strstr(said, "With --period ") != NULL);
    refused("is no node of this CPU's tree", (const char *[]){"--locate", "nowhere", NULL});
    refused("does not locate it", (const char *[]){"--locate", "l3_bound=cycles", NULL});
    if (*without) {
        struct located other = *one;
        snprintf(other.node, sizeof other.node, "%s", without);
        CHECK_EQ(recorded(&other, "alone", (char *[]){NULL}, "r.txt"), 0);
        CHECK(strstr(text_in("r.txt"), "No event locates the node alone") != NULL);
    }
    return 0;
}
