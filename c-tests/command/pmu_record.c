/* `topdown record` tells of each function of a program how its slots divide and how much of the time it has, as an ordinary user: the
 * truth is within the interval of each share, and within a point of those of a tenth of the time, in functions from 1,000 instructions
 * up; in threads, in children, after an exec, with sleeps: the first of these programs; pmu_record all. So it is where the kernel
 * throttles samples, and until the program or the recorder is killed; the one does not harm the other, and what a killed recorder has seen
 * is in a file beside.
 * pmu_record FUNCTIONS LENGTH MILLIONS SHAPE GAP: one program alone; pmu_record all: all of them.
 * needs: counters, not-hybrid */
#include "lib/stat.h"
#include "lib/functions.h"
#include "lib/profile.h"
#include <sys/stat.h>

/* `all`: each of its functions ran for long enough to be told. */
static void record(char *const *program, const char *gap, int all)
{
    static struct csv csv;
    char *const arguments[] = {"--budget=50", "--gap", strdup(gap), program[0], program[1], program[2], program[3], program[4], in_scratch("out"), NULL};
    CHECK_EQ(run_under("record", "-F2000", arguments), 0);
    CHECK_EQ(strlen(stat_said()), 0);
    csv_read(&csv, in_scratch("r.csv"));
    FILE *spent = fopen(in_scratch("out"), "r");
    CHECK(spent != NULL);
    const int functions = atoi(program[1]);
    int told = 0, much = 0;
    double worst = 0, within = 0;
    for (int k = 0; k < functions; k++) {
        char name[16];
        double part;
        CHECK_EQ(fscanf(spent, "%lf", &part), 1);
        part /= 1e6;
        snprintf(name, sizeof name, "f%d", k);
        const int row = row_of(&csv, name, "own");
        CHECK(row > 0 || part < 0.01 || !all);
        if (row == 0)
            continue;
        const struct truth truth = truth_of(mix_of_function((unsigned)k));
        const int shares = shares_are_true(&csv, row, &truth, part >= 0.1, &worst);
        told += shares > 0;
        much += part >= 0.1 && shares > 0;
        /* (95 % intervals of many functions: twice as wide, hardly one in ten thousand has the truth outside) */
        const double time = number(&csv, row, "time", ""), low = number(&csv, row, "time", "_low"), high = number(&csv, row, "time", "_high");
        CHECK(part >= time - 2 * (time - low) && part <= time + 2 * (high - time));
        const double wide = number(&csv, row, NODES[0], "_high") - number(&csv, row, NODES[0], "");
        within = wide > within ? wide : within;
        CHECK(row_of(&csv, name, "inclusive") > 0);
    }
    fclose(spent);
    free(csv.text);
    fprintf(stderr, "%s functions of %s instructions, %s: %d told, worst share %.2f points off, the widest interval of retiring ±%.2f\n",
            program[1], program[2], program[4], told, 100 * worst, 100 * within);
    CHECK(told > 0 && (!all || (told == functions && (functions > 8 || much >= 2))));
}

/* ---- Throttling ---- */

#define MAX_SAMPLE_RATE "/proc/sys/kernel/perf_event_max_sample_rate"

static void set(const char *path, const char *value)
{
    FILE *const file = fopen(path, "w");
    CHECK(file != NULL && fputs(value, file) >= 0 && fclose(file) == 0);
}

static void permit_samples(const char *rate) { set(MAX_SAMPLE_RATE, rate); }
static void permit_all(void) { permit_samples("100000\n"); }

/* The kernel lowers the limit itself where interrupts take long, as they do on an emulated machine that shares its CPUs; or not. */
#define CPU_TIME_MAX_PERCENT "/proc/sys/kernel/perf_cpu_time_max_percent"
static void kernel_lowers(void) { set(CPU_TIME_MAX_PERCENT, "25\n"); }
static void kernel_never_lowers(void)
{
    if (geteuid() == 0)
        set(CPU_TIME_MAX_PERCENT, "0\n"), atexit(kernel_lowers);
}

/* Linux up to 6.15 stops only the event that samples: what the others count until the next tick is no window. The limit is lowered
 * while bursts are under way, before topdown looks at it again. */
