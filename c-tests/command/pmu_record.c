/* `topdown record` tells of each function of a program how its slots divide and how much of the time it has, as an ordinary user: the
 * truth is within the interval of each share, and within a point of those of a tenth of the time, in functions from 1,000 instructions
 * up; in threads, in children, after an exec, with sleeps: the first of these programs; pmu_record all. So it is where the kernel
 * throttles samples, in handlers of signals, and until the program or the recorder is killed; the one does not harm the other, and what a
 * killed recorder has seen is in a file beside. Where others hold general counters, it is the same by SLOTS and PERF_METRICS. What the kernel does is told if it is
 * asked for and permitted, by function if the kernel shows their addresses. On hybrid CPUs each kind of core has a table, which is true.
 * pmu_record FUNCTIONS LENGTH MILLIONS SHAPE GAP: one program alone; pmu_record all: all of them; pmu_record kernel: what the kernel
 * does alone. TOPDOWN_SOURCE is topdown's.
 * needs: counters or other-core */
#include "lib/stat.h"
#include "lib/functions.h"
#include "lib/profile.h"
#include "coverage.h"
#include "competing.h"
#include <glob.h>
#include <sys/stat.h>

static struct td_info info;

/* Where the kernel's functions are. */
static const char *kernel_module = "[kernel]";

/* Of functions of the kernel: their mix is that of code that sets none, and they have the part of the time that is the file's next line. */
static void kernel_is_true(const struct csv *csv, FILE *spent)
{
    const struct vm_mix mix = {26, 6, 13, 4, 12, 8, 10};
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
            told += nodes_are_true(csv, row, mix, &info, 0, &worst) > 0;
    }
    fprintf(stderr, "%.1f %% of the time in the kernel, in truth %.1f; %d of its functions told, worst share %.2f points off\n", 100 * time,
            part / 1e4, told, 100 * worst);
    CHECK_NEAR(time, part / 1e6, 3 * wide);
    CHECK(told > 0);
}

/* ---- Kinds of cores ---- */

/* Of a hybrid CPU; of another all CPUs are of the first kind. */
enum kind { P_CORES, E_CORES, ALL_CORES };
static const char *const KINDS[] = {"P-cores", "E-cores", "all cores"};
static cpu_set_t cpus[ALL_CORES + 1];
static int hybrid;

/* A list of sysfs, such as 0-1,4. */
static void list_cpus(const char *path, cpu_set_t *set)
{
    FILE *const file = fopen(path, "r");
    int first, last;
    char next = ',';
    CHECK(file != NULL);
    while (next == ',' && fscanf(file, "%d", &first) == 1) {
        last = first;
        if (fscanf(file, "%c", &next) == 1 && next == '-')
            CHECK(fscanf(file, "%d%c", &last, &next) == 2);
        for (; first <= last; first++)
            CPU_SET((unsigned)first, set);
    }
    fclose(file);
}

static void kinds_are_known(void)
{
    hybrid = p_core() >= 0 && e_core() >= 0;
    list_cpus("/sys/devices/system/cpu/online", &cpus[ALL_CORES]);
    list_cpus(hybrid ? "/sys/bus/event_source/devices/cpu_core/cpus" : "/sys/devices/system/cpu/online", &cpus[P_CORES]);
    if (hybrid)
        list_cpus("/sys/bus/event_source/devices/cpu_atom/cpus", &cpus[E_CORES]);
}

/* This process, and what it starts from now on. */
static void stay_on(enum kind kind) { CHECK_EQ(sched_setaffinity(0, sizeof *cpus, &cpus[kind]), 0); }

/* ---- Tables of a profile: one for each kind of core ---- */

struct tables {
    const char *core[2];
    int row[2]; /* of all that ran there */
    int count;
    double time_ns;
};

static struct tables tables_of(const struct csv *csv)
{
    struct tables tables = {.count = 0};
    for (int row = 1; row < csv->rows; row++) {
        if (strcmp(csv_text(csv, row, "scope"), "all") != 0)
            continue;
        CHECK(tables.count < 2);
        tables.row[tables.count] = row;
        tables.core[tables.count++] = csv_text(csv, row, "core");
        tables.time_ns += number(csv, row, "time_ns", "");
    }
    return tables;
}

