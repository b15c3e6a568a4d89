/* The kernel's part of a program's CPU time: `topdown stat` and `topdown run` tell how much it is, as far as the kernel's ticks do; where it was
 * not counted and is much, a line says so, with what counts it, and the verdict begins with it. With --kernel it is counted, and there is no
 * such line; of a program that hardly calls the kernel there is none either.
 * needs: counters or general-counters */
#include "lib/stat.h"
#include <sys/prctl.h>
#include <sys/resource.h>

/* Instructions of the loop, bytes of a call, and how often: half a second of each on the emulated machine. */
enum { LOOP = 80000, BYTES = 4096, TIMES = 6000 };

/* A call that keeps the kernel at work, with interrupts on. (A tick that is due in the first instructions of a call comes only once it has
 * returned, and is taken for user mode: of the shortest calls that is a third of the time.) */
static void call(void)
{
    static char bytes[BYTES];
    CHECK_EQ(syscall(SYS_getrandom, bytes, sizeof bytes, 0), BYTES);
}

static void loop(void)
{
    uint64_t turns = LOOP / 2;
    __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(turns) : : "cc");
}

/* Leaves the loops to a process for which nobody waits, but for its end. */
static void leaves(void)
{
    int over[2];
    char byte;
    CHECK_EQ(pipe(over), 0);
    const pid_t child = fork();
    if (child == 0) {
        if (fork() != 0)
            _exit(0);
        for (int k = 0; k < TIMES; k++)
            loop();
        _exit(0);
    }
    close(over[1]);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    CHECK_EQ(read(over[0], &byte, 1), 0);
}

static int program(const char *what)
{
    if (strcmp(what, "leaves") == 0) {
        leaves();
        return 0;
    }
    for (int k = 0; k < TIMES; k++) {
        if (strcmp(what, "loops") != 0)
            call();
        if (strcmp(what, "calls") != 0)
            loop();
    }
    return 0;
}

/* What a report says of the whole. */
struct told {
    double slots, time, cpu, user, system, counted;
    char note[512], next[512], bottleneck[512];
};

static const char *behind(const char *report, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "\"%s\": ", name);
    const char *const at = strstr(report, key);
    if (at == NULL)
        FAIL("the report has no %s: %s", name, report);
    return at + strlen(key);
}
static double number(const char *report, const char *name) /* not a number: it is not known */
{
    const char *const at = behind(report, name);
    return strncmp(at, "null", 4) == 0 ? NAN : strtod(at, NULL);
}
static void words(const char *report, const char *name, char *into)
{
    *into = 0;
    sscanf(behind(report, name), "\"%511[^\"]", into);
}

