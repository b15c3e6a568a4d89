/* `topdown record --drill` finds the leaf that a program was given, and then, while it goes on, which functions have it: of two functions in
 * which its event happens at known rates each has its part of it; of a program of two leaves each leaf is in its own function. So it is of
 * threads, of a process that runs already, and of CPUs. A program that ends before is told what it has, and that nothing was sampled.
 * No arguments.
 * needs: counters, not-hybrid */
#include "lib/plants.h"
#include "lib/functions.h"
#include "lib/profile.h"
#include "coverage.h"
#include <pthread.h>

/* What locates pauses; and switches to the legacy decoders, FRONTEND_RETIRED with this value of its register, of which there are so many in
 * 65,536 instructions of each function. */
enum { PAUSE_INST = 0x10440ec, DSB_MISS = 0x11, MUCH = 3000, LESS = 1000 };
enum { TURNS = 100000 };
/* Retire latencies of these in each function, in hundredths of a cycle. */
static const uint64_t LATENCIES[] = {1234, 5725};

FUNCTION(much)
FUNCTION(less)

static struct plant both[2];
static int is_of_two_leaves;
static double seconds;

static const struct plant *plant_of(const char *leaf)
{
    for (const struct plant *plant = PLANTS; plant < PLANTS + sizeof PLANTS / sizeof PLANTS[0]; plant++)
        if (strcmp(plant->leaf, leaf) == 0)
            return plant;
    FAIL("no plant has %s", leaf);
}

static void *works(void *none)
{
    for (int k = 0; k < 2; k++) {
        uint64_t frontend = 0;
        sow(&both[k]);
        if (is_of_two_leaves && k == 0)
            CHECK(vm_rate_set(PAUSE_INST, 65536, VM_PER_INSTRUCTION));
        else
            CHECK(config_of("FRONTEND_RETIRED.DSB_MISS", &frontend) &&
                  vm_rate_set_extra(frontend, DSB_MISS, k && !is_of_two_leaves ? LESS : MUCH, VM_PER_INSTRUCTION));
        if (!is_of_two_leaves)
            CHECK(vm_latency_set_extra(frontend, DSB_MISS, LATENCIES[k], VM_PER_INSTRUCTION));
    }
    for (const double end = seconds_now() + seconds; seconds_now() < end;) {
        vm_mix_set(both[0].mix, 0, 0, 0);
        much(TURNS);
        vm_mix_set(both[1].mix, 0, 0, 0);
        less(TURNS);
    }
    return none;
}

/* The program: for so many milliseconds, on so many threads. */
static int program(char **argv)
{
    is_of_two_leaves = strcmp(argv[2], "leaves") == 0;
    seconds = atoi(argv[3]) / 1000.0;
    both[0] = *plant_of(is_of_two_leaves ? "slow_pause" : "dsb_switches");
    both[1] = *plant_of("dsb_switches");
    both[1].mix.retiring += 2; /* (another mix has rates of its own) */
    pthread_t other;
    if (strcmp(argv[4], "threads") == 0)
        CHECK_EQ(pthread_create(&other, NULL, works, NULL), 0);
    works(NULL);
    if (strcmp(argv[4], "threads") == 0)
        CHECK_EQ(pthread_join(other, NULL), 0);
    return 0;
}

static const char *report;

/* Runs `topdown record --drill` with these options on the program, and reads what it has written. */
static void drilled(const char *leaves, const char *ms, const char *how, char *option, const char *file)
{
    char *all[16] = {beside("../release/topdown"), strdup("record"), strdup("--drill"), strdup("-o"), in_scratch(file)};
    int n = 5;
    if (option)
        all[n++] = option;
    char *const command[] = {strdup("--"), strdup(own_path()), strdup("program"), strdup(leaves), strdup(ms), strdup(how), NULL};
    for (size_t k = 0; k < sizeof command / sizeof command[0]; k++)
        all[n++] = command[k];
    CHECK_EQ(run_alone(all), 0);
    report = text_in(file);
    CHECK_EQ(unlink(in_scratch(file)), 0);
}

/* A number of the function's own part of what locates the node; NaN: it is not listed. */
static double part(const char *node, const char *function, const char *end)
{
    char text[96];
    snprintf(text, sizeof text, "\"node\": \"%s\"", node);
    const char *const all = strstr(report, "\"located\":[");
    const char *const its = all ? strstr(all, text) : NULL;
    if (its == NULL)
        FAIL("%s was not located:\n%s", node, report);
    const char *const next = strstr(its, "\"format\": ");
    snprintf(text, sizeof text, "\"name\": \"%s\",", function);
    const char *one = strstr(its, text);
    if (one == NULL || (next && one > next))
        return NAN;
    snprintf(text, sizeof text, "\"%s\": ", end);
    CHECK((one = strstr(one, "\"part\": ")) && (one = strstr(one, text)));
    return strtod(one + strlen(text), NULL);
}

