/* pmu_open_beside [OPENS [SEED]]: td_open of registers while a competing group takes the counters. It opens or says TD_ENOTCOUNTING: the few
 * microseconds that it had the counters, all of them in the kernel, do not look like counters that stand still.
 * First at each system call of td_open from PERF_EVENT_IOC_ENABLE on, before and after it, where a tracer starts the
 * competing group; then at random times. */
#include "competing.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

enum { OPENED, NOT_COUNTING, WRONG };
static int cpu;

static int opens(uint32_t flags)
{
    const struct td_options options = options_of(flags, 0);
    td_t *td = NULL;
    char text[1024] = "";
    const int code = td_open(&td, &options);
    if (code == 0) {
        td_close(td);
        return OPENED;
    }
    td_last_error(text, sizeof text);
    if (code == TD_ENOTCOUNTING && strstr(text, "others hold") != NULL)
        return NOT_COUNTING;
    fprintf(stderr, "td_open with flags %u: %d (%s): %s\n", flags, code, td_strerror(code), text);
    return WRONG;
}

static uint32_t e_core_pmu(void)
{
    unsigned type = 0;
    FILE *file = fopen("/sys/bus/event_source/devices/cpu_atom/type", "r");
    CHECK(file != NULL);
    CHECK_EQ(fscanf(file, "%u", &type), 1);
    fclose(file);
    return type;
}

/* A group on the CPU that nothing rotates away, not counting yet: of SLOTS and PERF_METRICS, or on an E-core of all its
 * counters. */
static struct perf_group all_counters(uint32_t flags)
{
    struct perf_group group = {{0}, 0};
    struct perf_event_attr e_core_event = pinned_event(0xc5);
    if (flags & TD_FLAG_E_CORES) {
        e_core_event.type = e_core_pmu();
        for (int i = 0; i < 12; i++) /* more than there can be; the last find no place */
            add_event(&group, e_core_event, -1, cpu, -1);
        return group;
    }
    const int leader = add_event(&group, pinned_event(SLOTS_EVENT), -1, cpu, -1);
    add_event(&group, event_of(PERF_TYPE_RAW, METRIC_EVENT), -1, cpu, leader);
    return group;
}

static int goes_to_a_stop(pid_t child, int how)
{
    int status;
    CHECK_EQ(ptrace(how, child, NULL, NULL), 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSTOPPED(status) || WIFEXITED(status));
    return status;
}

/* td_open in a child; the competing group starts at this stop after the group was enabled. Returns how td_open ended. */
static int competing_at(int stop, uint32_t flags)
{
    struct perf_group group = all_counters(flags);
    struct __ptrace_syscall_info call;
    int status, seen = -1;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK_EQ(ptrace(PTRACE_TRACEME, 0, NULL, NULL), 0);
        raise(SIGSTOP);
        _exit(opens(flags));
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSTOPPED(status));
    CHECK_EQ(ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL), 0);
    while (seen < stop && WIFSTOPPED(status)) {
        status = goes_to_a_stop(child, PTRACE_SYSCALL);
        if (!WIFSTOPPED(status) || WSTOPSIG(status) != (SIGTRAP | 0x80))
            continue;
        CHECK(ptrace(PTRACE_GET_SYSCALL_INFO, child, (void *)sizeof call, &call) > 0);
        if (seen >= 0 || (call.op == PTRACE_SYSCALL_INFO_ENTRY && call.entry.nr == SYS_ioctl &&
                          call.entry.args[1] == PERF_EVENT_IOC_ENABLE))
            seen++;
    }
    CHECK(WIFSTOPPED(status)); /* td_open has come so far */
    group_runs(&group);
    status = goes_to_a_stop(child, PTRACE_CONT);
    group_ends(&group);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* until the competing group comes too late */
static void at_each_stop(uint32_t flags)
{
    int stop = 0, found[3] = {0, 0, 0};
    while (found[OPENED] == 0)
        found[competing_at(stop++, flags)]++;
    printf("flags %u: %d stops, at %d of them the counters stood still\n", flags, stop, found[WRONG]);
    CHECK(found[NOT_COUNTING] >= 2); /* before ENABLE and after it */
    CHECK_EQ(found[WRONG], 0);
}

/* A process whose competing group comes and goes, until it is killed; it holds the counters for longer than td_open waits, or not. */
static pid_t comes_and_goes(uint64_t seed)
{
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child > 0)
        return child;
    CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
    struct perf_group group = all_counters(0);
    for (;;) {
        usleep((useconds_t)(next_random(&seed) % 300));
        group_runs(&group);
        usleep((useconds_t)(next_random(&seed) % 70000));
        group_stops(&group);
    }
}

int main(int argc, char **argv)
{
    static const uint32_t flags[] = {TD_FLAG_REGISTERS, TD_FLAG_REGISTERS | TD_FLAG_NO_RDPMC};
    const int count = argc > 1 ? atoi(argv[1]) : (int)repeats(20);
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    int found[3] = {0, 0, 0};
    cpu = stay_on_a_cpu();
    td_close(measured(NULL));
    for (int k = 0; k < 2; k++)
        at_each_stop(flags[k]);

    const pid_t child = comes_and_goes(next_random(&seed));
    for (int i = 0; i < count; i++) {
        found[opens(flags[i % 2])]++;
        usleep((useconds_t)(next_random(&seed) % 1000));
    }
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    printf("%d opened, %d found the counters taken\n", found[OPENED], found[NOT_COUNTING]);
    CHECK_EQ(found[WRONG], 0);

    if (e_core() >= 0) {
        cpu = e_core();
        move_to(0, cpu);
        at_each_stop(TD_FLAG_E_CORES);
    }
    return 0;
}