static void throttled(void)
{
    if (geteuid() != 0)
        return;
    atexit(permit_all);
    const pid_t child = fork();
    if (child == 0) {
        usleep(300000); /* (by then some functions can be told) */
        permit_samples("1000\n");
        _exit(0);
    }
    char *const program[] = {beside("lib/functions"), "4", "20000", "600", "plain", NULL};
    record(program, "300", 0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    permit_all();
}

/* ---- Who is killed harms nobody ---- */

static pid_t begin(char *const *arguments)
{
    const pid_t child = fork();
    if (child == 0) {
        CHECK(geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0));
        execv(arguments[0], arguments);
        _exit(126);
    }
    return child;
}

/* A signal for a recorder of a running program, which goes on to its end. How the recorder ended, and where it kept what it saw. */
static int recorder_meets(int signal, char kept[300])
{
    char pid[16];
    unlink(in_scratch("r.csv"));
    const pid_t program = begin((char *[]){beside("lib/functions"), "4", "20000", "400", "plain", in_scratch("out"), NULL});
    snprintf(pid, sizeof pid, "%d", program);
    const pid_t recorder =
        begin((char *[]){beside("../release/topdown"), "record", "--budget=50", "-F2000", "-o", in_scratch("r.csv"), "-p", pid, NULL});
    snprintf(kept, 300, "%s.%d.recording", in_scratch("r.csv"), recorder);
    struct stat about = {0}; /* (a burst takes 200 bytes) */
    while (stat(kept, &about) != 0 || about.st_size < 100 * 200)
        CHECK(kill(program, 0) == 0 && waitpid(recorder, NULL, WNOHANG) == 0 && usleep(1000) == 0);
    int status, ended;
    CHECK(kill(recorder, signal) == 0 && waitpid(recorder, &ended, 0) == recorder);
    CHECK(waitpid(program, &status, 0) == program && status == 0);
    return ended;
}

static void killed(void)
{
    static struct csv csv;
    char kept[300];
    kernel_never_lowers();
    CHECK_EQ(recorder_meets(SIGTERM, kept), 0);
    CHECK(access(kept, F_OK) != 0);
    csv_read(&csv, in_scratch("r.csv"));
    CHECK(row_of(&csv, "f0", "own") > 0 && number(&csv, 1, "time_ns", "") >= 1e7);
    free(csv.text);
    const int ended = recorder_meets(SIGKILL, kept);
    CHECK(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL && access(in_scratch("r.csv"), F_OK) != 0);
    char *const again[] = {"--from", kept, NULL};
    CHECK_EQ(run_under("record", "", again), 0);
    csv_read(&csv, in_scratch("r.csv"));
    CHECK(row_of(&csv, "f0", "own") > 0 && number(&csv, 1, "time_ns", "") >= 1e7);
    free(csv.text);
    unlink(kept);
    char *const program[] = {"--budget=50", "/usr/bin/timeout", "-s", "KILL", "0.1", beside("lib/functions"), "4", "20000", "4000",
                             "plain", in_scratch("out"), NULL};
    CHECK(run_under("record", "-F2000", program) != 0);
    csv_read(&csv, in_scratch("r.csv"));
    CHECK(row_of(&csv, "f0", "own") > 0 && number(&csv, 1, "time_ns", "") >= 1e7);
    free(csv.text);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *functions, *length, *millions, *shape, *gap;
    } programs[] = {
        {"4", "1000", "200", "plain", "300"},  {"8", "10000", "200", "threads", "300"},  {"4", "50000", "150", "children", "1000"},
        {"4", "1000000", "150", "late", "1000"}, {"16", "20000", "300", "plain", "1000"}, {"5", "20000", "100", "sleeps", "500"},
    };
    /* (the gap is such that hardly any window has a whole run of a function in it: in so few windows one of those would be points) */
    stat_begins();
    char *const program = beside("lib/functions");
    if (argc == 6) {
        char *const one[] = {program, argv[1], argv[2], argv[3], argv[4], NULL};
        record(one, argv[5], 1);
        return 0;
    }
    enum { PROGRAMS = sizeof programs / sizeof *programs };
    const int all = argc == 2 && strcmp(argv[1], "all") == 0;
    /* (in runs as short as those of the others it is chance how many functions can be told of) */
    for (size_t k = 0; k < (all ? PROGRAMS : 1); k++) {
        const size_t n = k % PROGRAMS;
        char *const one[] = {program, strdup(programs[n].functions), strdup(programs[n].length), strdup(programs[n].millions),
                             strdup(programs[n].shape), NULL};
        record(one, programs[n].gap, 1);
    }
    throttled();
    killed();
    return 0;
}
