/* `topdown record` where nothing tells how slots divide: a profile of time, whose intervals have what each function took, as an ordinary user; in
 * threads, in processes that are started, after execs, of a process that runs already, and of all CPUs; beside a function that is in the
 * kernel for most of its time, too. It says why there are no slots. Where perf_event_open is refused --ptrace has the same of a command.
 * needs: no-counters */
#include "lib/stat.h"
#include "lib/functions.h"
#include "lib/profile.h"
#include "coverage.h"
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>

FUNCTION(much)
FUNCTION(less)

/* Instructions of user mode: two a turn, and of a call five. */
enum { TURNS = 100000, TURNS_IN_STEP = 124300, NAP_US = 3000, ROUNDS_A_NAP = 5, MAPPED = 64 << 20, MAPPED_ROUNDS = 300, TIMES_LESS = 3, ROUNDS_OF_SHORT = 5, KERNEL_CALLS = 2000, EXECS = 10 };
static int rounds;
static bool has_naps, is_mapping;
static uint64_t turns = TURNS;

static __attribute__((noinline, noclone)) void calls(uint64_t count)
{
    long number = SYS_getppid;
    __asm__ volatile("1: mov %1, %%rax\n syscall\n dec %0\n jnz 1b" : "+r"(count) : "r"(number) : "rax", "rcx", "r11", "cc", "memory");
}

static struct timespec now(void)
{
    struct timespec time;
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &time), 0);
    return time;
}