/* Of a node's events these functions have such a part each. */
static void parts_are(const char *node, const char *how, double of_much)
{
    const char *const names[] = {"much", "less"};
    for (int k = 0; k < 2; k++) {
        const double truth = k ? 1 - of_much : of_much, low = part(node, names[k], "low"), high = part(node, names[k], "high");
        fprintf(stderr, "%s, %s: %s has %.3f (%.3f to %.3f)\n", node, how, names[k], part(node, names[k], "value"), low, high);
        if (isnan(low) && truth == 0)
            continue;
        if (truth > 0.5) /* (the other has the rest) */
            lies_within(node, part(node, names[k], "value"), low, high, truth);
        if (!(high - low < 0.3))
            FAIL("%s", strstr(report, "\"located\":["));
    }
}

/* Each function and its line have the retire latency of their instructions, where the CPU tells it. */
static void latencies_are_true(const char *node, int are_told)
{
    const char *const names[] = {"much", "less"};
    for (int k = 0; k < 2; k++)
        for (int of_line = 0; of_line < 2; of_line++) {
            char text[96];
            snprintf(text, sizeof text, "\"node\": \"%s\"", node);
            const char *one = strstr(strstr(report, "\"located\":["), text);
            snprintf(text, sizeof text, "\"name\": \"%s\",", names[k]);
            CHECK(one && (one = strstr(one, text)));
            const char *const next = strstr(one + 1, "\"name\": ");
            one = of_line ? strstr(one, "\"lines\": ") : one;
            one = one ? strstr(one, "\"retire_latency\": ") : NULL;
            if (!are_told) {
                CHECK(one == NULL);
                continue;
            }
            double value, low, high;
            CHECK(one && (next == NULL || one < next));
            CHECK_EQ(sscanf(one, "\"retire_latency\": { \"value\": %lf, \"low\": %lf, \"high\": %lf", &value, &low, &high), 3);
            fprintf(stderr, "%s%s: %.2f cycles (%.2f to %.2f)\n", names[k], of_line ? ", its line" : "", value, low, high);
            /* (95 % intervals, as above) */
            CHECK(fabs(LATENCIES[k] / 100.0 - (low + high) / 2) <= high - low);
            CHECK(high - low < 3);
        }
}

/* Whether the node was found, at what share. */
static void is_found(const char *node)
{
    char name[64];
    snprintf(name, sizeof name, "\"node\": \"tma_%s\"", node);
    const char *const findings = strstr(report, "\"findings\"");
    if (findings == NULL || strstr(findings, name) == NULL)
        FAIL("%s was not found:\n%s", node, report);
}

int main(int argc, char **argv)
{
    if (read_events() != 6)
        SKIP("level 2 of this core follows from events that no plant sets yet");
    if (argc > 4 && strcmp(argv[1], "program") == 0)
        return program(argv);
    stat_begins();
    kernel_never_lowers();
    drilled("leaves", "6000", "threads", NULL, "r.json");
    is_found("slow_pause");
    is_found("dsb_switches");
    parts_are("slow_pause", "of two leaves", 1);
    parts_are("dsb_switches", "of two leaves", 0);
    /* one that ends before anything is certain */
    drilled("leaf", "300", "alone", NULL, "r.txt");
    fprintf(stderr, "%s", report);
    CHECK(strstr(report, "Nothing was sampled: ") != NULL && strstr(report, "frontend bound") != NULL);
    if (in_gate())
        return 0;
    drilled("leaf", "5000", "alone", NULL, "r.json");
    is_found("dsb_switches");
    parts_are("dsb_switches", "alone", 0.75);
    const int are_told = of_cpuinfo("model : %u") == 173; /* (Granite Rapids) */
    latencies_are_true("dsb_switches", are_told);
    set_until_end("/proc/sys/kernel/perf_event_paranoid", "-1\n");
    drilled("leaf", "5000", "alone", strdup("-a"), "r.json");
    parts_are("dsb_switches", "of CPUs", 0.75);
    /* a process that runs already */
    char pid[16];
    const pid_t child = fork();
    if (child == 0) {
        /* (run_alone has what it runs be nobody's) */
        CHECK(geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0));
        execl(own_path(), own_path(), "program", "leaf", "6000", "alone", NULL);
        _exit(126);
    }
    snprintf(pid, sizeof pid, "%d", child);
    char *const others[] = {beside("../release/topdown"), strdup("record"), strdup("--drill"), strdup("-o"), in_scratch("r.json"),
                            strdup("-p"), pid, NULL};
    if (run_alone(others) != 0)
        FAIL("%s", stat_said());
    CHECK_EQ(waitpid(child, NULL, 0), child);
    report = text_in("r.json");
    parts_are("dsb_switches", "of a process", 0.75);
    drilled("leaf", "4000", "alone", NULL, "r.txt");
    fprintf(stderr, "%s", report);
    CHECK(strstr(report, "to locate dsb_switches") != NULL && (strstr(report, "retire latency, cycles") != NULL) == are_told);
    return 0;
}
