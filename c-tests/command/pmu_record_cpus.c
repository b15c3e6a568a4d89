/* `topdown record -a` and -C: programs with known mixes that run at once, on two CPUs and on one. The truth is within the interval of each
 * share of each function of each program, also of two that take turns on one CPU, of which the one's are shorter than a gap, and of each
 * process as a whole; and each program and function has its part of the CPU time, within twice the interval, where a counter tells the time also those that take turns; what is
 * idle has none, and neither has the recorder. On hybrid CPUs each kind of core has a table. An ordinary user
 * is refused by name at kernel.perf_event_paranoid 2 and 1. With the argument `hotplug`: a CPU that goes and comes (not with the others, as it
 * may change what they meet).
 * needs: counters, explore */
#define _GNU_SOURCE
#include "lib/stat.h"
#include "lib/functions.h"
#include "lib/profile.h"
#include "coverage.h"
#include <sched.h>
#include <linux/perf_event.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define CPU1_ONLINE "/sys/devices/system/cpu/cpu1/online"
enum { FUNCTIONS = 4, ONE = 1 };
static char *self;
static struct td_info info;
static int hybrid;
static int other_cpu = 1; /* that of beta: on a hybrid CPU an E-core */

/* ---- Programs ---- */

static const struct program {
    const char *name, *length, *millions, *shape;
    int cpu; /* 0, 1: the other one; -1: any */
    int functions;
} ALONE[] = {{"alpha", "20000", "900", "plain", 0, FUNCTIONS}, {"beta", "20000", "600", "other", 1, FUNCTIONS}},
  AT_ONCE[] = {{"alpha", "20000", "300", "plain", -1, FUNCTIONS}, {"beta", "5000", "300", "other", -1, FUNCTIONS},
               {"gamma", "50000", "300", "plain", -1, FUNCTIONS}},
  /* (each has one function, to which it comes back after the other's turn: where samples lie does not tell that the other had it) */
  IN_TURNS[] = {{"alpha", "6000", "480", "turns", 0, ONE}, {"beta", "500", "40", "other-turns", 0, ONE}};

static pid_t begin(const struct program *program, const char *directory, int partner)
{
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child)
        return child;
    char *const path = stat_path(directory, program->name), *file;
    CHECK(asprintf(&file, "%s.spent", path) > 0 && (partner < 0 || (dup2(partner, 3) == 3 && fcntl(3, F_SETFD, 0) == 0)));
    if (program->cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(program->cpu ? other_cpu : 0, &set);
        CHECK_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    }
    char functions[8];
    snprintf(functions, sizeof functions, "%d", program->functions);
    raise(SIGSTOP);
    execl(path, path, functions, program->length, program->millions, program->shape, file, NULL);
    _exit(126);
}

/* A file of the PMU that counts instructions on CPUs of a kind; its path. */
enum { KINDS = 2 };
static const char *of_pmu(int kind, const char *file)
{
    static char path[96];
    const char *const pmu = !hybrid ? "cpu" : kind ? "cpu_atom" : "cpu_core";
    snprintf(path, sizeof path, "/sys/bus/event_source/devices/%s/%s", pmu, file);
    return path;
}

/* The clock of a CPU is a fixed counter of its cycles; else it is a timer. */
static int clock_is_counter(void)
{
    char text[64] = "";
    FILE *const file = fopen(of_pmu(0, "events/ref-cycles"), "r");
    if (file != NULL)
        CHECK(fgets(text, sizeof text, file) != NULL && fclose(file) == 0);
    return strncmp(text, "event=0x00,umask=0x03", 21) == 0 || strncmp(text, "event=0x3c,umask=0x01", 21) == 0;
}

/* Instructions of a program on CPUs of a kind, from its execution on, in user mode. (A cycle each: the kernel's own figure has the time
 * of other CPUs in it, as the emulated machine runs its CPUs in turns.) */