/* Of the core of a table, its part of all time. */
static double weight_of(const struct csv *csv, const struct tables *tables, int table)
{
    return number(csv, tables->row[table], "time_ns", "") / tables->time_ns;
}

/* A function's part of the time on all cores is the truth: of each kind of core a table has its part of all time. `all`: it is there, if it
 * ran for a hundredth of it. */
static void time_is_true(const struct csv *csv, const struct tables *tables, const char *name, double part, int all)
{
    double time = 0, below = 0, above = 0;
    int rows = 0;
    for (int table = 0; table < tables->count; table++) {
        const int row = row_on(csv, tables->core[table], name, "own");
        if (row == 0)
            continue;
        const double value = number(csv, row, "time", "");
        rows++;
        time += value;
        below = hypot(below, value - number(csv, row, "time", "_low"));
        above = hypot(above, number(csv, row, "time", "_high") - value);
    }
    if (rows > 0)
        lies_within(name, time, time - below, time + above, part);
    else
        CHECK(!all || part < 0.01);
}

/* Makes system calls, and counts as one of the functions. */
static const char CALLER[] = "system_calls";

/* What the program does besides its functions, which choose and call them, and tells the emulated machine their mixes by system calls: parts of the
 * time that are in the file leave it out. (Of functions of 1,000 instructions 3 % of the time is in libc's syscall, and 8 % by a timer) */
static double besides(const struct csv *csv, const struct tables *tables)
{
    double part = 0;
    for (int table = 0; table < tables->count; table++)
        for (int row = 1; row < csv->rows; row++) {
            const char *const name = csv_text(csv, row, "function");
            const int called = (name[0] == 'f' && name[1] >= '0' && name[1] <= '9') || strcmp(name, CALLER) == 0;
            const int calls = !called && strcmp(csv_text(csv, row, "module"), "functions") == 0;
            if ((calls || strcmp(name, "syscall") == 0) && strcmp(csv_text(csv, row, "scope"), "own") == 0 &&
                strcmp(csv_text(csv, row, "core"), tables->core[table]) == 0)
                part += number(csv, row, "time", "");
        }
    return part;
}

/* What makes system calls has the part of the time that is the file's next line: the kernel's is no part of it. */
static void caller_is_true(const struct csv *csv, FILE *spent)
{
    const struct tables tables = tables_of(csv);
    double part;
    CHECK_EQ(fscanf(spent, "%lf", &part), 1);
    fprintf(stderr, "%.1f %% of the time makes system calls, in truth %.1f\n", 100 * number(csv, row_of(csv, CALLER, "own"), "time", ""), part / 1e4);
    time_is_true(csv, &tables, CALLER, (1 - besides(csv, &tables)) * part / 1e6, 1);
}

/* All that ran divides as the functions do that have these parts of its time; what else ran, in any way. Within twice the interval, as a
 * time: it is that of a random sample. */
static void all_is_true(const struct csv *csv, const struct tables *tables, unsigned functions, const double *parts)
{
    double expected[SHARES] = {0}, known = 0;
    for (unsigned k = 0; k < functions; k++) {
        double share[SHARES] = {0};
        shares_on_core_of(mix_of_function(k), csv, tables->row[0], &info, share);
        for (uint32_t id = 1; id < SHARES; id++)
            expected[id] += parts[k] * share[id];
        known += parts[k];
    }
    for (uint32_t id = 1; id < SHARES; id++) {
        const char *const node = td_node_name(id);
        const double is = number(csv, tables->row[0], node, ""), low = number(csv, tables->row[0], node, "_low"), high = number(csv, tables->row[0], node, "_high");
        if (!isnan(low) && (2 * high - is < expected[id] || 2 * low - is > expected[id] + 1 - known))
            FAIL("of all, %s is %g, %g to %g, in truth %g to %g", node, is, low, high, expected[id], expected[id] + 1 - known);
    }
}

/* What a profile has told of a program. */
struct seen {
    int told, much, tables; /* functions of which it tells shares; with a tenth of the time; tables that tell any */
    double worst, widest;
};

