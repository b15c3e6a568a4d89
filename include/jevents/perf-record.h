/* perf-record.h: what the records of a perf ring buffer look like, as <linux/perf_event.h> describes them up to Linux
 * 5.8. A name that ends in what was sampled (id, ip, tid, time, addr, cpu, ...) is that of a PERF_RECORD_SAMPLE of an
 * event with these bits in its sample_type and no others (id: PERF_SAMPLE_IDENTIFIER, which comes first). With
 * sample_id_all the kernel appends the same to the other records. */
#ifndef PERF_RECORD_H
#define PERF_RECORD_H 1

#ifndef PERF_ATTR_SIZE_VER0 /* of a copy that the program has */
#include <linux/perf_event.h>
#endif
#include <linux/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As many as there are. C++ has no such arrays of its own, and Clang says so even of an __extension__. */
#define PERF_RECORD_ARRAY(type, name) __extension__ type name[]
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpedantic"
#endif

/* PERF_RECORD_MMAP */
struct perf_record_mmap {
    struct perf_event_header hdr;
    __u32 pid, tid;
    __u64 addr;
    __u64 len;
    __u64 pgoff;
    PERF_RECORD_ARRAY(char, filename);
};

/* PERF_RECORD_LOST */
struct perf_record_lost {
    struct perf_event_header hdr;
    __u64 id;
    __u64 lost;
};

/* PERF_RECORD_COMM */
struct perf_record_comm {
    struct perf_event_header hdr;
    __u32 pid, tid;
    PERF_RECORD_ARRAY(char, comm);
};

/* PERF_RECORD_EXIT */
struct perf_record_exit {
    struct perf_event_header hdr;
    __u32 pid, ppid;
    __u32 tid, ptid;
    __u64 time;
};

/* PERF_RECORD_FORK */
struct perf_record_fork {
    struct perf_event_header hdr;
    __u32 pid, ppid;
    __u32 tid, ptid;
    __u64 time;
};

/* PERF_RECORD_THROTTLE, PERF_RECORD_UNTHROTTLE */
struct perf_record_throttle {
    struct perf_event_header hdr;
    __u64 time;
    __u64 id;
    __u64 stream_id;
};

/* PERF_RECORD_READ, with both times and the id in read_format */
struct perf_record_read_time_id {
    struct perf_event_header hdr;
    __u32 pid, tid;
    __u64 value;
    __u64 time_enabled;
    __u64 time_running;
    __u64 id;
};

/* One event of a group, with the id in read_format. */
struct perf_record_read_cntr {
    __u64 value;
    __u64 id;
};

/* PERF_RECORD_READ of a group, with the same */
struct perf_record_read_time_id_group {
    struct perf_event_header hdr;
    __u32 pid, tid;
    __u64 nr;
    __u64 time_enabled;
    __u64 time_running;
    PERF_RECORD_ARRAY(struct perf_record_read_cntr, cntr);
};

/* PERF_RECORD_SAMPLE: IDENTIFIER, IP */
struct perf_record_sample_ip {
    struct perf_event_header hdr;
    __u64 id;
    __u64 ip;
};

/* IDENTIFIER, IP, TID, TIME */
struct perf_record_sample_ip_tid_time {
    struct perf_event_header hdr;
    __u64 id;
    __u64 ip;
    __u32 pid, tid;
    __u64 time;
};

/* IDENTIFIER, IP, TIME, CPU */
struct perf_record_sample_ip_cpu_time {
    struct perf_event_header hdr;
    __u64 id;
    __u64 ip;
    __u64 time;
    __u32 cpu, res;
};

/* IDENTIFIER, IP, ADDR, WEIGHT, DATA_SRC */
struct perf_record_sample_ip_addr {
    struct perf_event_header hdr;
    __u64 id;
    __u64 ip;
    __u64 addr;
    __u64 weight;
    __u64 data_src;
};

/* One branch of PERF_SAMPLE_BRANCH_STACK; `flags` are the bits of struct perf_branch_entry. */
struct perf_sample_branch_stack {
    __u64 from;
    __u64 to;
    __u64 flags;
};

/* IDENTIFIER, IP, TIME, CPU, BRANCH_STACK (without PERF_SAMPLE_BRANCH_HW_INDEX) */
struct perf_record_sample_ip_cpu_branch {
    struct perf_event_header hdr;
    __u64 id;
    __u64 ip;
    __u64 time;
    __u32 cpu, res;
    __u64 nr;
    PERF_RECORD_ARRAY(struct perf_sample_branch_stack, lbr);
};