static int instructions_of(pid_t child, int kind)
{
    struct perf_event_attr attr = {.type = (uint32_t)first_cpu(of_pmu(kind, "type")), .config = 0xc0, .size = sizeof attr, .inherit = 1,
                                   .exclude_kernel = 1};
    const int counter = (int)syscall(SYS_perf_event_open, &attr, child, -1, -1, PERF_FLAG_FD_CLOEXEC);
    CHECK(counter >= 0);
    return counter;
}

/* All of them, to their ends, and what CPU time each took: instructions, or microseconds. (The command of `topdown record -a`) */
static int run_all(const struct program *programs, int n, const char *directory)
{
    pid_t child[4];
    int ends[2], counter[4][KINDS], status, failed = 0;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    for (int k = 0; k < n; k++) {
        child[k] = begin(programs + k, directory, strstr(programs[k].shape, "turns") ? ends[k % 2] : -1);
        CHECK(waitpid(child[k], &status, WUNTRACED) == child[k] && WIFSTOPPED(status));
        for (int kind = 0; kind < KINDS; kind++)
            counter[k][kind] = clock_is_counter() && kind <= hybrid ? instructions_of(child[k], kind) : -1;
    }
    close(ends[0]), close(ends[1]);
    for (int k = 0; k < n; k++)
        CHECK_EQ(kill(child[k], SIGCONT), 0);
    for (int k = 0; k < n; k++) {
        struct rusage used;
        CHECK_EQ(wait4(child[k], &status, 0, &used), child[k]);
        uint64_t time = (uint64_t)used.ru_utime.tv_sec * 1000000 + (uint64_t)used.ru_utime.tv_usec;
        if (clock_is_counter())
            time = 0;
        for (int kind = 0; kind < KINDS && counter[k][kind] >= 0; kind++) {
            uint64_t instructions;
            CHECK_EQ(read(counter[k][kind], &instructions, sizeof instructions), sizeof instructions);
            time += instructions;
        }
        char *path;
        CHECK(asprintf(&path, "%s/%s.used", directory, programs[k].name) > 0);
        FILE *const file = fopen(path, "w");
        CHECK(file != NULL && fprintf(file, "%llu\n", (unsigned long long)time) > 0 && fclose(file) == 0);
        failed |= status != 0;
    }
    return failed;
}

static double used(const struct program *program)
{
    char *path;
    double time;
    CHECK(asprintf(&path, "%s/%s.used", stat_scratch, program->name) > 0);
    FILE *const file = fopen(path, "r");
    CHECK(file != NULL && fscanf(file, "%lf", &time) == 1 && fclose(file) == 0);
    return time;
}

static const struct shape {
    const char *name;
    const struct program *programs;
    int n;
} SHAPES[] = {{"alone", ALONE, 2}, {"at-once", AT_ONCE, 3}, {"in-turns", IN_TURNS, 2}};

/* ---- What is told of them ---- */

/* The row of a function behind this one: on a hybrid CPU each kind of core may have one. 0: there is none. */
static int row_behind(int row, const struct csv *csv, const char *module, const char *function, const char *scope)
{
    while (++row < csv->rows)
        if (!strcmp(csv_text(csv, row, "function"), function) && !strcmp(csv_text(csv, row, "module"), module) &&
            !strcmp(csv_text(csv, row, "scope"), scope))
            return row;
    return 0;
}

/* A function's part of the time on all cores, and how far below and above that it may be. */
struct part {
    double time, below, above;
};

static struct part part_of(const struct csv *csv, const char *module, const char *function, const char *scope)
{
    struct part part = {0, 0, 0};
    for (int row = 0; (row = row_behind(row, csv, module, function, scope)) > 0;) {
        const double time = number(csv, row, "time", "");
        part.time += time;
        part.below = hypot(part.below, time - number(csv, row, "time", "_low"));
        part.above = hypot(part.above, number(csv, row, "time", "_high") - time);
    }
    return part;
}

