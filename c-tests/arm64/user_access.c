/* arm64, on the emulated machine, with kernel.perf_user_access 0 and 1, and changed while handles are open: which path td_info tells;
 * readings that take no system call but where the counters were not this thread's; totals that are read(2)'s, of threads that
 * migrate, over the end of a 32-bit counter; what a reading costs.
 * needs: arguments */
#include "phases.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>

enum { READINGS = 20000, THREADS = 4, ROUNDS = 200, AROUND = 4000 /* instructions of a reading and of read(2), at the most */ };

static void access_is(int value)
{
    FILE *file = fopen("/proc/sys/kernel/perf_user_access", "w");
    CHECK(file && fprintf(file, "%d", value) == 1 && fclose(file) == 0);
}

/* read(2) and ioctl(2) end the process from now on. */
static void no_more_read(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

/* Cycles of this thread in user mode, by an event that is read by read(2) alone. */
static int cycles(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE, .size = sizeof attr, .config = PERF_COUNT_HW_CPU_CYCLES,
                                   .exclude_kernel = 1};
    const int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

static uint64_t count_of(int fd)
{
    uint64_t count;
    CHECK(read(fd, &count, sizeof count) == sizeof count);
    return count;
}

/* Where in td_sample.opaque the totals of counters begin (src/sample.rs). */
enum { COUNTERS = 13 };

/* td_read's totals of slots beside the cycles that read(2) gives of the same stretch. */
static void totals_are_cycles(td_t *td, int fd, uint64_t instructions, int readings)
{
    struct td_sample before, now, last;
    const uint64_t width = info_of(td).slots_per_cycle;
    const uint64_t outer = count_of(fd);
    td_must(td_read(td, &before));
    const uint64_t inner = count_of(fd);
    last = before;
    for (int reading = 0; reading < readings; reading++) {
        work(instructions);
        td_must(td_read(td, &now));
        CHECK(now.slots > last.slots && now.time_enabled_ns >= last.time_enabled_ns && now.time_running_ns >= last.time_running_ns);
        for (size_t k = COUNTERS; k < sizeof now.opaque / sizeof now.opaque[0]; k++)
            CHECK(now.opaque[k] >= last.opaque[k]);
        last = now;
    }
    const uint64_t inside = count_of(fd) - inner;
    const uint64_t slots = last.slots - before.slots;
    if (slots + AROUND * width < inside * width || slots > (inside + inner - outer) * width + AROUND * width)
        FAIL("%lu slots of %lu cycles", (unsigned long)slots, (unsigned long)inside);
}

/* How many instructions (one is a nanosecond there) a reading takes, user and kernel together. */
static double cost_of(td_t *td)
{
    struct td_sample sample;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int k = 0; k < READINGS; k++)
        td_must(td_read(td, &sample));
    clock_gettime(CLOCK_MONOTONIC, &b);
    return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / READINGS;
}

static td_t *opened(uint32_t flags, uint32_t path)
{
    struct td_options options = options_of(flags, 0);
    td_t *td;
    td_must(td_open(&td, &options));
    info = info_of(td);
    if (info.path != path)
        FAIL("path %u: %s", info.path, info.note);
    return td;
}

static void *reads_and_moves(void *unused)
{
    td_t *td = opened(0, TD_PATH_RDPMC);
    struct td_sample sample, last = {0};
    uint64_t seed = 1;
    const int fd = cycles();
    for (int k = 0; k < ROUNDS; k++) {
        move_to(0, k % (int)sysconf(_SC_NPROCESSORS_ONLN));
        totals_are_cycles(td, fd, 1000 + next_random(&seed) % 100000, 3);
        sched_yield();
        td_must(td_read(td, &sample));
        CHECK(sample.slots > last.slots);
        last = sample;
    }
    close(fd);
    td_close(td);
    return unused;
}

/* With the filter: a reading of counters that the kernel gave back a moment ago takes the slow path, without a system call, too. */
static void without_system_calls(void)
{
    td_t *td = opened(0, TD_PATH_RDPMC);
    struct td_sample from, to;
    struct td_l1 l1;
    const int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN); /* (it reads a file) */
    td_must(td_read(td, &from));
    no_more_read();
    for (int k = 0; k < READINGS; k++) {
        td_must(td_read(td, &to));
        if (k % 100 == 0)
            usleep(10);
        if (k % 1000 == 0)
            move_to(0, k / 1000 % cpus);
        work(1000);
    }
    td_must(td_read(td, &to));
    td_must(td_decode_l1(&from, &to, &l1));
    CHECK(l1.running == 1.0 && l1.slots > 0);
    _exit(0);
}

int main(int argc, char **argv)
{
    const int long_ones = argc > 1 && strcmp(argv[1], "long") == 0;
    struct td_sample sample;
    access_is(0);
    td_t *by_read = opened(0, TD_PATH_READ);
    CHECK(strstr(info.note, "perf_user_access"));
    const int fd = cycles();
    totals_are_cycles(by_read, fd, 100000, 10);
    const double read_costs = cost_of(by_read);
    access_is(1);
    totals_are_cycles(by_read, fd, 100000, 10); /* it stays so */
    td_close(by_read);

    td_close(opened(TD_FLAG_NO_RDPMC, TD_PATH_READ));
    td_t *td = opened(0, TD_PATH_RDPMC);
    totals_are_cycles(td, fd, 100000, 100);
    const double costs = cost_of(td);
    printf("%s: a reading takes %.0f instructions, by read(2) %.0f\n", info.core, costs, read_costs);
    CHECK(costs * 5 < read_costs);
    if (long_ones) {
        const uint64_t before = count_of(fd);
        totals_are_cycles(td, fd, 3000000, 1500);
        CHECK(!core_is("hip08") || count_of(fd) - before > UINT64_C(1) << 31); /* where counters of 32 bits overflow */
    }
    td_must(td_reset(td));
    totals_are_cycles(td, fd, 100000, 10);

    pthread_t threads[THREADS];
    for (int k = 0; k < THREADS; k++)
        threads[k] = start_thread(reads_and_moves, NULL);
    for (int k = 0; k < THREADS; k++)
        join_thread(threads[k]);

    const pid_t child = fork();
    if (child == 0)
        without_system_calls();
    child_is_well(child);

    /* Switched off and on again while the handle is open: what it counts goes on. */
    for (int k = 0; k < 6; k++) {
        access_is(k % 2);
        totals_are_cycles(td, fd, 10000, 10);
        if (k / 2 == 1)
            usleep(1000);
        totals_are_cycles(td, fd, 10000, 10);
        td_must(td_reset(td));
        td_must(td_read(td, &sample));
    }
    td_close(td);
    td_close(opened(0, TD_PATH_RDPMC));
    close(fd);
    return 0;
}
