/* perf-record.h: what the kernel writes about this process reads well through these structs. */
#define _GNU_SOURCE
#include <perf-iter.h>
#include <perf-record.h>

#include "counters.h"
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

/* programs print members with %llu, so they are the kernel's types and not those of stdint.h */
#define IS_U64(type, member) _Static_assert(_Generic(((struct type *)0)->member, __u64: 1, default: 0), #member)
IS_U64(perf_record_lost_samples, lost);
IS_U64(perf_record_aux, aux_offset);
IS_U64(perf_record_sample_ip, ip);

/* where include/uapi/linux/perf_event.h has them */
#define AT(type, member, offset) _Static_assert(offsetof(struct type, member) == (offset), #type "." #member)
AT(perf_record_mmap, addr, 16);
AT(perf_record_mmap, pgoff, 32);
AT(perf_record_mmap, filename, 40);
AT(perf_record_mmap2, maj, 40);
AT(perf_record_mmap2, ino, 48);
AT(perf_record_mmap2, prot, 64);
AT(perf_record_mmap2, filename, 72);
AT(perf_record_comm, comm, 16);
AT(perf_record_exit, tid, 16);
AT(perf_record_exit, time, 24);
AT(perf_record_fork, ptid, 20);
AT(perf_record_throttle, stream_id, 24);
AT(perf_record_read_time_id, id, 40);
AT(perf_record_read_time_id_group, cntr, 40);
AT(perf_record_sample_ip, ip, 16);
AT(perf_record_sample_ip_tid_time, time, 32);
AT(perf_record_sample_ip_cpu_time, time, 24);
AT(perf_record_sample_ip_cpu_time, cpu, 32);
AT(perf_record_sample_ip_addr, data_src, 40);
AT(perf_record_sample_ip_cpu_branch, cpu, 32);
AT(perf_record_sample_ip_cpu_branch, nr, 40);
AT(perf_record_sample_ip_cpu_branch, lbr, 48);
AT(perf_record_sample_ip_tid_callchain, ips, 48);
AT(perf_record_sample_ip_tid_regs, regs, 48);
AT(perf_record_sample_ip_tid_regs_group, cntr, 64);
AT(perf_record_itrace_start, tid, 12);
AT(perf_record_aux, flags, 24);
AT(perf_record_lost, lost, 16);
AT(perf_record_lost_samples, lost, 8);
AT(perf_record_switch_cpu_wide, next_prev_tid, 12);
AT(perf_record_namespaces, name_spaces, 24);
AT(perf_record_ksymbol, flags, 22);
AT(perf_record_ksymbol, name, 24);
AT(perf_record_bpf_event, tag, 16);
AT(perf_record_cgroup, path, 16);
_Static_assert(sizeof(struct perf_record_switch) == 8, "a header");
_Static_assert(sizeof(struct perf_sample_branch_stack) == 24, "as struct perf_branch_entry");
_Static_assert(sizeof(struct perf_record_bpf_event) == 24, "");
_Static_assert(PERF_BPF_EVENT_PROG_UNLOAD == 2, "");

static void open_ring(struct perf_fd *fd, struct perf_event_attr attr)
{
    if (perf_fd_open(fd, &attr, 4) < 0)
        SKIP("this event does not open: %s", strerror(errno));
}

/* The next record of this type, among others. */
static void *next(struct perf_iter *iter, uint32_t type, void *buffer, int size)
{
    while (!perf_iter_finished(iter)) {
        struct perf_event_header *hdr = perf_buffer_read(iter, buffer, size);
        CHECK(hdr != NULL);
        if (hdr->type == type)
            return hdr;
    }
    FAIL("no record of type %u", type);
    return NULL;
}