/* IDENTIFIER, IP, TID, TIME, CALLCHAIN */
struct perf_record_sample_ip_tid_callchain {
    struct perf_event_header hdr;
    __u64 id;
    __u64 ip;
    __u32 pid, tid;
    __u64 time;
    __u64 nr;
    PERF_RECORD_ARRAY(__u64, ips);
};

/* IDENTIFIER, IP, TID, TIME, REGS_USER or REGS_INTR: as many registers as the mask has bits, none if abi is 0 */
struct perf_record_sample_ip_tid_regs {
    struct perf_event_header hdr;
    __u64 id;
    __u64 ip;
    __u32 pid, tid;
    __u64 time;
    __u64 abi;
    PERF_RECORD_ARRAY(__u64, regs);
};

/* IDENTIFIER, IP, TID, TIME, READ of a group, with both times and the id in read_format. With REGS_USER or REGS_INTR, abi
 * and registers follow cntr[nr]. */
struct perf_record_sample_ip_tid_regs_group {
    struct perf_event_header hdr;
    __u64 id;
    __u64 ip;
    __u32 pid, tid;
    __u64 time;
    __u64 nr;
    __u64 time_enabled;
    __u64 time_running;
    PERF_RECORD_ARRAY(struct perf_record_read_cntr, cntr);
};

/* PERF_RECORD_MMAP2 (without PERF_RECORD_MISC_MMAP_BUILD_ID) */
struct perf_record_mmap2 {
    struct perf_event_header hdr;
    __u32 pid, tid;
    __u64 addr;
    __u64 len;
    __u64 pgoff;
    __u32 maj, min;
    __u64 ino;
    __u64 ino_generation;
    __u32 prot, flags;
    PERF_RECORD_ARRAY(char, filename);
};

/* PERF_RECORD_ITRACE_START */
struct perf_record_itrace_start {
    struct perf_event_header hdr;
    __u32 pid, tid;
};

/* PERF_RECORD_AUX */
struct perf_record_aux {
    struct perf_event_header hdr;
    __u64 aux_offset;
    __u64 aux_size;
    __u64 flags;
};

/* PERF_RECORD_LOST_SAMPLES */
struct perf_record_lost_samples {
    struct perf_event_header hdr;
    __u64 lost;
};

/* PERF_RECORD_SWITCH */
struct perf_record_switch {
    struct perf_event_header hdr;
};

/* PERF_RECORD_SWITCH_CPU_WIDE */
struct perf_record_switch_cpu_wide {
    struct perf_event_header hdr;
    __u32 next_prev_pid, next_prev_tid;
};

struct perf_namespace {
    __u64 dev;
    __u64 inode;
};

/* PERF_RECORD_NAMESPACES */
struct perf_record_namespaces {
    struct perf_event_header hdr;
    __u32 pid, tid;
    __u64 nr_namespaces;
    PERF_RECORD_ARRAY(struct perf_namespace, name_spaces);
};

/* PERF_RECORD_KSYMBOL */
struct perf_record_ksymbol {
    struct perf_event_header hdr;
    __u64 addr;
    __u32 len;
    __u16 ksym_type;
    __u16 flags;
    PERF_RECORD_ARRAY(char, name);
};

/* PERF_RECORD_BPF_EVENT: its type */
#define PERF_BPF_EVENT_UNKNOWN 0
#define PERF_BPF_EVENT_PROG_LOAD 1
#define PERF_BPF_EVENT_PROG_UNLOAD 2

#ifndef BPF_TAG_SIZE /* <linux/bpf.h> has it, too */
#define BPF_TAG_SIZE 8
#endif

/* PERF_RECORD_BPF_EVENT */
struct perf_record_bpf_event {
    struct perf_event_header hdr;
    __u16 type;
    __u16 flags;
    __u32 id;
    __u8 tag[BPF_TAG_SIZE];
};

/* PERF_RECORD_CGROUP */
struct perf_record_cgroup {
    struct perf_event_header hdr;
    __u64 id;
    PERF_RECORD_ARRAY(char, path);
};

#ifdef __clang__
#pragma clang diagnostic pop
#endif

#ifdef __cplusplus
}
#endif

#endif
