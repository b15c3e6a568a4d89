/* pmu_perf_agrees: `perf stat` of the same events and the library, with general counters, agree to the count on a process
 * that both measure from outside: it does the same job for each.
 * needs: counters or general-counters */
#include "pmu.h"
#include "internals.h"

/* Encodings of the events in the order of td_sample.counter[], as docs/sources.md has them. */
static const char *const EVENTS[] = {
    "event=0xc2,umask=0x2", "event=0xa4,umask=0x2", "event=0x9c,umask=0x1",         "event=0xc2,umask=0x1",
    "event=0xa4,umask=0x8", "event=0x9c,umask=0x1,cmask=0x6", "event=0xa4,umask=0x10",
};
enum { EACH = 7 };
static const char LATENCY_OF_8[] = "event=0x9c,umask=0x4";

static int to_child[2], from_child[2];

/* All that the child does between two blocking calls, and so the whole of what is counted. */
static void job(void)
{
    uint64_t seed = 1;
    for (int i = 0; i < 100; i++) {
        mix_is(random_mix(&seed));
        work(next_random(&seed) % 20000);
        if (i % 10 == 0)
            usleep(100);
    }
}

static void child(void)
{
    char one;
    cpu_set_t all;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    move_to(0, cpu);
    close(to_child[1]);
    while (read(to_child[0], &one, 1) == 1) {
        job();
        CHECK_EQ(write(from_child[1], &one, 1), 1);
    }
    _exit(0);
}

static void is_done(void)
{
    char one = 'x';
    CHECK_EQ(write(to_child[1], &one, 1), 1);
    CHECK_EQ(read(from_child[0], &one, 1), 1);
}

/* The emulated machine's counters of fractions of the slots keep what is left of an event for the next one that is counted
 * (rem in vpmu.c), each CPU's its own: on one CPU two counts of the same job may be one apart. Slots have no fractions. */
static void is_within_one(uint64_t count, uint64_t other)
{
    CHECK((count > other ? count - other : other - count) <= 1);
}

/* Waits until the child sleeps: it executes nothing more then. */
static void sleeps(pid_t pid)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    while (state != 'S') {
        FILE *file = fopen(path, "r");
        CHECK(file != NULL);
        CHECK_EQ(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
        fclose(file);
    }
}

/* What perf counts of one more job, in the order of the events. */
static int by_perf(pid_t pid, const char *const *event, int count, uint64_t *told)
{
    char command[2048], line[512];
    const char *pmu = p_core() < 0 ? "cpu" : "cpu_core";
    int length = snprintf(command, sizeof command, "perf stat -x, -p %d -e '{", (int)pid), lines = 0;
    for (int k = 0; k < count; k++)
        length += snprintf(command + length, sizeof command - (size_t)length, "%s%s/%s/", k ? "," : "", pmu, event[k]);
    snprintf(command + length, sizeof command - (size_t)length, "}:u' -- sh -c 'echo -n x >&%d; head -c 1 <&%d > /dev/null' 2>&1",
             to_child[1], from_child[0]);
    FILE *out = popen(command, "r");
    CHECK(out != NULL);
    while (fgets(line, sizeof line, out) != NULL) {
        char *end;
        const uint64_t n = strtoull(line, &end, 10);
        if (lines < count && end > line && *end == ',')
            told[lines++] = n;
        else
            fputs(line, stderr);
    }
    CHECK_EQ(pclose(out), 0);
    return lines;
}

int main(void)
{
    struct td_sample before, after;
    const char *event[1 + EACH];
    uint64_t told[1 + EACH];
    if (getenv("MACHINE") == NULL)
        needs_known_mix();
    if (system("perf --version > /dev/null 2>&1") != 0)
        SKIP("perf is not installed");
    td_close(counted()); /* or there are none */
    struct td_options options = options_of(TD_FLAG_COUNTERS | TD_FLAG_BARE, 0);
    td_t *td = measured(&options);
    const struct td_info info = info_of(td);
    td_close(td);
    CHECK(pipe(to_child) == 0 && pipe(from_child) == 0);
    const pid_t pid = fork();
    if (pid == 0)
        child();
    is_done(); /* what is resolved at the first call is */
    sleeps(pid);

    options.level = info.level;
    options.target = TD_TARGET_TASK;
    options.id = pid;
    td_must(td_open(&td, &options));
    td_must(td_read(td, &before));
    is_done();
    sleeps(pid);
    td_must(td_read(td, &after));
    td_close(td); /* it has SLOTS, of which there is one */
    CHECK_EQ(after.time_running_ns - before.time_running_ns, after.time_enabled_ns - before.time_enabled_ns);

    const int count = 1 + (info.level == 1 ? 3 : EACH);
    event[0] = (int)info.counters == count ? "event=0xa4,umask=0x1" : "event=0x0,umask=0x4";
    for (int k = 1; k < count; k++)
        event[k] = k == 6 && info.slots_per_cycle == 8 ? LATENCY_OF_8 : EVENTS[k - 1];
    CHECK_EQ(by_perf(pid, event, count, told), count);
    CHECK_EQ(after.slots - before.slots, told[0]);
    CHECK(told[0] > 1000000);
    for (int k = 1; k < count; k++)
        is_within_one(own(&after)->counter[k - 1] - own(&before)->counter[k - 1], told[k]);
    printf("%d events agree to the count, %llu slots among them\n", count, (unsigned long long)told[0]);
    close(to_child[1]);
    child_is_well(pid);
    return 0;
}
