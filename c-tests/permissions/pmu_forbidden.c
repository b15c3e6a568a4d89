/* What is forbidden after td_open: whatever may not be opened any more, what is open is read on, and right. A second handle
 * gets its documented code, and neither leaves anything behind nor touches the first. Each case is a process of its own. */
#include "competing.h"
#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { REGION = 1000000 };

static void filter(struct sock_filter *lines, size_t count)
{
    struct sock_fprog program = {(unsigned short)count, lines};
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* a container's profile */
static void filter_that_denies(void)
{
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    filter(lines, sizeof lines / sizeof lines[0]);
}

/* a sandbox: what SECCOMP_MODE_STRICT allows, which forbids RDTSC besides */
static void filter_that_kills(void)
{
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    filter(lines, sizeof lines / sizeof lines[0]);
}

static void writes(const char *path, const char *value)
{
    const int fd = open(path, O_WRONLY);
    CHECK(fd >= 0);
    CHECK(write(fd, value, strlen(value)) > 0);
    close(fd);
}

static void paranoid_3(void)
{
    writes("/proc/sys/kernel/perf_event_paranoid", "3");
    CHECK_EQ(setresuid(65534, 65534, 65534), 0);
}

static void another_user(void)
{
    writes("/proc/sys/kernel/perf_event_paranoid", "3");
    CHECK_EQ(setgid(65534), 0);
    CHECK_EQ(setuid(65534), 0); /* and with it, all capabilities */
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), 0);
}

static void no_descriptors(void)
{
    const int next = dup(2);
    const struct rlimit few = {(rlim_t)next + 2, (rlim_t)next + 2}; /* files can be read, but a group not opened */
    close(next);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
}

/* RDPMC is for every process, and then again for those that have an event: this one has, all the time */
static void rdpmc_for_all(void)
{
    const char *path = p_core() < 0 ? "/sys/bus/event_source/devices/cpu/rdpmc" : "/sys/bus/event_source/devices/cpu_core/rdpmc";
    writes(path, "2");
    work(REGION);
    writes(path, "1");
}

