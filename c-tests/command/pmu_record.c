/* `topdown record` tells of each function of a program how its slots divide and how much of the time it has, as an ordinary user: the
 * truth is within the interval of each share, and within a point of those of a tenth of the time, in functions from 1,000 instructions
 * up; in threads, in children, after an exec, with sleeps: the first of these programs; pmu_record all. So it is where the kernel
 * throttles samples, and until the program or the recorder is killed; the one does not harm the other, and what a killed recorder has seen
 * is in a file beside. Where others hold general counters, it is the same by SLOTS and PERF_METRICS. What the kernel does is told if it is
 * asked for and permitted, by function if the kernel shows their addresses.
 * pmu_record FUNCTIONS LENGTH MILLIONS SHAPE GAP: one program alone; pmu_record all: all of them; pmu_record kernel: what the kernel
 * does alone. TOPDOWN_SOURCE is topdown's.
 * needs: counters, not-hybrid */
#include "lib/stat.h"
#include "lib/functions.h"
#include "lib/profile.h"
#include "competing.h"
#include <sys/stat.h>

/* Where the kernel's functions are. */
static const char *kernel_module = "[kernel]";

/* Of functions of the kernel: their mix is that of code that sets none, and they have the part of the time that is the file's next line. */
static void kernel_is_true(const struct csv *csv, FILE *spent)
{
    const struct truth truth = truth_of((struct vm_mix){26, 6, 13, 4, 12, 8, 10});
    double part, time = 0, wide = 0, worst = 0;
    int told = 0;
    CHECK_EQ(fscanf(spent, "%lf", &part), 1);
    for (int row = 1; row < csv->rows; row++) {
        if (strcmp(csv_text(csv, row, "module"), kernel_module) || strcmp(csv_text(csv, row, "scope"), "own"))
            continue;
        const double of_row = number(csv, row, "time", "");
        time += of_row;
        wide = fmax(wide, number(csv, row, "time", "_high") - of_row);
        if (of_row >= 0.1)
            told += shares_are_true(csv, row, &truth, 0, &worst) > 0;
    }
    fprintf(stderr, "%.1f %% of the time in the kernel, in truth %.1f; %d of its functions told, worst share %.2f points off\n", 100 * time,
            part / 1e4, told, 100 * worst);
    CHECK_NEAR(time, part / 1e6, 3 * wide);
    CHECK(told > 0);
}

/* `all`: each of its functions ran for long enough to be told. */
static void record(char *const *program, const char *gap, int all)
{
    static struct csv csv;
    const int reads = strcmp(program[4], "reads") == 0;
    char *const arguments[] = {"--kernel", "--budget=50", "--gap", strdup(gap), program[0], program[1], program[2], program[3], program[4], in_scratch("out"), NULL};
    CHECK_EQ(run_under("record", "-F2000", arguments + !reads), 0);
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
        /* (with the kernel differences of windows tell: in runs as short as these within 3 points, and the intervals say so) */
        const int shares = shares_are_true(&csv, row, &truth, part >= 0.1 && !reads, &worst);
        told += shares > 0;
        much += part >= 0.1 && shares > 0;
        /* (95 % intervals of many functions: twice as wide, hardly one in ten thousand has the truth outside) */
        const double time = number(&csv, row, "time", ""), low = number(&csv, row, "time", "_low"), high = number(&csv, row, "time", "_high");
        CHECK(part >= time - 2 * (time - low) && part <= time + 2 * (high - time));
        const double wide = number(&csv, row, NODES[0], "_high") - number(&csv, row, NODES[0], "");
        within = wide > within ? wide : within;
        CHECK(row_of(&csv, name, "inclusive") > 0);
    }
    if (reads)
        kernel_is_true(&csv, spent);
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

/* ---- Registers, where others hold general counters ---- */

static int has_registers(void)
{
    const struct td_options options = options_of(TD_FLAG_REGISTERS, 0);
    td_t *td;
    const int code = td_open(&td, &options);
    if (code == 0)
        td_close(td);
    return code == 0;
}

/* Half of the counters of each CPU. (The NMI watchdog has the fixed counter of cycles: the recorder needs a general one for them.) */
static void others_hold_counters(void)
{
    static struct perf_group groups[16];
    if (geteuid() != 0 || !has_registers())
        return;
    const int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    for (int cpu = 0; cpu < cpus && cpu < 16; cpu++)
        for (int k = 0; k < 4; k++)
            CHECK_EQ(ioctl(add_event(&groups[cpu], pinned_event(0xc5), -1, cpu, -1), PERF_EVENT_IOC_ENABLE, 0), 0);
    char *const program[] = {beside("lib/functions"), "4", "5000", "200", "plain", NULL};
    record(program, "1000", 1);
    static struct csv csv;
    csv_read(&csv, in_scratch("r.csv"));
    CHECK(strstr(csv_text(&csv, 1, "core"), "by counters") == NULL);
    free(csv.text);
    for (int cpu = 0; cpu < cpus && cpu < 16; cpu++)
        for (int k = 0; k < groups[cpu].count; k++)
            close(groups[cpu].fd[k]);
}

/* ---- What the kernel does ---- */

static void kernel(void)
{
    if (geteuid() != 0)
        return;
    char *const program[] = {beside("lib/functions"), "4", "20000", "200", "reads", NULL};
    set("/proc/sys/kernel/perf_event_paranoid", "1");
    set("/proc/sys/kernel/kptr_restrict", "0");
    record(program, "1000", 0);
    set("/proc/sys/kernel/kptr_restrict", "1");
    kernel_module = ""; /* its functions are one */
    record(program, "1000", 0);
    set("/proc/sys/kernel/perf_event_paranoid", "2");
    char *const refused[] = {"--kernel", program[0], "4", "20000", "1", "plain", in_scratch("out"), NULL};
    unlink(in_scratch("r.csv"));
    CHECK_EQ(run_under("record", "-F2000", refused), 0);
    CHECK(strstr(stat_said(), "kernel.perf_event_paranoid is 2") && strstr(stat_said(), "sysctl kernel.perf_event_paranoid=1"));
    CHECK(access(in_scratch("r.csv"), F_OK) != 0);
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
    if (argc == 2 && strcmp(argv[1], "kernel") == 0) {
        kernel();
        return 0;
    }
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
    others_hold_counters();
    kernel();
    killed();
    return 0;
}