static void of_the_process(void)
{
    struct perf_event_attr attr = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
    uint64_t buffer[1024];
    struct perf_iter iter;
    struct perf_fd fd;
    struct stat file;
    attr.mmap = attr.mmap2 = attr.mmap_data = attr.task = attr.context_switch = 1;
    open_ring(&fd, attr);
    const int exe = open("/proc/self/exe", O_RDONLY);
    CHECK_EQ(fstat(exe, &file), 0);
    void *map = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, exe, 4096);
    CHECK(map != MAP_FAILED);
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    sleep_a_little();

    perf_iter_init(&iter, &fd);
    struct perf_record_mmap2 *mapped = next(&iter, PERF_RECORD_MMAP2, buffer, sizeof buffer);
    while (mapped->addr != (uintptr_t)map)
        mapped = next(&iter, PERF_RECORD_MMAP2, buffer, sizeof buffer);
    CHECK(mapped->pid == (uint32_t)getpid() && mapped->tid == mapped->pid);
    CHECK(mapped->len == 8192 && mapped->pgoff == 4096 && mapped->prot == PROT_READ && (mapped->flags & MAP_PRIVATE));
    CHECK_EQ(mapped->ino, file.st_ino);
    CHECK(strstr(mapped->filename, "records") != NULL);
    struct perf_record_fork *forked = next(&iter, PERF_RECORD_FORK, buffer, sizeof buffer);
    CHECK(forked->pid == (uint32_t)child && forked->tid == (uint32_t)child);
    CHECK(forked->ppid == (uint32_t)getpid() && forked->ptid == (uint32_t)getpid() && forked->time != 0);
    struct perf_record_switch *off = next(&iter, PERF_RECORD_SWITCH, buffer, sizeof buffer);
    CHECK(off->hdr.misc & PERF_RECORD_MISC_SWITCH_OUT);
    CHECK_EQ(off->hdr.size, sizeof *off);
    perf_iter_continue(&iter);
    perf_fd_close(&fd);

    CHECK_EQ(munmap(map, 8192), 0);
    attr.mmap2 = 0;
    open_ring(&fd, attr);
    map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, exe, 0);
    perf_iter_init(&iter, &fd);
    struct perf_record_mmap *old = next(&iter, PERF_RECORD_MMAP, buffer, sizeof buffer);
    while (old->addr != (uintptr_t)map) /* the ring itself is the first */
        old = next(&iter, PERF_RECORD_MMAP, buffer, sizeof buffer);
    CHECK(old->len == 4096 && old->pgoff == 0);
    CHECK(strstr(old->filename, "records") != NULL);
    perf_fd_close(&fd);
    close(exe);
}

/* Touches new pages from here, each a sample. */
static __attribute__((noinline)) void touch(volatile char *pages, int count)
{
    for (int i = 0; i < count; i++)
        pages[4096 * i] = 1;
}

/* What a sample has of its time, its thread and its CPU. */
static void is_now(uint64_t time)
{
    struct timespec now;
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    const uint64_t since_boot = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    CHECK(time <= since_boot && time + 600000000000 > since_boot);
}

static void is_here(uint32_t pid, uint32_t tid)
{
    CHECK_EQ(pid, getpid());
    CHECK_EQ(tid, getpid());
}

/* Faults of new pages, each a sample of this type; and an event that is counted in its group. */
enum { PAGES = 8 };
struct sampled {
    struct perf_fd fd;
    struct perf_iter iter;
    int member;
    char *pages;
    uint64_t id, member_id, buffer[1024];
    struct perf_event_header *hdr;
};