static double seconds_since(struct timespec from)
{
    const struct timespec to = now();
    return (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
}

static void *works(void *has_calls)
{
    for (int round = 0; round < rounds; round++) {
        much(TIMES_LESS * turns);
        less(turns);
        if (has_calls)
            calls(KERNEL_CALLS);
        if (has_naps)
            usleep(NAP_US);
        if (is_mapping) {
            void *const all = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
            CHECK(all != MAP_FAILED && munmap(all, MAPPED) == 0);
        }
    }
    return NULL;
}

/* The program: how, and how many rounds. */
static int program(char **argv)
{
    pthread_t other;
    const char *const how = argv[2];
    const int left = strncmp(how, "execs", 5) == 0 ? atoi(how + 5) : 0;
    rounds = atoi(argv[3]) / (left > 0 ? EXECS : 1);
    is_mapping = strcmp(how, "maps") == 0; /* most of its time is in calls that nothing interrupts */
    if (strcmp(how, "in step") == 0) /* with a timer of one millisecond */
        turns = TURNS_IN_STEP;
    has_naps = strcmp(how, "naps") == 0; /* a function always follows one */
    rounds /= has_naps ? ROUNDS_A_NAP : 1;
    rounds = is_mapping ? (int)repeats(MAPPED_ROUNDS) : rounds;
    if (strcmp(how, "threads") == 0) {
        CHECK_EQ(pthread_create(&other, NULL, works, NULL), 0);
        works(NULL);
        CHECK_EQ(pthread_join(other, NULL), 0);
    } else if (strcmp(how, "leader ends") == 0) { /* and the other thread goes on */
        CHECK_EQ(pthread_create(&other, NULL, works, NULL), 0);
        pthread_exit(NULL);
    } else if (strcmp(how, "started") == 0) {
        const pid_t child = fork();
        if (child == 0) {
            works(NULL);
            _exit(0);
        }
        CHECK_EQ(waitpid(child, NULL, 0), child);
    } else if (strcmp(how, "short") == 0) { /* processes that end soon, and each first does the one */
        for (int k = 0; k < rounds / ROUNDS_OF_SHORT; k++) {
            const pid_t child = fork();
            if (child == 0) {
                much((uint64_t)ROUNDS_OF_SHORT * TIMES_LESS * turns);
                less(ROUNDS_OF_SHORT * turns);
                _exit(0);
            }
            CHECK_EQ(waitpid(child, NULL, 0), child);
        }
    } else if (strcmp(how, "changes") == 0) { /* after a second */
        for (int k = 0; k < 2; k++)
            for (struct timespec from = now(); seconds_since(from) < 1;)
                k ? less(turns) : much(turns);
    } else {
        works(strcmp(how, "calls") == 0 ? &other : NULL);
    }
    if (left > 1) {
        char again[32];
        snprintf(again, sizeof again, "execs%d", left - 1);
        argv[2] = again;
        execv(argv[0], argv);
    }
    return 0;
}

/* Records so, into this file; what follows the options is the program, if `how` is not NULL. */
static void recorded(const char *const *options, const char *how, const char *file)
{
    char *all[24] = {beside("../release/topdown"), strdup("record"), strdup("-o"), in_scratch(file)};
    int n = 4;
    while (*options)
        all[n++] = strdup(*options++);
    char *const command[] = {strdup("--"), strdup(own_path()), strdup("program"), strdup(how ? how : ""), strdup("3000")};
    for (size_t k = 0; how && k < sizeof command / sizeof command[0]; k++)
        all[n++] = command[k];
    const int status = run_alone(all);
    if (status != 0)
        FAIL("%x: %s", (unsigned)status, stat_said());
}

/* The function's part of the time of both is what it took of it, within its interval. */
static void time_is_true(const char *how, const char *by)
{
    static struct csv csv;
    csv_read(&csv, in_scratch("r.csv"));
    double time[2], error[2];
    for (int k = 0; k < 2; k++) {
        const int row = row_of(&csv, k ? "less" : "much", "own");
        CHECK(row > 0 && strcmp(csv_text(&csv, row, "time_by"), by) == 0);
        time[k] = number(&csv, row, "time", "");
        error[k] = number(&csv, row, "time", "_high") - number(&csv, row, "time", "_low");
        fprintf(stderr, "%s: %s %.3f, within %.3f\n", how, k ? "less" : "much", time[k], error[k] / 2);
    }
    const double off = time[0] - TIMES_LESS * time[1], half = (error[0] + TIMES_LESS * error[1]) / 2;
    lies_within(how, off, off - half, off + half, 0);
    if (strcmp(how, "calls") == 0)
        return;
    CHECK(fabs(time[0] + time[1] - 1) < 0.02 || strcmp(how, "all CPUs") == 0);
    /* (stops cost more, and are fewer on a machine that does other things, too) */
    CHECK(strcmp(how, "naps") == 0 || error[0] < (strcmp(by, "stops") == 0 ? 0.5 : 0.2));
}

/* The same where samples miss most of one function, so that the intervals are not around what is told. */
static void truth_is_within(const char *how, const char *by)
{
    static struct csv csv;
    csv_read(&csv, in_scratch("r.csv"));
    for (int k = 0; k < 2; k++) {
        const int row = row_of(&csv, k ? "less" : "much", "own");
        CHECK(row > 0 && strcmp(csv_text(&csv, row, "time_by"), by) == 0);
        const double low = number(&csv, row, "time", "_low"), high = number(&csv, row, "time", "_high"), truth = (k ? 1.0 : TIMES_LESS) / (1 + TIMES_LESS);
        fprintf(stderr, "%s: %s %.3f to %.3f\n", how, k ? "less" : "much", low, high);
        CHECK(low <= truth && truth <= high);
    }
}

/* The number behind this key, the first after `from`. */
static double behind(const char *text, const char *from, const char *key)
{
    const char *at = strstr(text, from);
    at = at ? strstr(at, key) : NULL;
    CHECK(at != NULL);
    return strtod(at + strlen(key), NULL);
}

/* What is in user mode at the least, as the interval of all of it says, is no more than that was: two instructions a turn, of a nanosecond
 * each. One in forty of such intervals ends above the truth (they are of 95 %), but not two one after the other. */
static void kernel_is_not_told_as_user_mode(void)
{
    const double user = 2e-9 * (double)repeats(MAPPED_ROUNDS) * (TIMES_LESS + 1) * TURNS;
    int above = 0;
    do {
        recorded((const char *[]){"--ptrace", NULL}, "maps", "r.json");
        const char *const text = text_in("r.json");
        const double all = 1e-9 * behind(text, "\"time_alone\"", "\"events_in_all\": ");
        const double least = behind(text, "\"cores\"", "\"low\": ");
        fprintf(stderr, "maps: %.3f s in all, of which in user mode %.3f or more, in truth %.3f\n", all, least * all, user);
        CHECK(all > 2 * user);
        above = least * all > user ? above + 1 : 0;
    } while (above == 1);
    CHECK_EQ(above, 0);
}

int main(int argc, char **argv)
{
    if (argc > 3 && strcmp(argv[1], "program") == 0)
        return program(argv);
    stat_begins_without_mix();
    kernel_never_lowers();
    static const char *const HOWS[] = {"alone", "in step", "naps", "threads", "leader ends", "started", "execs10", "calls"};
    /* (each in the gate by one of the two) */
    for (size_t k = 0; k < sizeof HOWS / sizeof HOWS[0]; k += in_gate() ? 2 : 1) {
        recorded((const char *[]){NULL}, HOWS[k], "r.csv");
        time_is_true(HOWS[k], "timer");
    }
    recorded((const char *[]){NULL}, "short", "r.csv");
    truth_is_within("short", "timer");
    /* one that runs already */
    char pid[16];
    const pid_t child = fork();
    if (child == 0) { /* (what is another user's has no names) */
        CHECK(geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0));
        _exit(execl(own_path(), own_path(), "program", "alone", "1000000000", NULL));
    }
    CHECK(child > 0);
    snprintf(pid, sizeof pid, "%d", (int)child);
    recorded((const char *[]){"-p", pid, "--duration", "1", NULL}, NULL, "r.csv");
    time_is_true("a process", "timer");
    set_until_end("/proc/sys/kernel/perf_event_paranoid", "-1\n");
    recorded((const char *[]){"-a", "--duration", "1", NULL}, NULL, "r.csv");
    time_is_true("all CPUs", "timer");
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    /* what there is to say */
    recorded((const char *[]){"--duration", "0.5", NULL}, "changes", "r.csv");
    static struct csv csv;
    csv_read(&csv, in_scratch("r.csv"));
    CHECK(row_of(&csv, "much", "own") > 0 && row_of(&csv, "less", "own") <= 0);
    recorded((const char *[]){NULL}, "alone", "r.txt");
    fprintf(stderr, "%s", text_in("r.txt"));
    CHECK(strstr(text_in("r.txt"), "How slots divide cannot be told here, and this is time alone: ") != NULL);
    recorded((const char *[]){"--kernel", NULL}, "calls", "r.csv");
    csv_read(&csv, in_scratch("r.csv"));
    CHECK(row_of(&csv, "much", "own") > 0 && row_of(&csv, "less", "own") > 0);
    const double user = number(&csv, row_of(&csv, "much", "own"), "time", "") + number(&csv, row_of(&csv, "less", "own"), "time", "");
    fprintf(stderr, "with the kernel: %.3f in the two\n", user);
    CHECK(user > 0 && user < 0.9);
    /* without perf_event_open, by stops; without these it says what there is */
    set_until_end("/proc/sys/kernel/perf_event_paranoid", "3\n");
    kernel_is_not_told_as_user_mode();
    for (size_t k = in_gate(); k < sizeof HOWS / sizeof HOWS[0]; k += in_gate() ? 2 : 1) {
        recorded((const char *[]){"--ptrace", NULL}, HOWS[k], "r.csv");
        time_is_true(HOWS[k], "stops");
    }
    recorded((const char *[]){"--ptrace", NULL}, "short", "r.csv");
    truth_is_within("short", "stops");
    recorded((const char *[]){NULL}, "alone", "r.txt");
    CHECK(strstr(stat_said(), "nothing is recorded: ") != NULL && strstr(stat_said(), "; --ptrace stops the command's threads") != NULL);
    return 0;
}