static int entries_of(const char *path)
{
    int count = 0;
    DIR *directory = opendir(path);
    if (directory == NULL)
        return -1;
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

struct change {
    const char *name;
    void (*comes)(void);
    int code;         /* what a second td_open says then */
    const char *word; /* and why */
};
static const struct change CHANGES[] = {
    {"perf_event_paranoid 3 and another user", paranoid_3, -EACCES, "perf_event_paranoid is 3"},
    {"another user, without capabilities, not dumpable", another_user, -EACCES, "perf_event_paranoid is 3"},
    {"seccomp denies perf_event_open", filter_that_denies, -EPERM, "seccomp"},
    {"RLIMIT_NOFILE lowered", no_descriptors, -EMFILE, "ulimit -n"},
    {"rdpmc 2 and back to 1", rdpmc_for_all, 0, ""},
    {"seccomp kills at all but read, write, exit and sigreturn", filter_that_kills, 1, ""},
};

/* The readings of regions right behind each other, each in a window of its own as far as the budget goes. No system call but
 * the library's own, so nothing is checked before the end. */
enum { REGIONS = 40 };
static struct td_sample samples[2 * REGIONS];
static int reads_counters;

static int readings(td_t *td)
{
    int code = 0;
    for (int i = 0; i < REGIONS && code == 0; i++) {
        code = td_read(td, &samples[2 * i]);
        work(REGION);
        code = code ? code : td_read(td, &samples[2 * i + 1]);
    }
    return code;
}

static int is_near(const double *share, const double *truth, int count, double error)
{
    for (int k = 0; k < count; k++)
        if (!(fabs(share[k] - truth[k]) <= error))
            return 0;
    return 1;
}

/* Without printing: what would be told is the line where it went wrong. */
static int wrong_line(const struct vm_mix mix, const struct td_sample *earlier, double width)
{
    const struct truth truth = truth_of(mix);
    double share[8];
    struct td_l1 l1;
    struct td_l2 l2;
    for (int i = 0; i < 2 * REGIONS; i++) {
        const struct td_sample *before = i == 0 ? earlier : &samples[i - 1];
        if (samples[i].slots < before->slots || samples[i].time_enabled_ns < before->time_enabled_ns)
            return __LINE__;
    }
    for (int i = 0; i < REGIONS; i++) {
        if (td_decode_l1(&samples[2 * i], &samples[2 * i + 1], &l1) != 0)
            return __LINE__;
        l1_array(&l1, share);
        if (!is_near(share, truth.l1, 4, l1.error) || l1.error > 0.05 || l1.running < 0.99)
            return __LINE__;
        if (fabs((double)l1.slots - REGION * width) > 10000 * width)
            return __LINE__;
        if (own(&samples[0])->base.level == 2) {
            if (td_decode_l2(&samples[2 * i], &samples[2 * i + 1], &l2) != 0)
                return __LINE__;
            l2_array(&l2, share);
            if (!is_near(share, truth.l2, 8, l2.error))
                return __LINE__;
        }
    }
    const int windows = own(&samples[2 * REGIONS - 1])->base.window != own(earlier)->base.window;
    return windows || reads_counters ? 0 : __LINE__; /* read(2) was made use of, as counters by RDPMC have no need to */
}

static void reads_on(const struct change *change, uint32_t flags)
{
    const struct td_options options = options_of(flags, 0);
    struct td_sample before, earlier;
    struct td_l1 l1;
    td_t *none = NULL;
    td_t *td = measured(&options);
    const double width = info_of(td).slots_per_cycle;
    reads_counters = takes_counters(td) && !(flags & TD_FLAG_NO_RDPMC);
    const int mappings = control_pages();
    mix_is(MIXES[1]);
    td_must(td_reset(td));
    for (int i = 0; i < 3; i++)
        td_must(td_read(td, &earlier));
    change->comes();
    int line = readings(td) == 0 ? wrong_line(MIXES[1], &earlier, width) : __LINE__;
    if (change->code == 1)
        syscall(SYS_exit, line != 0);
    if (line != 0)
        FAIL("%s: what line %d says does not hold", change->name, line);

    const int descriptors = entries_of("/proc/self/fd");
    for (int i = 0; i < 3; i++) {
        const int code = td_open(&none, &options);
        if (code != change->code || (code != 0 && !last_error_with(change->word)))
            FAIL("%s: td_open says %d: %s", change->name, code, code ? last_error_with("") : "");
        td_close(code == 0 ? none : NULL);
    }
    CHECK_EQ(entries_of("/proc/self/fd"), descriptors);
    CHECK(change->comes == another_user || control_pages() == mappings);
    int tries = 0;
    do { /* until the next rotation, which uses what a second handle leaves free, and its own counters count again */
        CHECK(tries++ < 100); /* of more than a rotation each */
        td_must(td_read(td, &before));
        work(10 * REGION);
        td_must(td_read(td, &earlier));
        td_must(td_decode_l1(&before, &earlier, &l1));
    } while (l1.flags & TD_SAMPLE_UNCORRECTED);
    CHECK_EQ(readings(td), 0);
    line = wrong_line(MIXES[1], &earlier, width);
    if (line != 0)
        FAIL("%s, after td_open: what line %d says does not hold", change->name, line);
    td_must(td_decode_l1(NULL, &samples[2 * REGIONS - 1], &l1));
    l1_is(&l1, MIXES[1], l1.error);
    td_close(td);
    exit(0);
}

int main(void)
{
    char paranoid[32] = "";
    td_close(measured(NULL));
    stay_on_a_cpu();
    if (!emulated() || geteuid() != 0)
        SKIP("changes the machine's settings");
    FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "r");
    CHECK(file != NULL && fscanf(file, "%31s", paranoid) == 1);
    fclose(file);
    for (size_t i = 0; i < 2 * sizeof CHANGES / sizeof CHANGES[0]; i++) {
        int status = -1;
        const pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0)
            reads_on(&CHANGES[i / 2], i % 2 ? TD_FLAG_NO_RDPMC : 0);
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        writes("/proc/sys/kernel/perf_event_paranoid", paranoid);
        if (status != 0)
            FAIL("%s, flags %u: status %#x", CHANGES[i / 2].name, i % 2 ? TD_FLAG_NO_RDPMC : 0, (unsigned)status);
    }
    return 0;
}
