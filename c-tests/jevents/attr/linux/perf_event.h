/* The system's header, but struct perf_event_attr has ATTR_SIZE bytes, as in older or newer kernels' headers. */
#ifndef SHADOW_PERF_EVENT_H
#define SHADOW_PERF_EVENT_H 1

#pragma GCC system_header /* #include_next is a GNU extension */
#define perf_event_attr system_perf_event_attr
#include_next <linux/perf_event.h>
#undef perf_event_attr

#undef PERF_ATTR_SIZE_VER6
#undef PERF_ATTR_SIZE_VER7
#undef PERF_ATTR_SIZE_VER8
#undef PERF_ATTR_SIZE_VER9
#if ATTR_SIZE >= 120
#define PERF_ATTR_SIZE_VER6 120
#endif
#if ATTR_SIZE >= 128
#define PERF_ATTR_SIZE_VER7 128
#endif
#if ATTR_SIZE >= 136
#define PERF_ATTR_SIZE_VER8 136
#endif
#if ATTR_SIZE >= 144
#define PERF_ATTR_SIZE_VER9 144
#endif
#if ATTR_SIZE >= 152
#define PERF_ATTR_SIZE_VER10 152
#endif
#if ATTR_SIZE >= 160
#define PERF_ATTR_SIZE_VER11 160
#endif

/* The names of Linux 5.4, and as many bytes behind them as are asked for. */
struct perf_event_attr {
    __u32 type;
    __u32 size;
    __u64 config;
    union {
        __u64 sample_period;
        __u64 sample_freq;
    };
    __u64 sample_type;
    __u64 read_format;
    __u64 disabled : 1, inherit : 1, pinned : 1, exclusive : 1, exclude_user : 1, exclude_kernel : 1, exclude_hv : 1,
        exclude_idle : 1, mmap : 1, comm : 1, freq : 1, inherit_stat : 1, enable_on_exec : 1, task : 1, watermark : 1,
        precise_ip : 2, other_flags : 47;
    union {
        __u32 wakeup_events;
        __u32 wakeup_watermark;
    };
    __u32 bp_type;
    union {
        __u64 bp_addr;
        __u64 config1;
    };
    union {
        __u64 bp_len;
        __u64 config2;
    };
    __u64 branch_sample_type;
    __u64 sample_regs_user;
    __u32 sample_stack_user;
    __s32 clockid;
    __u64 sample_regs_intr;
    __u32 aux_watermark;
    __u16 sample_max_stack;
    __u16 reserved_2;
#if ATTR_SIZE > 112
    __u64 more[(ATTR_SIZE - 112) / 8];
#endif
};
#endif