static void sample(struct sampled *s, struct perf_event_attr attr, uint64_t sample_type)
{
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | sample_type;
    attr.exclude_callchain_kernel = 1;
    attr.use_clockid = 1;
    attr.clockid = CLOCK_MONOTONIC;
    s->pages = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(s->pages != MAP_FAILED);
    CHECK_EQ(madvise(s->pages, PAGES * 4096, MADV_NOHUGEPAGE), 0);
    open_ring(&s->fd, attr);
    struct perf_event_attr member = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN);
    member.read_format = attr.read_format;
    member.use_clockid = 1; /* as the leader */
    member.clockid = CLOCK_MONOTONIC;
    s->member = (int)syscall(SYS_perf_event_open, &member, 0, -1, s->fd.pfd, 0);
    CHECK(s->member >= 0);
    CHECK_EQ(ioctl(s->fd.pfd, PERF_EVENT_IOC_ID, &s->id), 0);
    CHECK_EQ(ioctl(s->member, PERF_EVENT_IOC_ID, &s->member_id), 0);
    touch(s->pages, PAGES);
    perf_iter_init(&s->iter, &s->fd);
    s->hdr = next(&s->iter, PERF_RECORD_SAMPLE, s->buffer, sizeof s->buffer);
}

static void end(struct sampled *s)
{
    close(s->member);
    perf_fd_close(&s->fd);
    CHECK_EQ(munmap(s->pages, PAGES * 4096), 0);
}

static void of_samples(void)
{
    const struct perf_event_attr faults = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
    struct perf_event_attr attr = faults;
    struct sampled s;

    sample(&s, faults, 0);
    const struct perf_record_sample_ip *ip = (void *)s.hdr;
    CHECK_EQ(ip->hdr.size, sizeof *ip);
    CHECK_EQ(ip->id, s.id);
    end(&s);

    sample(&s, faults, PERF_SAMPLE_TID | PERF_SAMPLE_TIME);
    const struct perf_record_sample_ip_tid_time *tid = (void *)s.hdr;
    CHECK_EQ(tid->hdr.size, sizeof *tid);
    CHECK_EQ(tid->id, s.id);
    is_here(tid->pid, tid->tid);
    is_now(tid->time);
    end(&s);

    sample(&s, faults, PERF_SAMPLE_TIME | PERF_SAMPLE_CPU);
    const struct perf_record_sample_ip_cpu_time *cpu = (void *)s.hdr;
    CHECK_EQ(cpu->hdr.size, sizeof *cpu);
    CHECK_EQ(cpu->id, s.id);
    CHECK(cpu->cpu < (uint32_t)sysconf(_SC_NPROCESSORS_CONF) && cpu->res == 0);
    is_now(cpu->time);
    end(&s);

    sample(&s, faults, PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC);
    const struct perf_record_sample_ip_addr *addr;
    for (addr = (void *)s.hdr; addr->addr != (uintptr_t)s.pages + 4096; addr = next(&s.iter, PERF_RECORD_SAMPLE, s.buffer, sizeof s.buffer))
        CHECK_EQ(addr->hdr.size, sizeof *addr);
    CHECK_EQ(addr->id, s.id);
    CHECK_EQ(addr->weight, 0);
    CHECK(addr->data_src != 0 && addr->data_src != addr->addr); /* "not available" is no zero */
    end(&s);

    sample(&s, faults, PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN);
    const struct perf_record_sample_ip_tid_callchain *chain = (void *)s.hdr;
    CHECK_EQ(chain->id, s.id);
    is_here(chain->pid, chain->tid);
    is_now(chain->time);
    CHECK(chain->nr >= 2);
    CHECK_EQ(chain->hdr.size, sizeof *chain + 8 * chain->nr);
    CHECK_EQ(chain->ips[0], (int64_t)PERF_CONTEXT_USER);
    CHECK_EQ(chain->ips[1], chain->ip);
    end(&s);

    attr.sample_regs_user = 1 << 7 | 1 << 8; /* SP, IP */
    sample(&s, attr, PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER);
    const struct perf_record_sample_ip_tid_regs *regs = (void *)s.hdr;
    CHECK_EQ(regs->hdr.size, sizeof *regs + 2 * 8);
    CHECK_EQ(regs->id, s.id);
    is_here(regs->pid, regs->tid);
    is_now(regs->time);
    CHECK_EQ(regs->abi, PERF_SAMPLE_REGS_ABI_64);
    CHECK_EQ(regs->regs[1], regs->ip);
    end(&s);

    attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    for (int with_registers = 0; with_registers < 2; with_registers++) {
        sample(&s, attr, PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_READ | (with_registers ? PERF_SAMPLE_REGS_USER : 0));
        const struct perf_record_sample_ip_tid_regs_group *group = (void *)s.hdr;
        while (group->nr != 2 || group->cntr[1].value == 0) /* (the member was not there yet) */
            group = next(&s.iter, PERF_RECORD_SAMPLE, s.buffer, sizeof s.buffer);
        CHECK_EQ(group->hdr.size, sizeof *group + 2 * sizeof group->cntr[0] + (with_registers ? 3 * 8 : 0));
        CHECK_EQ(group->id, s.id);
        is_here(group->pid, group->tid);
        is_now(group->time);
        CHECK(group->time_enabled != 0 && group->time_enabled == group->time_running);
        CHECK_EQ(group->cntr[0].id, s.id);
        CHECK_EQ(group->cntr[1].id, s.member_id);
        CHECK(group->cntr[0].value >= group->cntr[1].value);
        const uint64_t *behind = (const void *)&group->cntr[2]; /* abi and registers */
        CHECK(!with_registers || (behind[0] == PERF_SAMPLE_REGS_ABI_64 && behind[2] == group->ip));
        end(&s);
    }
}