/* The profile is true of functions whose parts of the time are in a file. `close`: those with a tenth of it are within a point. */
static struct seen profile_is_true(const struct csv *csv, unsigned functions, int close, int all, FILE *spent)
{
    struct seen seen = {0};
    int of_table[2] = {0};
    const struct tables tables = tables_of(csv);
    double time = 0;
    for (int table = 0; table < tables.count; table++)
        time += number(csv, tables.row[table], "time", "");
    CHECK_NEAR(time, 1, 1e-5);
    const double called = 1 - besides(csv, &tables);
    double parts[MOST_FUNCTIONS];
    for (unsigned k = 0; k < functions; k++) {
        char name[16];
        double part;
        int told = 0;
        CHECK_EQ(fscanf(spent, "%lf", &part), 1);
        part /= 1e6;
        parts[k] = called * part;
        snprintf(name, sizeof name, "f%u", k);
        for (int table = 0; table < tables.count; table++) {
            const int row = row_on(csv, tables.core[table], name, "own");
            if (row == 0)
                continue;
            CHECK(row_on(csv, tables.core[table], name, "inclusive") > 0);
            const int much = close && part >= 0.1 && weight_of(csv, &tables, table) > 0.9;
            const int shares = nodes_are_true(csv, row, mix_of_function(k), &info, much, &seen.worst);
            const double wide = number(csv, row, NODES[0], "_high") - number(csv, row, NODES[0], "");
            seen.widest = wide > seen.widest ? wide : seen.widest;
            told += shares > 0;
            of_table[table] += shares > 0;
        }
        time_is_true(csv, &tables, name, called * part, all);
        seen.told += told > 0;
        seen.much += part >= 0.1 && told > 0;
    }
    for (int table = 0; table < tables.count; table++)
        seen.tables += of_table[table] > 0;
    if (close && tables.count == 1)
        all_is_true(csv, &tables, functions, parts);
    return seen;
}

/* `all`: each of its functions ran for long enough to be told. */
static struct seen record(char *const *program, const char *gap, int all)
{
    static struct csv csv;
    const int reads = strcmp(program[4], "reads") == 0;
    char *const out = in_scratch("out");
    char *const arguments[] = {"--kernel", "--budget=50", "--gap", strdup(gap), program[0], program[1], program[2], program[3], program[4],
                               reads ? strdup("/dev/null") : out, NULL};
    char *const alone[] = {program[0], program[1], program[2], program[3], program[4], out, NULL};
    if (reads) /* (what the kernel does while it is recorded is the recorder's in part: interrupts) */
        CHECK_EQ(run_alone(alone), 0);
    CHECK_EQ(run_under("record", "-F2000", arguments + !reads), 0);
    CHECK_EQ(strlen(stat_said()), 0);
    csv_read(&csv, in_scratch("r.csv"));
    FILE *spent = fopen(in_scratch("out"), "r");
    CHECK(spent != NULL);
    const int functions = atoi(program[1]);
    /* (with the kernel differences of windows tell: in runs as short as these within 3 points, and the intervals say so) */
    const struct seen seen = profile_is_true(&csv, (unsigned)functions, !reads, all, spent);
    if (reads)
        kernel_is_true(&csv, spent);
    if (strcmp(program[4], "calls") == 0)
        caller_is_true(&csv, spent);
    fclose(spent);
    free(csv.text);
    fprintf(stderr, "%s functions of %s instructions, %s: %d told, worst share %.2f points off, the widest interval of retiring ±%.2f\n",
            program[1], program[2], program[4], seen.told, 100 * seen.worst, 100 * seen.widest);
    CHECK(seen.told > 0 && (!all || (seen.told == functions && (functions > 8 || seen.much >= 2))));
    return seen;
}

/* ---- Throttling ---- */

static void permit_samples(const char *rate) { set(MAX_SAMPLE_RATE, rate); }
static void permit_all(void) { permit_samples("100000\n"); }

/* Of the file in which the recorder of r.csv keeps what it sees. */
static off_t bytes_kept(void)
{
    glob_t found;
    struct stat about = {0};
    const int there = glob(in_scratch("r.csv.*.recording"), 0, NULL, &found) == 0 && stat(found.gl_pathv[0], &about) == 0;
    globfree(&found);
    return there ? about.st_size : 0;
}

/* Linux up to 6.15 stops only the event that samples: what the others count until the next tick is no window. The limit is lowered
 * while bursts are under way, before topdown looks at it again. */
