/* `topdown stat` of what is there already: processes with threads and children that they start meanwhile (-p), threads (-t), CPUs (-a,
 * -C, --per-core); interval by interval (-I) until Ctrl-C, --timeout or the process's own end; a command again and again (-r). Figures
 * are the truth within their bounds, and the intervals add up to the whole. With the argument `hotplug`: a CPU that goes and comes, too
 * (not with the others, as it may change what they meet).
 * needs: counters or general-counters */
#include "lib/stat.h"
#include "perf.h"
#include <pthread.h>
#include <sys/prctl.h>

static struct csv csv;
static double unit; /* slots of a unit of work */
static const char *const ONE[] = {"tma_retiring", "tma_bad_speculation", "tma_frontend_bound", "tma_backend_bound"};

/* ---- A process that works when it is told to: by 'm' its main thread, by 't' two new ones, by 'f' a child, by 'o' an old thread ---- */

enum { EACH = 16 };
static int to_child[2], from_child[2], to_other[2];
static pid_t served;
static char *self;

static void job(void)
{
    uint64_t turns = EACH * UNIT / 2;
    mix_is(MIX);
    __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(turns) : : "cc");
}
static void *new_thread(void *unused) { job(); return unused; }

static void say(char what) { CHECK_EQ(write(from_child[1], &what, 1), 1); }

static void *old_thread(void *unused)
{
    char what;
    pid_t id = (pid_t)syscall(SYS_gettid);
    CHECK_EQ(write(from_child[1], &id, sizeof id), (ssize_t)sizeof id);
    while (read(to_other[0], &what, 1) == 1) {
        job();
        say(what);
    }
    return unused;
}

static void serves(void)
{
    pthread_t thread[2];
    char what;
    CHECK(setgid(65534) == 0 && setuid(65534) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0);
    CHECK(close(to_child[1]) == 0 && close(from_child[0]) == 0); /* it ends with the test */
    CHECK_EQ(pthread_create(thread, NULL, old_thread, NULL), 0);
    while (read(to_child[0], &what, 1) == 1 && what != 'q') {
        if (what == 'm')
            job();
        if (what == 't') {
            for (int k = 0; k < 2; k++)
                CHECK_EQ(pthread_create(thread + k, NULL, new_thread, NULL), 0);
            for (int k = 0; k < 2; k++)
                CHECK_EQ(pthread_join(thread[k], NULL), 0);
        }
        if (what == 'f') {
            const pid_t child = fork();
            if (child == 0) {
                job();
                _exit(0);
            }
            CHECK_EQ(waitpid(child, NULL, 0), child);
        }
        if (what == 'o')
            CHECK_EQ(write(to_other[1], &what, 1), 1);
        else
            say(what);
    }
    _exit(0);
}

/* Starts it; its other thread's id. */
static pid_t start(void)
{
    pid_t other;
    CHECK(pipe(to_child) == 0 && pipe(from_child) == 0 && pipe(to_other) == 0);
    served = fork();
    if (served == 0)
        serves();
    CHECK_EQ(read(from_child[0], &other, sizeof other), (ssize_t)sizeof other);
    return other;
}

static void tell(char what)
{
    char done;
    CHECK_EQ(write(to_child[1], &what, 1), 1);
    CHECK_EQ(read(from_child[0], &done, 1), 1);
    CHECK_EQ(done, what);
}

/* This program again, as the command of `topdown stat`: tells the process what to do, one after the other. */
static int tells(const char *what, char *const *descriptor)
{
    to_child[1] = atoi(descriptor[0]), from_child[0] = atoi(descriptor[1]);
    for (; *what; what++)
        tell(*what);
    return 3;
}

/* This program again: holds all counters of a CPU while a command runs. */
static int holds(const char *cpu, const char *does)
{
    enum { ALL = 8 };
    struct perf_group group = {{0}, 0};
    struct perf_event_attr branches = event_of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS);
    branches.pinned = 1;
    for (int k = 0; k < ALL; k++)
        add_event(&group, branches, -1, atoi(cpu), -1);
    group_runs(&group);
    return WEXITSTATUS(system(does));
}

/* ---- `topdown stat` ---- */

