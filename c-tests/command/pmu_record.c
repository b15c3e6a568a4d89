/* `topdown record` tells of each function of a program how its slots divide and how much of the time it has, as an ordinary user: the
 * truth is within the interval of each share, and within a point of those of a tenth of the time, in functions from 1,000 instructions
 * up; in threads, in children, after an exec, with sleeps: the first of these programs; pmu_record all. So it is where the kernel
 * throttles samples, and until the program or the recorder is killed; the one does not harm the other. Where others hold general
 * counters, it is the same by SLOTS and PERF_METRICS. What the kernel does is told if it is asked for and permitted, by function if the
 * kernel shows their addresses.
 * pmu_record FUNCTIONS LENGTH MILLIONS SHAPE GAP: one program alone; pmu_record all: all of them; pmu_record kernel: what the kernel
 * does alone. TOPDOWN_SOURCE is topdown's.
 * needs: counters, not-hybrid */
#include "lib/stat.h"
#include "lib/functions.h"
#include "competing.h"
#include <dirent.h>
#include <time.h>

/* Where the kernel's functions are. */
static const char *kernel_module = "[kernel]";

static const char *const NODES[] = {"tma_retiring",         "tma_bad_speculation",   "tma_frontend_bound",     "tma_backend_bound",
                                    "tma_heavy_operations", "tma_light_operations",  "tma_branch_mispredicts", "tma_machine_clears",
                                    "tma_fetch_latency",    "tma_fetch_bandwidth",   "tma_memory_bound",       "tma_core_bound"};

/* Of a row, a column "NAME_low" and the like; NaN: it is empty, or there is none. */
static double number(const struct csv *csv, int row, const char *name, const char *end)
{
    char column[64];
    snprintf(column, sizeof column, "%s%s", name, end);
    for (int c = 0; c < csv->columns; c++)
        if (strcmp(csv->cell[0][c], column) == 0 && *csv->cell[row][c])
            return atof(csv->cell[row][c]);
    return NAN;
}

static int row_of(const struct csv *csv, const char *function, const char *scope)
{
    for (int row = 1; row < csv->rows; row++)
        if (strcmp(csv_text(csv, row, "function"), function) == 0 && strcmp(csv_text(csv, row, "scope"), scope) == 0)
            return row;
    return 0;
}

/* The truth of each share of a row is within its interval, and if `much`, within a point of it. How many shares there are. */
static int shares_are_true(const struct csv *csv, int row, const struct truth *truth, int much, double *worst)
{
    int told = 0;
    for (int k = 0; k < 12; k++) {
        const double expected = k < 4 ? truth->l1[k] : truth->l2[k - 4], value = number(csv, row, NODES[k], "");
        if (isnan(value))
            continue;
        told++;
        if (fabs(value - expected) > *worst)
            *worst = fabs(value - expected);
        if (expected < number(csv, row, NODES[k], "_low") || expected > number(csv, row, NODES[k], "_high"))
            FAIL("%s: %s is %g (%g to %g), in truth %g", csv_text(csv, row, "function"), NODES[k], value,
                 number(csv, row, NODES[k], "_low"), number(csv, row, NODES[k], "_high"), expected);
        if (much)
            CHECK_NEAR(value, expected, 0.01);
    }
    return told;
}

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

static void permit_samples(const char *rate)
{
    FILE *const file = fopen(MAX_SAMPLE_RATE, "w");
    CHECK(file != NULL && fputs(rate, file) >= 0 && fclose(file) == 0);
}

static void permit_all(void) { permit_samples("100000\n"); }

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

static void sysctl_is(const char *name, const char *value)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/sys/kernel/%s", name);
    FILE *const file = fopen(path, "w");
    CHECK(file != NULL && fputs(value, file) >= 0 && fclose(file) == 0);
}

static void kernel(void)
{
    if (geteuid() != 0)
        return;
    char *const program[] = {beside("lib/functions"), "4", "20000", "200", "reads", NULL};
    sysctl_is("perf_event_paranoid", "1");
    sysctl_is("kptr_restrict", "0");
    record(program, "1000", 0);
    sysctl_is("kptr_restrict", "1");
    kernel_module = ""; /* its functions are one */
    record(program, "1000", 0);
    sysctl_is("perf_event_paranoid", "2");
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

/* Whether a process has an open event. */
static int has_events(pid_t pid)
{
    char path[300], target[64] = "";
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *const open = opendir(path);
    int found = 0;
    for (struct dirent *fd; open && !found && (fd = readdir(open));) {
        snprintf(path, sizeof path, "/proc/%d/fd/%s", pid, fd->d_name);
        const ssize_t n = readlink(path, target, sizeof target - 1);
        found = n > 0 && strncmp(target, "anon_inode:[perf_event]", (size_t)n) == 0;
    }
    if (open)
        closedir(open);
    return found;
}

/* CPU time of a process, in ns. */
static double ran_ns(pid_t pid)
{
    clockid_t clock;
    struct timespec time = {0, 0};
    CHECK(clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &time) == 0);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

/* A signal for a recorder of a running program, which goes on to its end. How the recorder ended. */
static int recorder_meets(int signal)
{
    char pid[16];
    unlink(in_scratch("r.csv"));
    const pid_t program = begin((char *[]){beside("lib/functions"), "4", "20000", "400", "plain", in_scratch("out"), NULL});
    snprintf(pid, sizeof pid, "%d", program);
    const pid_t recorder =
        begin((char *[]){beside("../release/topdown"), "record", "--budget=50", "-F2000", "-o", in_scratch("r.csv"), "-p", pid, NULL});
    while (!has_events(recorder))
        CHECK(kill(program, 0) == 0 && waitpid(recorder, NULL, WNOHANG) == 0);
    for (const double since = ran_ns(program); ran_ns(program) < since + 5e7;)
        usleep(1000);
    int status, ended;
    CHECK(kill(recorder, signal) == 0 && waitpid(recorder, &ended, 0) == recorder);
    CHECK(waitpid(program, &status, 0) == program && status == 0);
    return ended;
}

static void killed(void)
{
    static struct csv csv;
    CHECK_EQ(recorder_meets(SIGTERM), 0);
    csv_read(&csv, in_scratch("r.csv"));
    CHECK(row_of(&csv, "f0", "own") > 0 && number(&csv, 1, "time_ns", "") >= 1e7);
    free(csv.text);
    const int ended = recorder_meets(SIGKILL);
    CHECK(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL && access(in_scratch("r.csv"), F_OK) != 0);
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
