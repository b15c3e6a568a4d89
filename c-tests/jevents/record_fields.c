/* A program that names each member that libjevents' perf-record.h has; record_fields_cpp.cpp is the same in C++. */
#include <perf-record.h>

#include "expect.h"

static unsigned long long seen;

#define SEES(member) (seen += (unsigned long long)(member))

int main(void)
{
    static unsigned long long zeros[64];
#define OF(type) const struct type *r = (const struct type *)(const void *)zeros; SEES(r->hdr.size)
    { OF(perf_record_mmap); SEES(r->pid), SEES(r->tid), SEES(r->len), SEES(r->pgoff), SEES(r->filename[0]); }
    { OF(perf_record_lost); SEES(r->id), SEES(r->lost); }
    { OF(perf_record_comm); SEES(r->pid), SEES(r->tid), SEES(r->comm[0]); }
    { OF(perf_record_exit); SEES(r->pid), SEES(r->ppid), SEES(r->tid), SEES(r->ptid), SEES(r->time); }
    { OF(perf_record_throttle); SEES(r->time), SEES(r->id), SEES(r->stream_id); }
    { OF(perf_record_fork); SEES(r->pid), SEES(r->ppid), SEES(r->tid), SEES(r->ptid), SEES(r->time); }
    { OF(perf_record_read_time_id); SEES(r->pid), SEES(r->tid), SEES(r->value), SEES(r->time_enabled), SEES(r->time_running), SEES(r->id); }
    { OF(perf_record_read_time_id_group); SEES(r->pid), SEES(r->tid), SEES(r->nr), SEES(r->cntr[0].value), SEES(r->cntr[0].id); }
    { OF(perf_record_sample_ip); SEES(r->id), SEES(r->ip); }
    { OF(perf_record_sample_ip_tid_time); SEES(r->id), SEES(r->ip), SEES(r->pid), SEES(r->tid), SEES(r->time); }
    { OF(perf_record_sample_ip_cpu_time); SEES(r->id), SEES(r->ip), SEES(r->cpu), SEES(r->time); }
    { OF(perf_record_sample_ip_addr); SEES(r->id), SEES(r->ip), SEES(r->addr), SEES(r->weight), SEES(r->data_src); }
    { OF(perf_record_sample_ip_cpu_branch); SEES(r->ip), SEES(r->cpu), SEES(r->time), SEES(r->nr), SEES(r->lbr[0].from), SEES(r->lbr[0].to), SEES(r->lbr[0].flags); }
    { OF(perf_record_sample_ip_tid_callchain); SEES(r->ip), SEES(r->pid), SEES(r->tid), SEES(r->time), SEES(r->nr), SEES(r->ips[0]); }
    { OF(perf_record_sample_ip_tid_regs); SEES(r->ip), SEES(r->pid), SEES(r->tid), SEES(r->time), SEES(r->abi), SEES(r->regs[0]); }
    { OF(perf_record_sample_ip_tid_regs_group); SEES(r->ip), SEES(r->pid), SEES(r->tid), SEES(r->time), SEES(r->nr), SEES(r->cntr[0].value), SEES(r->cntr[0].id); }
    { OF(perf_record_mmap2); SEES(r->pid), SEES(r->tid), SEES(r->addr), SEES(r->len), SEES(r->pgoff), SEES(r->maj), SEES(r->min), SEES(r->ino), SEES(r->ino_generation), SEES(r->prot), SEES(r->flags), SEES(r->filename[0]); }
    { OF(perf_record_itrace_start); SEES(r->pid), SEES(r->tid); }
    { OF(perf_record_aux); SEES(r->aux_offset), SEES(r->aux_size), SEES(r->flags); }
    { OF(perf_record_lost_samples); SEES(r->lost); }
    { OF(perf_record_switch); }
    { OF(perf_record_switch_cpu_wide); SEES(r->next_prev_pid), SEES(r->next_prev_tid); }
    { OF(perf_record_namespaces); SEES(r->pid), SEES(r->tid), SEES(r->nr_namespaces), SEES(r->name_spaces[0].dev), SEES(r->name_spaces[0].inode); }
    { OF(perf_record_ksymbol); SEES(r->addr), SEES(r->len), SEES(r->ksym_type), SEES(r->flags), SEES(r->name[0]); }
    { OF(perf_record_bpf_event); SEES(r->type), SEES(r->flags), SEES(r->id), SEES(r->tag[BPF_TAG_SIZE - 1]); }
    { OF(perf_record_cgroup); SEES(r->id), SEES(r->path[0]); }
    CHECK_EQ(seen, 0);
    return PERF_BPF_EVENT_UNKNOWN + PERF_BPF_EVENT_PROG_LOAD + PERF_BPF_EVENT_PROG_UNLOAD == 3 ? 0 : 1;
}