/* Nanoseconds that ended children of this process have used. */
static double of_children(void)
{
    struct rusage usage;
    CHECK_EQ(getrusage(RUSAGE_CHILDREN, &usage), 0);
    return 1e9 * (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + 1e3 * (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static struct told told(const char *subcommand, const char *option, const char *what)
{
    char *command[] = {beside("../release/topdown"), strdup(subcommand), strdup("-o"), in_scratch("r.json"), strdup(option), strdup("--"),
                       strdup(own_path()), strdup(what), NULL};
    const double before = of_children();
    struct told told;
    CHECK_EQ(run_alone(command), 0);
    while (waitpid(-1, NULL, 0) > 0) {} /* what it has left */
    const double all = of_children() - before; /* and of topdown itself */
    const char *const report = text_in("r.json");
    told.slots = number(report, "slots"), told.time = number(report, "time_ns");
    told.cpu = number(report, "cpu_time_ns"), told.counted = number(report, "counted_time_ns");
    told.user = number(report, "user_time_ns"), told.system = number(report, "system_time_ns");
    words(report, "kernel_note", told.note), words(report, "next", told.next), words(report, "bottleneck", told.bottleneck);
    fprintf(stderr, "%s %s %s: %.0f slots, user %.3f ms, system %.3f ms, counted %.3f ms of %.3f ms; %s\n", subcommand, option, what,
            told.slots, told.user / 1e6, told.system / 1e6, told.counted / 1e6, told.cpu / 1e6, told.note);
    /* to the nanosecond: both are parts of one time */
    const int is_known = strcmp(what, "leaves") != 0;
    CHECK(is_known ? told.user + told.system == told.cpu && told.counted <= told.cpu : isnan(told.user) && isnan(told.system) && isnan(told.counted));
    /* the events' own clock begins after and ends before; the C library's rusage is cut to microseconds, twice each time */
    CHECK(told.cpu >= told.time - 2e3 && told.cpu <= all + 4e3);
    return told;
}

/* The share of user mode is that of the slots, which are exact, as far as ticks can tell: within four standard errors, and the tick with
 * which it begins. */
static void divides(const struct told *user_alone, double slots)
{
    struct timespec tick; /* what the coarse clock advances by */
    CHECK_EQ(clock_getres(CLOCK_MONOTONIC_COARSE, &tick), 0);
    const double ticks = user_alone->cpu / (1e9 * tick.tv_sec + tick.tv_nsec);
    const double share = fmin(user_alone->slots / slots, 1), error = 4 * sqrt(share * (1 - share) / ticks) + 1 / ticks;
    fprintf(stderr, "user mode: %.4f of the slots, %.4f of the time, within %.4f\n", share, user_alone->user / user_alone->cpu, error);
    CHECK_NEAR(user_alone->user / user_alone->cpu, share, error);
}

static void paranoid(int level)
{
    FILE *const file = fopen("/proc/sys/kernel/perf_event_paranoid", "w");
    CHECK(file != NULL && fprintf(file, "%d\n", level) > 0 && fclose(file) == 0);
}

static void begins(const char *text, const char *with)
{
    if (strncmp(text, with, strlen(with)) != 0)
        FAIL("'%s' does not begin with '%s'", text, with);
}

static void of_the_kernel(const char *subcommand)
{
    paranoid(1);
    const struct told user = told(subcommand, "--td-level=1", "calls");
    CHECK(strstr(user.note, "are the kernel's, which was not counted: `topdown stat --kernel` counts it, too") != NULL);
    begins(user.bottleneck, "kernel "), begins(user.next, "kernel ");
    CHECK(strstr(user.next, "topdown stat --kernel") != NULL);
    paranoid(2);
    const struct told refused = told(subcommand, "--td-level=1", "calls");
    CHECK(strstr(refused.note, "kernel.perf_event_paranoid is 2 (`sudo sysctl kernel.perf_event_paranoid=1`)") != NULL);
    paranoid(1);
    const struct told both = told("stat", "--kernel", "calls");
    CHECK(both.slots > user.slots && both.counted > user.counted);
    CHECK(!*both.note && strncmp(both.bottleneck, "kernel", 6) != 0 && strncmp(both.next, "kernel", 6) != 0);
    divides(&user, both.slots);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return program(argv[1]);
    stat_begins();
    CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); /* so that it can wait for what others leave */
    if (geteuid() != 0)
        SKIP("only root sets perf_event_paranoid");
    of_the_kernel("stat");
    of_the_kernel("run");
    const struct told half = told("stat", "--td-level=1", "halves"), both = told("stat", "--kernel", "halves");
    CHECK(*half.note && !*both.note && strncmp(half.bottleneck, "kernel", 6) != 0);
    divides(&half, both.slots);
    const struct told user = told("stat", "--td-level=1", "loops"), all = told("stat", "--kernel", "loops");
    CHECK(!*user.note && !*all.note && strncmp(user.bottleneck, "kernel", 6) != 0);
    divides(&user, all.slots);
    CHECK(!*told("stat", "--td-level=1", "leaves").note);

    char *const text[] = {beside("../release/topdown"), strdup("stat"), strdup(own_path()), strdup("calls"), NULL};
    CHECK_EQ(run_alone(text), 0);
    CHECK(strstr(stat_said(), "! ") != NULL && strstr(stat_said(), "are the kernel's, which was not counted") != NULL);
    CHECK(strstr(stat_said(), "from outside: kernel ") != NULL && strstr(stat_said(), " CPU time ") != NULL);
    return 0;
}