/* What a program has of the time, also in libraries. */
static struct part part_of_program(const struct csv *csv, const struct program *program)
{
    return part_of(csv, "[process]", program->name, "inclusive");
}

/* The truth is within twice the interval, of which one is left in one of twenty cases. */
static void time_is_true(struct part part, const char *program, const char *function, double of_told, double truth)
{
    if (truth < (part.time - 2 * part.below) / of_told || truth > (part.time + 2 * part.above) / of_told)
        FAIL("%s: %s has %g (%g less, %g more) of the time, in truth %g", program, function, part.time / of_told, part.below / of_told,
             part.above / of_told, truth);
}

static void function_is_true(struct part part, const char *name, double truth)
{
    lies_within(name, part.time, part.time - part.below, part.time + part.above, truth);
}

/* Shares of all that a process did: `shares` of all that it did in its functions. (What calls them is some hundredth of it) */
static void process_is_true(const struct csv *csv, const struct program *program, const double shares[4])
{
    int told = 0;
    for (int row = 0; (row = row_behind(row, csv, "[process]", program->name, "inclusive")) > 0; told++)
        for (int k = 0; k < 4; k++) {
            const double low = number(csv, row, NODES[k], "_low"), high = number(csv, row, NODES[k], "_high");
            if (!isnan(low) && (shares[k] < low - 0.01 || shares[k] > high + 0.01))
                FAIL("%s: %s is %g to %g, in truth %g", program->name, NODES[k], low, high, shares[k]);
        }
    CHECK(told > 0);
}

/* All functions of a program. */
static struct part part_of_functions(const struct csv *csv, const struct program *program)
{
    struct part all = {0, 0, 0};
    for (int k = 0; k < program->functions; k++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", k);
        const struct part one = part_of(csv, program->name, name, "own");
        all.time += one.time;
        all.below = hypot(all.below, one.below);
        all.above = hypot(all.above, one.above);
    }
    return all;
}

/* They have their part of what the program executed: between them it chooses the next one, and tells the emulated machine its mix by a system call, which takes
 * 500 instructions. (How many microseconds these take is not known) */
static void functions_are_true(struct part functions, const struct program *program, double of_all, double of_told)
{
    if (clock_is_counter())
        time_is_true(functions, program->name, "all functions", of_told, of_all * 1e6 * atof(program->millions) / used(program));
    else
        CHECK(functions.time / of_told > 0.8 * of_all);
}

/* A program that had this part of the CPU time of all programs, which are told to have `of_told` of the time. */
static void program_is_true(const struct csv *csv, const struct program *program, double of_all, double of_told)
{
    double worst = 0, of_process[4] = {0};
    int told = 0;
    char *path;
    CHECK(asprintf(&path, "%s/%s.spent", stat_scratch, program->name) > 0);
    FILE *const file = fopen(path, "r");
    CHECK(file != NULL);
    const int takes_turns = strstr(program->shape, "turns") != NULL;
    const struct part functions = part_of_functions(csv, program);
    if (!takes_turns || clock_is_counter()) /* (of what takes turns ticks do not tell the time) */
        functions_are_true(functions, program, of_all, of_told);
    for (int k = 0; k < program->functions; k++) {
        char name[16];
        double part;
        CHECK_EQ(fscanf(file, "%lf", &part), 1);
        snprintf(name, sizeof name, "f%d", k);
        const unsigned mix = (unsigned)k + (strncmp(program->shape, "other", 5) ? 0 : OTHER_MIXES);
        int rows = 0, of_function = 0;
        for (int row = 0; (row = row_behind(row, csv, program->name, name, "own")) > 0; rows++)
            of_function += nodes_are_true(csv, row, mix_of_function(mix), &info, 0, &worst) > 0;
        CHECK(rows > 0);
        told += of_function > 0;
        struct truth truth = truth_of(mix_of_function(mix));
        truth.l1[3] -= fmin(contention, truth.l1[3]); /* (what the core's other thread took) */
        for (int node = 0; node < 4; node++)
            of_process[node] += part / 1e6 * truth.l1[node];
        if (!takes_turns)
            function_is_true(part_of(csv, program->name, name, "own"), name, functions.time * part / 1e6);
    }
    fclose(file);
    if (!takes_turns)
        process_is_true(csv, program, of_process);
    const struct part of_program = part_of_program(csv, program);
    fprintf(stderr, "%s: %.1f %% of the time, in truth %.1f; %d functions told, worst share %.2f points off\n", program->name,
            100 * of_program.time / of_told, 100 * of_all, told, 100 * worst);
    /* (a timer waits while the kernel goes from one thread to the other: 6 to 11 points, where they wake each other all the time) */
    if (!takes_turns || clock_is_counter())
        time_is_true(of_program, "[process]", program->name, of_told, of_all);
    CHECK(told > 0 || atoi(program->length) < 1000); /* (no window fits in runs shorter than the gap) */
}