/* Runs it with these options, up to a NULL, and rows into r.csv; how it ended. */
static int stat_with(const char *option, ...)
{
    char *all[32] = {strdup("stat"), strdup("-x"), strdup(","), strdup("-o"), in_scratch("r.csv")};
    int n = 5;
    va_list rest;
    va_start(rest, option);
    for (; option != NULL; option = va_arg(rest, const char *))
        all[n++] = strdup(option);
    va_end(rest);
    char *command[33] = {beside("../release/topdown")};
    memcpy(command + 1, all, (size_t)n * sizeof *all);
    unlink(in_scratch("r.csv"));
    return run_alone(command);
}

static int has_level_2(void)
{
    int has = 0;
    for (int c = 0; c < csv.columns; c++)
        has |= strcmp(csv.cell[0][c], "error_2") == 0;
    return has;
}

/* The rows' shares are the mix's, but for this part of the slots; their slots. `intervals`: 2, if a CPU comes and goes meanwhile. */
static double rows_are(const char *column, const char *value, double besides, int intervals)
{
    static const char *const TWO[] = {"tma_heavy_operations", "tma_light_operations", "tma_branch_mispredicts",
                                      "tma_machine_clears", "tma_fetch_latency", "tma_fetch_bandwidth", "tma_memory_bound",
                                      "tma_core_bound"};
    const struct truth truth = truth_of(MIX);
    double all = 0, part[4] = {0}, last = 0;
    for (int row = 1; row < csv.rows; row++) {
        if (column != NULL && strcmp(csv_text(&csv, row, column), value) != 0)
            continue;
        const double slots = csv_number(&csv, row, "slots"), error = csv_number(&csv, row, "error_1");
        all += slots;
        for (int k = 0; k < 4 && slots > 0; k++) {
            part[k] += slots * csv_number(&csv, row, ONE[k]);
            if (!intervals)
                CHECK_NEAR(csv_number(&csv, row, ONE[k]), truth.l1[k], error + besides);
        }
        const double error_2 = slots > 0 && has_level_2() ? csv_number(&csv, row, "error_2") : NAN; /* E-cores have none */
        for (int k = 0; k < 8 && !intervals && !isnan(error_2); k++)
            CHECK_NEAR(csv_number(&csv, row, TWO[k]), truth.l2[k], error_2 + besides);
        if (slots > 0 && intervals < 2)
            CHECK_NEAR(csv_number(&csv, row, "running"), 1, 1e-3);
        if (slots > 0 && csv_number(&csv, row, "running") < 0.999) /* (what was not counted is in the bound) */
            CHECK(error > 0.5 * (1 - csv_number(&csv, row, "running")));
        if (intervals && csv_has(&csv, "time")) {
            CHECK(csv_number(&csv, row, "time") >= last);
            last = csv_number(&csv, row, "time");
        }
    }
    for (int k = 0; k < 4 && all > 0; k++)
        CHECK_NEAR(part[k] / all, truth.l1[k], 0.001 + besides);
    return all;
}

/* What is in r.csv is of so many jobs, and little else. */
static void is_of(const char *what, double jobs, int intervals)
{
    csv_read(&csv, in_scratch("r.csv"));
    const double work = jobs * EACH * unit;
    const double slots = rows_are(NULL, NULL, 0.02, intervals);
    fprintf(stderr, "%s: %.0f slots, %.4f of the work\n", what, slots, slots / work);
    CHECK(slots >= work && slots < 1.02 * work);
    free(csv.text);
}

