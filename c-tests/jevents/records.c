/* perf-record.h: what the kernel writes about this process reads well through these structs. */
#include <perf-iter.h>
#include <perf-record.h>

#include "counters.h"
#include <fcntl.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

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
AT(perf_record_sample_ip_cpu_branch, lbr, 40);
AT(perf_record_sample_ip_tid_callchain, ips, 40);
AT(perf_record_sample_ip_tid_regs, regs, 40);
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

static void of_samples(void)
{
    struct perf_event_attr attr = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
    char *pages = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t buffer[1024], id;
    struct perf_iter iter;
    struct perf_fd fd;
    CHECK(pages != MAP_FAILED);
    CHECK_EQ(madvise(pages, 64 * 4096, MADV_NOHUGEPAGE), 0);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN;
    attr.exclude_callchain_kernel = 1;
    open_ring(&fd, attr);
    CHECK_EQ(ioctl(fd.pfd, PERF_EVENT_IOC_ID, &id), 0);
    touch(pages, 5);
    perf_iter_init(&iter, &fd);
    struct perf_record_sample_ip_tid_callchain *chain = next(&iter, PERF_RECORD_SAMPLE, buffer, sizeof buffer);
    CHECK(chain->id == id && chain->pid == (uint32_t)getpid() && chain->tid == chain->pid);
    CHECK(chain->nr >= 2 && chain->hdr.size == sizeof *chain + 8 * chain->nr);
    CHECK_EQ(chain->ips[0], (int64_t)PERF_CONTEXT_USER);
    CHECK_EQ(chain->ips[1], chain->ip);
    perf_fd_close(&fd);

    attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC;
    open_ring(&fd, attr);
    touch(pages + 8 * 4096, 1);
    perf_iter_init(&iter, &fd);
    struct perf_record_sample_ip_addr *addr;
    do {
        addr = next(&iter, PERF_RECORD_SAMPLE, buffer, sizeof buffer);
        CHECK_EQ(addr->hdr.size, sizeof *addr);
    } while (addr->addr != (uintptr_t)(pages + 8 * 4096));
    perf_fd_close(&fd);

    attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
    open_ring(&fd, attr);
    touch(pages + 16 * 4096, 1);
    perf_iter_init(&iter, &fd);
    struct perf_record_sample_ip_cpu_time *cpu = next(&iter, PERF_RECORD_SAMPLE, buffer, sizeof buffer);
    CHECK(cpu->hdr.size == sizeof *cpu && cpu->cpu < (uint32_t)sysconf(_SC_NPROCESSORS_CONF) && cpu->time != 0);
    perf_fd_close(&fd);

    attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_REGS_USER;
    attr.sample_regs_user = 1 << 7 | 1 << 8; /* SP, IP */
    open_ring(&fd, attr);
    touch(pages + 24 * 4096, 1);
    perf_iter_init(&iter, &fd);
    struct perf_record_sample_ip_tid_regs *regs = next(&iter, PERF_RECORD_SAMPLE, buffer, sizeof buffer);
    CHECK(regs->hdr.size == sizeof *regs + 2 * 8 && regs->abi == PERF_SAMPLE_REGS_ABI_64 && regs->regs[1] == regs->ip);
    perf_fd_close(&fd);
}

int main(void)
{
    of_the_process();
    of_samples();
    return 0;
}