static void throttled(void)
{
    if (geteuid() != 0)
        return;
    const pid_t child = fork();
    if (child == 0) {
        while (bytes_kept() < 100 * 200) /* (a burst takes 200 bytes) */
            usleep(1000);
        kernel_lowers();
        permit_samples("1000\n");
        _exit(0);
    }
    char *const program[] = {beside("lib/functions"), "4", "20000", "600", "plain", NULL};
    record(program, "300", 0);
    int status;
    CHECK_EQ(waitpid(child, &status, WNOHANG), child); /* (it came to that) */
    CHECK_EQ(status, 0);
    permit_all();
    kernel_never_lowers();
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

/* Six of the eight counters of each CPU that has registers: level 1 alone, as on Ice Lake, takes three beside the fixed ones. */
static void others_hold_counters(void)
{
    static struct perf_group groups[CPU_SETSIZE];
    if (geteuid() != 0 || !has_registers())
        return;
    stay_on(P_CORES);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        for (int k = 0; k < 6 && CPU_ISSET(cpu, &cpus[P_CORES]); k++)
            CHECK_EQ(ioctl(add_event(&groups[cpu], pinned_event(0xc5), -1, cpu, -1), PERF_EVENT_IOC_ENABLE, 0), 0);
    char *const program[] = {beside("lib/functions"), "4", "5000", "200", "plain", NULL};
    record(program, "1000", 1);
    static struct csv csv;
    csv_read(&csv, in_scratch("r.csv"));
    CHECK(strstr(csv_text(&csv, 1, "core"), "by counters") == NULL);
    free(csv.text);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        for (int k = 0; k < groups[cpu].count; k++)
            close(groups[cpu].fd[k]);
}

/* ---- What the kernel does ---- */

static void kernel(void)
{
#if defined(__aarch64__)
    return; /* (what mix the kernel's code has there the emulated machine does not say) */
#endif
    if (geteuid() != 0)
        return;
    /* (the more CPUs take turns on the emulated machine, the fewer bursts there are) */
    char *const program[] = {beside("lib/functions"), "4", "20000", hybrid ? "1200" : "400", "reads", NULL};
    set_until_end("/proc/sys/kernel/perf_event_paranoid", "1");
    set_until_end("/proc/sys/kernel/kptr_restrict", "0");
    record(program, "1000", 0);
    set_until_end("/proc/sys/kernel/kptr_restrict", "1");
    kernel_module = ""; /* its functions are one */
    record(program, "1000", 0);
    set_until_end("/proc/sys/kernel/perf_event_paranoid", "2");
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
    /* (the kernel kills it after a second of CPU time, however long it took to start) */
    char *const program[] = {"--budget=50", "/bin/bash", "-c", "ulimit -t 1; exec \"$@\"", "-", beside("lib/functions"), "4", "20000",
                             "4000", "plain", in_scratch("out"), NULL};
    CHECK(run_under("record", "-F2000", program) != 0);
    csv_read(&csv, in_scratch("r.csv"));
    CHECK(row_of(&csv, "f0", "own") > 0 && number(&csv, 1, "time_ns", "") >= 1e7);
    free(csv.text);
}

/* ---- */

struct program {
    const char *functions, *length, *millions, *shape, *gap;
};
/* (the gap is such that hardly any window has a whole run of a function in it: in so few windows one of those would be points) */
static const struct program PROGRAMS[] = {
    {"4", "1000", "200", "plain", "300"},  {"8", "10000", "200", "threads", "300"},  {"4", "50000", "150", "children", "1000"},
    {"4", "1000000", "150", "late", "1000"}, {"16", "20000", "300", "plain", "1000"}, {"5", "20000", "100", "sleeps", "500"},
};

/* The more CPUs take turns on the emulated machine, the fewer bursts there are; fewer, too, where the clock has turns with them. */
static long times_as_long(void) { return hybrid ? 3 : smt_is_on() ? 5 : 1; }

static struct seen record_one(const struct program *one)
{
    char *const program[] = {beside("lib/functions"), strdup(one->functions), strdup(one->length), strdup(one->millions),
                             strdup(one->shape), NULL};
    CHECK(asprintf((char **)&program[3], "%ld", times_as_long() * atol(one->millions)) > 0);
    return record(program, one->gap, 1);
}

/* Signals of timers come when the recorder leaves the thread's CPU, too: their handler has no more of the time for that. */
static const struct program HANDLED = {"5", "9000", "300", "timers=1000,1330", "1000"};
/* A thread that runs for less than a period of its clock between two turns has all of its time, from many samples. */
static const struct program NAPS = {"4", "50000", "40", "naps", "300"};

/* What the kernel does for a function that makes system calls is not its time. (A timer would say so) */
static const struct program WITH_CALLS = {"4", "20000", "60", "calls", "1000"};

/* A thread that sleeps often has more bursts in its time than one that runs on. */
static const struct program UNEVEN = {"4", "40000", "100", "uneven", "1000"};

/* The first of the programs, or all; of a hybrid CPU on either kind of cores, and three threads on both, of which each has a table. */
static void programs(int all)
{
    for (enum kind kind = P_CORES; kind <= (hybrid ? E_CORES : P_CORES); kind++) {
        stay_on(kind);
        if (hybrid)
            fprintf(stderr, "on %s:\n", KINDS[kind]);
        for (size_t k = 0; k < (all ? sizeof PROGRAMS / sizeof *PROGRAMS : 1); k++)
            CHECK_EQ(record_one(&PROGRAMS[k]).tables, 1);
    }
    if (!hybrid)
        return;
    /* (what each CPU does when it is its turn on the emulated machine may be less than longer functions, and bursts would be in one) */
    static const struct program on_both = {"4", "2000", "200", "threads", "300"};
    stay_on(ALL_CORES);
    fprintf(stderr, "on %s:\n", KINDS[ALL_CORES]);
    CHECK_EQ(record_one(&on_both).tables, 2);
}

/* Nanoseconds by the recorder's clock that a program's functions took, whose parts of them are in the file. (`clocked` of work.h) */
static double clocked_in_functions(const struct program *program)
{
    const double instructions = 1e6 * atof(program->millions) * (double)times_as_long();
#if defined(__aarch64__)
    double part, each_ns = 0;
    FILE *const spent = fopen(in_scratch("out"), "r");
    CHECK(spent != NULL);
    for (int k = 0; k < atoi(program->functions); k++) {
        CHECK_EQ(fscanf(spent, "%lf", &part), 1);
        each_ns += part / 1e6 * mix_of_function((unsigned)k).retiring / 26;
    }
    fclose(spent);
    return instructions / each_ns;
#else
    return instructions;
#endif
}

static void naps(void)
{
    static struct csv csv;
    record_one(&NAPS);
    csv_read(&csv, in_scratch("r.csv"));
    const double told = tables_of(&csv).time_ns, executed = clocked_in_functions(&NAPS);
    const double low = number(&csv, 1, "time", "_low");
    fprintf(stderr, "%.1f ms told of %.1f, by samples that may leave out %.0f %%\n", told / 1e6, executed / 1e6, 100 - 100 * low);
    /* (beside AMD's NMI watchdog, too: where each core runs one thread the group leaves the clock a counter, else they have turns) */
    CHECK(strcmp(csv_text(&csv, 1, "time_by"), "counter") == 0);
    /* (what the recorder takes of the time of the thread is half of it at the most, and counts when the clock is off) */
    CHECK(told > low * executed && told * low < executed * (smt_is_on() ? 1.5 : 1) && (hybrid || low > 0.85));
    free(csv.text);
}

int main(int argc, char **argv)
{
    stat_begins();
    kinds_are_known();
    if (geteuid() == 0) {
        atexit(permit_all);
        permit_all();
        kernel_never_lowers(); /* (where the machine's CPUs take turns it would, before functions can be told) */
    }
    stay_on(P_CORES);
    info = core_of_truth();
    if (argc == 2 && strcmp(argv[1], "kernel") == 0) {
        kernel();
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "killed") == 0) {
        killed();
        return 0;
    }
    if (argc == 6) {
        record_one(&(struct program){argv[1], argv[2], argv[3], argv[4], argv[5]});
        return 0;
    }
    /* (in runs as short as those of the others it is chance how many functions can be told of) */
    programs(argc == 2 && strcmp(argv[1], "all") == 0);
    stay_on(P_CORES);
    record_one(&HANDLED);
    record_one(&WITH_CALLS);
    if (!in_gate()) { /* (pmu_record_phases has such, on more cores) */
        record_one(&UNEVEN);
        naps();
    }
    throttled();
    others_hold_counters();
    kernel();
    killed();
    return 0;
}