/* Of the time of the functions each program's have as much as they executed of the instructions: the kernel's, which takes turns, is no part of it. */
static void turns_are_true(const struct csv *csv, const struct shape *shape)
{
    double time = 0, millions = 0;
    for (int k = 0; k < shape->n; k++)
        time += part_of_functions(csv, shape->programs + k).time, millions += atof(shape->programs[k].millions);
    for (int k = 0; k < shape->n; k++)
        time_is_true(part_of_functions(csv, shape->programs + k), shape->programs[k].name, "of both in turns", time,
                     atof(shape->programs[k].millions) / millions);
}

/* `one`: of the other CPU alone. */
static void shape_is_true(const struct shape *shape, int one)
{
    static struct csv csv;
    char option[16] = "-a";
    if (one)
        snprintf(option, sizeof option, "-C%d", other_cpu);
    char *const arguments[] = {option, "--budget=50", "--", self, strdup(shape->name), stat_scratch, NULL};
    const int status = run_under("record", "-F2000", arguments);
    if (status || *stat_said())
        FAIL("topdown record %s, %s, ended with %#x: %s", option, shape->name, status, stat_said());
    csv_read(&csv, in_scratch("r.csv"));
    fprintf(stderr, "%s, %s:\n", shape->name, option);
    double all = 0, told = 0;
    for (int k = 0; k < shape->n; k++)
        all += !one || shape->programs[k].cpu == 1 ? used(shape->programs + k) : 0;
    for (int row = 1; row < csv.rows; row++) {
        if (!strcmp(csv_text(&csv, row, "module"), "topdown") && !strcmp(csv_text(&csv, row, "scope"), "own"))
            CHECK(number(&csv, row, "time", "") < 0.01);
    }
    for (int k = 0; k < shape->n; k++)
        told += part_of_program(&csv, shape->programs + k).time;
    fprintf(stderr, "%.1f %% of the time is others'\n", 100 * (1 - told));
    CHECK(told > 0.9 && told < 1.001);
    for (int k = 0; k < shape->n; k++) {
        const struct program *const program = shape->programs + k;
        if (one && program->cpu != 1)
            CHECK_EQ(row_behind(0, &csv, program->name, "f0", "own"), 0);
        else
            program_is_true(&csv, program, used(program) / all, told);
    }
    if (shape->programs == IN_TURNS && strcmp(csv_text(&csv, 1, "time_by"), "counter") == 0)
        turns_are_true(&csv, shape);
    free(csv.text);
}

/* ---- What is refused ---- */

static void paranoid_is(const char *level)
{
    FILE *const file = fopen("/proc/sys/kernel/perf_event_paranoid", "w");
    CHECK(file != NULL && fputs(level, file) >= 0 && fclose(file) == 0);
}