int main(int argc, char **argv)
{
    char pid[16], tid[16], to[16], from[16], cpu[16], line[64];
    if (argc > 3 && strcmp(argv[1], "holds") == 0)
        return holds(argv[2], argv[3]);
    if (argc > 3)
        return tells(argv[1], argv + 2);
    self = argv[0];
    stat_begins();
    if (geteuid() != 0)
        SKIP("only root becomes another user");
    self = strdup(own_path());
    unit = unit_slots(TD_FLAG_COUNTERS);
    snprintf(tid, sizeof tid, "%d", start());
    snprintf(pid, sizeof pid, "%d", served);
    snprintf(to, sizeof to, "%d", to_child[1]);
    snprintf(from, sizeof from, "%d", from_child[0]);

    /* while a command runs: the process with all that it starts; one of its threads */
    CHECK_EQ(WEXITSTATUS(stat_with("-p", pid, "--", self, "mtfo", to, from, NULL)), 3);
    is_of("process", 5, 0);
    CHECK_EQ(WEXITSTATUS(stat_with("-t", tid, "--", self, "mo", to, from, NULL)), 3);
    is_of("thread", 1, 0);
    CHECK_EQ(WEXITSTATUS(stat_with("--per-thread", "-p", pid, "--", self, "moo", to, from, NULL)), 3);
    csv_read(&csv, in_scratch("r.csv"));
    CHECK_EQ(csv.rows, p_core() < 0 ? 3 : 5);
    snprintf(line, sizeof line, "%s ", tid);
    for (int row = 1; row < csv.rows; row++) {
        if (p_core() >= 0 && strcmp(csv_text(&csv, row, "pmu"), "cpu_core") != 0)
            continue;
        const int is_other = strncmp(csv_text(&csv, row, "thread"), line, strlen(line)) == 0;
        const double work = (is_other ? 2 : 1) * EACH * unit;
        CHECK(csv_number(&csv, row, "slots") >= work && csv_number(&csv, row, "slots") < 1.02 * work);
    }
    free(csv.text);

    /* interval by interval, from what tells that it has begun, to Ctrl-C and to the process's end */
    for (int ends = 0; ends < 2; ends++) {
        const char *fifo = in_scratch("fifo");
        unlink(fifo);
        CHECK(mkfifo(fifo, 0666) == 0 && chmod(fifo, 0666) == 0);
        char *const command[] = {beside("../release/topdown"), strdup("stat"), strdup("-I"), strdup("10"), strdup("-x"),
                                 strdup(","), strdup("-o"), strdup(fifo), strdup("-p"), pid, NULL};
        const pid_t child = fork();
        if (child == 0) {
            signal(SIGINT, SIG_DFL);
            CHECK(setgid(65534) == 0 && setuid(65534) == 0);
            execv(command[0], command);
            _exit(126);
        }
        FILE *rows = fopen(fifo, "r"), *copy = fopen(in_scratch("r.csv"), "w");
        char row[4096];
        int status, count = 0;
        CHECK(rows != NULL && copy != NULL);
        while (fgets(row, sizeof row, rows) != NULL) {
            fputs(row, copy);
            if (++count == 2) {
                tell('m');
                tell('t');
            }
            if (count == 6 && ends)
                CHECK_EQ(write(to_child[1], "q", 1), 1);
            if (count == 6 && !ends)
                CHECK_EQ(kill(child, SIGINT), 0);
            if (count == 6 && ends)
                CHECK_EQ(waitpid(served, &status, 0), served);
        }
        fclose(copy);
        fclose(rows);
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        is_of(ends ? "until it ended" : "until Ctrl-C", 3, 1);
    }

    /* a command: timed out; again and again */
    CHECK_EQ(WTERMSIG(stat_with("--timeout", "30", "--", "/bin/sleep", "1000", NULL)), SIGTERM);
    CHECK_EQ(WEXITSTATUS(stat_with("-r", "3", "--", beside("lib/shapes"), "plain", NULL)), 7);
    csv_read(&csv, in_scratch("r.csv"));
    double sum = 0;
    CHECK_EQ(csv.rows, p_core() < 0 ? 6 : 11);
    for (int row = 1; row < csv.rows; row++) {
        const char *run = csv_text(&csv, row, "run");
        if (*run >= '1' && *run <= '3')
            sum += csv_number(&csv, row, "slots") / 3;
    }
    CHECK(sum >= UNITS * unit && sum < 1.02 * UNITS * unit);
    CHECK_NEAR(rows_are("run", "mean", 0.02, 0) / sum, 1, 1e-6);
    free(csv.text);

    /* CPUs: an ordinary user is told what it takes */
    snprintf(cpu, sizeof cpu, "%d", p_core() < 0 ? 1 : p_core());
    const char *const paranoid = "/proc/sys/kernel/perf_event_paranoid";
    char before[16] = "", command[128];
    FILE *file = fopen(paranoid, "r");
    CHECK(file != NULL && fgets(before, sizeof before, file) != NULL);
    fclose(file);
    snprintf(command, sizeof command, "echo 2 > %s", paranoid);
    CHECK_EQ(system(command), 0);
    CHECK_EQ(WEXITSTATUS(stat_with("-a", "--", "/bin/true", NULL)), 125);
    CHECK(strstr(stat_said(), "kernel.perf_event_paranoid") != NULL && strstr(stat_said(), "CAP_PERFMON") != NULL);
    CHECK(strchr(strchr(stat_said(), '\n') + 1, '\n') == NULL);
    snprintf(command, sizeof command, "echo -1 > %s", paranoid);
    CHECK_EQ(system(command), 0);
    char *const shape[] = {beside("lib/shapes")};
    CHECK_EQ(WEXITSTATUS(stat_with("-C", cpu, "--", shape[0], "migrates", cpu, cpu, NULL)), 11);
    csv_read(&csv, in_scratch("r.csv"));
    double slots = rows_are(NULL, NULL, 0.05, 0);
    CHECK(slots >= UNITS * unit && slots < 1.05 * UNITS * unit);
    const int level_2 = has_level_2() && !isnan(csv_number(&csv, 1, "error_2"));
    free(csv.text);
    if (p_core() < 0) { /* what is opened for one CPU takes nothing from the next */
        CHECK_EQ(WEXITSTATUS(stat_with("-a", "--", shape[0], "migrates", cpu, cpu, NULL)), 11);
        csv_read(&csv, in_scratch("r.csv"));
        CHECK_EQ(has_level_2() && !isnan(csv_number(&csv, 1, "error_2")), level_2);
        CHECK_NEAR(csv_number(&csv, 1, "running"), 1, 1e-3);
        free(csv.text);
        /* nor does what others hold of one CPU: all are counted by what that leaves */
        struct perf_group others = {{0}, 0};
        struct perf_event_attr branches = event_of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS);
        branches.pinned = 1;
        add_event(&others, branches, -1, atoi(cpu), -1);
        group_runs(&others);
        CHECK_EQ(WEXITSTATUS(stat_with("-a", "--", shape[0], "migrates", cpu, cpu, NULL)), 11);
        csv_read(&csv, in_scratch("r.csv"));
        slots = rows_are(NULL, NULL, 0.05, 0);
        CHECK(slots >= UNITS * unit && slots < 1.05 * UNITS * unit);
        CHECK_NEAR(csv_number(&csv, 1, "running"), 1, 1e-3);
        free(csv.text);
        group_ends(&others);
    }
    CHECK_EQ(WEXITSTATUS(stat_with("-a", "-I", "10", "--per-core", "--", shape[0], "migrates", cpu, cpu, NULL)), 11);
    csv_read(&csv, in_scratch("r.csv"));
    snprintf(line, sizeof line, "S0-C%s", cpu);
    slots = rows_are("core", line, 0.05, 1);
    fprintf(stderr, "%s: %.0f slots, %.4f of the work\n", line, slots, slots / (UNITS * unit));
    CHECK(slots >= UNITS * unit && slots < 1.05 * UNITS * unit);
    free(csv.text);

    /* a CPU that goes offline loses nothing; one that comes online is counted soon, and what it did before is in the bound */
    snprintf(command, sizeof command, "/sys/devices/system/cpu/cpu%s/online", cpu);
    if (argc == 2 && strcmp(argv[1], "hotplug") == 0 && p_core() < 0 && chmod(command, 0666) == 0) {
        char *script;
        CHECK(asprintf(&script, "job() { %s migrates %s %s; }; job; echo 0 > %s; echo 1 > %s; job; job; job; exit 0", shape[0],
                       cpu, cpu, command, command) > 0);
        CHECK_EQ(WEXITSTATUS(stat_with("-a", "-I", "10", "--", "/bin/sh", "-c", script, NULL)), 0);
        csv_read(&csv, in_scratch("r.csv"));
        slots = rows_are(NULL, NULL, 0.05, 2) / (UNITS * unit);
        fprintf(stderr, "off and on again: %.4f of the work of one job\n", slots);
        CHECK(slots > 2 && slots < 4.2);
        free(csv.text);
        char *back, *const rows[] = {strdup("5000"), strdup("100")};
        CHECK(asprintf(&back, "job() { %s migrates %s %s; }; job; echo 0 > %s; echo 1 > %s; job; job", shape[0], cpu, cpu, command,
                       command) > 0);
        for (int k = 0; k < 4; k++) {
            const double work = (k < 2 ? 3 : 2) * UNITS * unit;
            char *const does = k < 2 ? back : strchr(back, '}') + 8; /* (it is off when the count begins) */
            char line_off[128];
            snprintf(line_off, sizeof line_off, "echo 0 > /sys/devices/system/cpu/cpu%s/online", cpu);
            CHECK(k < 2 || system(line_off) == 0);
            char *whole;
            CHECK(asprintf(&whole, "job() { %s migrates %s %s; }; %s; exit 0", shape[0], cpu, cpu, k < 2 ? strstr(back, "job;") : strstr(does, "echo 1")) > 0);
            CHECK_EQ(WEXITSTATUS(stat_with("-a", "-I", rows[k % 2], "--", "/bin/sh", "-c", whole, NULL)), 0);
            csv_read(&csv, in_scratch("r.csv"));
            double counted = 0, more = 0;
            for (int row = 1; row < csv.rows; row++) {
                const double error = csv_number(&csv, row, "error_1"), of = csv_number(&csv, row, "slots");
                counted += of;
                more += of > 0 ? of * error / (1 - error) : 0;
            }
            fprintf(stderr, "back, by rows of %s ms: %.4f of the work, room for %.4f\n", rows[k % 2], counted / work, more / work);
            CHECK(counted > 0.8 * work && counted + more >= work);
            free(csv.text);
            free(whole);
        }
        free(back);
        /* one that comes back while others hold its counters, after it was seen or before: its work is in the bound */
        snprintf(line, sizeof line, "echo 0 > /sys/devices/system/cpu/cpu%s/online", cpu);
        for (int before_seen = 0; before_seen < 2; before_seen++) {
            char *held;
            CHECK(asprintf(&held, "%s echo 1 > %s; %s holds %s \"%s %s migrates %s %s\"; exit 0", before_seen ? "kill -STOP $PPID;" : "",
                           command, self, cpu, before_seen ? "kill -CONT $PPID;" : "", shape[0], cpu, cpu) > 0);
            CHECK_EQ(system(line), 0);
            CHECK_EQ(WEXITSTATUS(stat_with("-a", "--", "/bin/sh", "-c", held, NULL)), 0);
            csv_read(&csv, in_scratch("r.csv"));
            const double error = csv_number(&csv, 1, "error_1"), of = csv_number(&csv, 1, "slots"), room = of * error / (1 - error);
            double least = 1;
            for (int k = 0; k < 4; k++)
                least = fmin(least, csv_number(&csv, 1, ONE[k]));
            fprintf(stderr, "%sback, held: %.4f of the work, room for %.4f\n", stat_said(), of / (UNITS * unit), room / (UNITS * unit));
            CHECK(!before_seen || strstr(stat_said(), "came online, and is not counted") != NULL);
            CHECK(of + room >= UNITS * unit || error > 0.999 * (1 - least)); /* (or all of it is unknown) */
            free(csv.text);
            free(held);
        }
        *strstr(script, "; echo 1") = 0; /* the job, and off */
        CHECK_EQ(WEXITSTATUS(stat_with("-C", cpu, "--", "/bin/sh", "-c", script, NULL)), 0);
        csv_read(&csv, in_scratch("r.csv"));
        /* (its counters stop some milliseconds before its events end; 6.1 has none to be read while the CPU is away) */
        slots = rows_are(NULL, NULL, 0.05, 2) / (UNITS * unit);
        fprintf(stderr, "off: %.4f of the work of one job\n", slots);
        CHECK(slots < 1.05 && (slots > 1 || strstr(stat_said(), "is lost") != NULL));
        free(csv.text);
        snprintf(line, sizeof line, "echo 1 > /sys/devices/system/cpu/cpu%s/online", cpu);
        CHECK_EQ(system(line), 0);
    }
    snprintf(command, sizeof command, "echo %d > %s", atoi(before), paranoid);
    CHECK_EQ(system(command), 0);
    return 0;
}