/* Where the CPU records branches. */
static void of_branches(void)
{
    struct perf_event_attr attr = attr_of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
    uint64_t buffer[1024];
    struct perf_iter iter;
    struct perf_fd fd;
    attr.sample_period = 100000;
    attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_CPU | PERF_SAMPLE_TIME | PERF_SAMPLE_BRANCH_STACK;
    attr.branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY;
    attr.use_clockid = 1;
    attr.clockid = CLOCK_MONOTONIC;
    if (perf_fd_open(&fd, &attr, 4) < 0) {
        printf("no branch records here: %s\n", strerror(errno));
        return;
    }
    work(10000000);
    perf_iter_init(&iter, &fd);
    const struct perf_record_sample_ip_cpu_branch *branch = next(&iter, PERF_RECORD_SAMPLE, buffer, sizeof buffer);
    CHECK_EQ(branch->hdr.size, sizeof *branch + branch->nr * sizeof branch->lbr[0]);
    is_now(branch->time);
    CHECK(branch->cpu < (uint32_t)sysconf(_SC_NPROCESSORS_CONF) && branch->res == 0);
    perf_fd_close(&fd);
}

/* A child that has the event, too: its name, and its end. */
static void of_a_child(void)
{
    struct perf_event_attr attr = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
    uint64_t buffer[1024];
    struct perf_iter iter;
    struct perf_fd fd;
    attr.inherit = attr.task = attr.comm = 1;
    cpu_set_t set; /* an inherited event has a ring on one CPU only */
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    CHECK_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    CHECK_EQ(perf_fd_open_other(&fd, &attr, 4, 0, 0), 0);
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_NAME, "renamed");
        _exit(0);
    }
    CHECK_EQ(waitpid(child, NULL, 0), child);
    perf_iter_init(&iter, &fd);
    struct perf_record_comm *comm = next(&iter, PERF_RECORD_COMM, buffer, sizeof buffer);
    CHECK(comm->pid == (uint32_t)child && comm->tid == (uint32_t)child);
    CHECK(strcmp(comm->comm, "renamed") == 0);
    perf_iter_init(&iter, &fd);
    struct perf_record_exit *exited = next(&iter, PERF_RECORD_EXIT, buffer, sizeof buffer);
    CHECK(exited->pid == (uint32_t)child && exited->tid == (uint32_t)child && exited->ppid == (uint32_t)getpid());
    perf_fd_close(&fd);
}

int main(void)
{
    of_the_process();
    of_samples();
    of_branches();
    of_a_child();
    return 0;
}