static void is_refused(void)
{
    if (geteuid() != 0)
        return;
    for (const char *const *level = (const char *const[]){"2", "1", NULL}; *level; level++) {
        char *const machine[] = {beside("../release/topdown"), "record", "-a", NULL};
        char *const command[] = {beside("../release/topdown"), "record", "-C0", "--", "/bin/false", NULL};
        paranoid_is(*level);
        CHECK_EQ(WEXITSTATUS(run_alone(machine)), 125);
        CHECK(strstr(stat_said(), "sysctl kernel.perf_event_paranoid=0") && strstr(stat_said(), "CAP_PERFMON"));
        CHECK_EQ(WEXITSTATUS(run_alone(command)), 1);
        CHECK(strstr(stat_said(), "nothing is recorded: ") && strstr(stat_said(), "sysctl kernel.perf_event_paranoid=0"));
    }
    paranoid_is("-1");
    char *const none[] = {beside("../release/topdown"), "record", "-C", "77", NULL};
    CHECK_EQ(WEXITSTATUS(run_alone(none)), 125);
    CHECK(strstr(stat_said(), "CPU 77 is not online") != NULL);
}

/* ---- A CPU that goes and comes ---- */

static void is_told_of_cpus(void)
{
    char *script;
    const char *const online = CPU1_ONLINE;
    CHECK(geteuid() == 0 && chmod(online, 0666) == 0);
    CHECK(asprintf(&script,
                   "%s 4 20000 4000 plain %s & %s 4 20000 4000 other %s & sleep 1; echo 0 > %s; sleep 1; echo 1 > %s; sleep 1.5; "
                   "kill $(jobs -p)", in_scratch("alpha"), in_scratch("a"), in_scratch("beta"), in_scratch("b"), online, online) > 0);
    char *const text[] = {"-a", "--budget=50", "-F2000", "--", "/bin/bash", "-c", script, NULL};
    run_under("record", NULL, text);
    fprintf(stderr, "%s", stat_said());
    CHECK(strstr(stat_said(), "CPUs went offline or came online meanwhile: 1 (CPU 1 went by ") != NULL);
    CHECK(strstr(stat_said(), "CPU 1 came by ") != NULL);
}

/* The emulated machine runs its CPUs in turns itself, and one of them may stand still for minutes where several have much to do: one of
 * each kind is left. */
static void cpus_are(const char *online)
{
    for (long cpu = 1; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++)
        if (!hybrid || cpu != other_cpu) {
            char path[64];
            snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%ld/online", cpu);
            set(path, online);
        }
}

static void all_come_back(void) { cpus_are("1\n"); }
static void one_cpu_is_left(void)
{
    if (geteuid() == 0 && getenv("MACHINE") != NULL)
        cpus_are("0\n"), atexit(all_come_back);
}

int main(int argc, char **argv)
{
    self = strdup(own_path());
    hybrid = p_core() >= 0 && e_core() >= 0;
    other_cpu = hybrid ? e_core() : 1;
    for (size_t k = 0; k < sizeof SHAPES / sizeof *SHAPES; k++)
        if (argc == 3 && strcmp(argv[1], SHAPES[k].name) == 0)
            return run_all(SHAPES[k].programs, SHAPES[k].n, argv[2]);
    stat_begins();
    info = core_of_truth();
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        SKIP("this machine has one CPU");
    kernel_never_lowers();
    for (const char *const *name = (const char *const[]){"alpha", "beta", "gamma", NULL}; *name; name++) {
        char *command;
        CHECK(asprintf(&command, "cp %s %s", beside("lib/functions"), stat_path(stat_scratch, *name)) > 0);
        CHECK_EQ(system(command), 0);
    }
    if (argc == 2 && strcmp(argv[1], "hotplug") == 0) {
        is_told_of_cpus();
        return 0;
    }
    shape_is_true(SHAPES, 0);
    shape_is_true(SHAPES, 1);
    is_refused();
    one_cpu_is_left();
    for (size_t k = in_gate() ? 2 : 1; k < sizeof SHAPES / sizeof *SHAPES; k++)
        shape_is_true(SHAPES + k, 0);
    return 0;
}
