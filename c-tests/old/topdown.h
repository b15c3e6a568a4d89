/* topdown.h as programs were compiled with it at commit d839169, without its comments. It never changes. */
#ifndef TOPDOWN_H
#define TOPDOWN_H
#include <stddef.h>
#include <stdint.h>
typedef struct td td_t;
#define TD_NODE_NONE 0
#define TD_NODE_RETIRING 1
#define TD_NODE_BAD_SPECULATION 2
#define TD_NODE_FRONTEND_BOUND 3
#define TD_NODE_BACKEND_BOUND 4
#define TD_NODE_HEAVY_OPERATIONS 5
#define TD_NODE_LIGHT_OPERATIONS 6
#define TD_NODE_BRANCH_MISPREDICTS 7
#define TD_NODE_MACHINE_CLEARS 8
#define TD_NODE_FETCH_LATENCY 9
#define TD_NODE_FETCH_BANDWIDTH 10
#define TD_NODE_MEMORY_BOUND 11
#define TD_NODE_CORE_BOUND 12
#define TD_UNIT_SLOTS 1
#define TD_UNIT_CLOCKS 2
#define TD_CONTROL_PAGE 4096
#define TD_SAMPLE_UNBOUNDED 1
#define TD_SAMPLE_COARSE_TIME 2
#define TD_SAMPLE_CLEARED 16
#define TD_SAMPLE_WORK_AFTER 32
#define TD_SAMPLE_WORK_BEFORE 64
#define TD_SAMPLE_SIMULATED 4
#define TD_SAMPLE_SPARSE 8
#define TD_EWRONGTHREAD -4097
#define TD_ENOTCOUNTING -4098
#define TD_ESTALE -4099
#define TD_ENORDPMC -4100
#define TD_TARGET_SELF 0
#define TD_TARGET_TASK 1
#define TD_TARGET_CPU 2
#define TD_FLAG_KERNEL 1
#define TD_FLAG_INHERIT 2
#define TD_FLAG_NO_RDPMC 4
#define TD_FLAG_SIMULATE 8
#define TD_FLAG_E_CORES 256
#define TD_PATH_RDPMC 1
#define TD_PATH_READ 2
#define TD_PATH_SIMULATED 3
struct td;
struct td_options {
    uint32_t size;
    uint32_t flags;
    uint32_t target;
    int32_t id;
    uint32_t level;
    uint32_t max_error_ppm;
    uint32_t max_overhead_ppm;
    uint32_t reserved[9];
};
struct td_base {
    uint32_t sequence;
    uint32_t window;
    uint32_t handle;
    uint32_t period;
    uint16_t switches;
    uint8_t model;
    uint8_t level;
    uint32_t checked_ms;
    uint64_t error;
    int64_t category[7];
};
struct td_sample {
    uint32_t size;
    uint32_t flags;
    uint64_t slots;
    uint64_t time_enabled_ns;
    uint64_t time_running_ns;
    uint64_t slots_before;
    struct td_base base;
    uint64_t raw_metrics;
    uint64_t counter[15];
};
struct td_mark {
    uint64_t slots;
    uint64_t metrics;
    uint32_t sequence;
    uint32_t window;
};
struct td_l1 {
    uint32_t size;
    uint32_t flags;
    uint64_t slots;
    double retiring;
    double bad_speculation;
    double frontend_bound;
    double backend_bound;
    double error;
    double running;
    uint64_t reserved[2];
};
struct td_l2 {
    uint32_t size;
    uint32_t flags;
    uint64_t slots;
    double heavy_operations;
    double light_operations;
    double branch_mispredicts;
    double machine_clears;
    double fetch_latency;
    double fetch_bandwidth;
    double memory_bound;
    double core_bound;
    double error;
    double running;
    uint64_t reserved[2];
};
struct td_node {
    uint32_t size;
    uint32_t flags;
    uint32_t id;
    uint32_t parent;
    uint32_t level;
    uint32_t unit;
    uint32_t measured;
    uint32_t reserved0;
    double value;
    double low;
    double high;
    double running;
    uint64_t whole;
    uint64_t reserved[3];
};
struct td_part {
    double category[8];
    double rounding;
    double edges;
};
struct td_sum {
    uint32_t size;
    uint32_t flags;
    uint64_t executions;
    uint64_t slots;
    uint64_t time_enabled_ns;
    uint64_t time_running_ns;
    uint64_t measured;
    uint64_t measured_slots;
    uint64_t unbalanced;
    uint64_t unseen;
    uint32_t level;
    uint32_t state;
    uint64_t wait;
    uint64_t random;
    uint64_t begun_ns;
    struct td_part closed;
    struct td_part together;
    struct td_part apart;
    double xx;
    double xy[8];
    double yy[8];
    struct td_sample last;
    struct td_sample from;
};
struct td_info {
    uint32_t size;
    uint32_t path;
    uint32_t level;
    uint32_t slots_per_cycle;
    char cpu[64];
    char pmu[32];
    char core[48];
    char note[192];
    uint32_t max_error_ppm;
    uint32_t max_overhead_ppm;
    uint64_t windows;
    uint64_t windows_ns;
    uint64_t reserved[1];
};
struct td_mix {
    uint32_t size;
    uint32_t reserved;
    double retiring;
    double bad_speculation;
    double frontend_bound;
    double backend_bound;
    double heavy_operations;
    double branch_mispredicts;
    double fetch_latency;
    double memory_bound;
};
struct td_hot {
    uint64_t reader;
    uint64_t inline_reader;
    uint64_t *rseq;
    uint64_t limit;
    uint64_t scale;
    uint64_t present;
    uint64_t _line[2];
    struct td_sample start;
};
int td_open(struct td **out,
            const struct td_options *options);
int td_read(struct td *td,
            struct td_sample *out);
int td_read_mark_slowly(struct td *td, struct td_mark *out);
int td_mark_sample(struct td *td,
                   const struct td_mark *mark,
                   struct td_sample *out);
int td_reset(struct td *td);
void td_close(struct td *td);
int td_decode_l1(const struct td_sample *from, const struct td_sample *to, struct td_l1 *out);
int td_decode_l2(const struct td_sample *from, const struct td_sample *to, struct td_l2 *out);
int td_decode_tree(const struct td_sample *from,
                   const struct td_sample *to,
                   struct td_node *nodes,
                   uint32_t capacity,
                   uint32_t *count);
int td_decode_raw_l1(uint64_t slots_a,
                     uint64_t metrics_a,
                     uint64_t slots_b,
                     uint64_t metrics_b,
                     struct td_l1 *out);
int td_decode_raw_l2(uint64_t slots_a,
                     uint64_t metrics_a,
                     uint64_t slots_b,
                     uint64_t metrics_b,
                     struct td_l2 *out);
int td_sum_add(struct td_sum *sum,
               const struct td_sample *from,
               const struct td_sample *to);
int td_sum_begin(struct td *td,
                 struct td_sum *sum);
int td_sum_end(struct td *td,
               struct td_sum *sum);
int td_sum_l1(const struct td_sum *sum,
              struct td_l1 *out);
int td_sum_l2(const struct td_sum *sum, struct td_l2 *out);
int td_get_info(const struct td *td, struct td_info *out);
int td_list_nodes(const struct td *td,
                  struct td_node *nodes,
                  uint32_t capacity,
                  uint32_t *count);
const char *td_node_name(uint32_t id);
int td_simulate_mix(struct td *td,
                    const struct td_mix *mix);
const char *td_strerror(int code);
int td_last_error(char *buffer, size_t length);
const char *td_version(void);
#endif
#if defined(__cplusplus) && __cplusplus >= 201103L
#define TD_ASSERT_(condition) static_assert(condition, #condition)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define TD_ASSERT_(condition) _Static_assert(condition, #condition)
#else
#define TD_ASSERT_(condition) struct td_assert_
#endif
TD_ASSERT_(sizeof(struct td_options) == 64 && offsetof(struct td_options, reserved) == 28);
TD_ASSERT_(sizeof(struct td_sample) == 256 && offsetof(struct td_sample, base) == 40);
TD_ASSERT_(sizeof(struct td_l1) == 80);
TD_ASSERT_(sizeof(struct td_l2) == 112);
TD_ASSERT_(sizeof(struct td_info) == 384);
TD_ASSERT_(sizeof(struct td_node) == 96 && offsetof(struct td_node, value) == 32);
TD_ASSERT_(sizeof(struct td_mix) == 72);
TD_ASSERT_(sizeof(struct td_mark) == 24);
TD_ASSERT_(offsetof(struct td_hot, start) == 64);
#undef TD_ASSERT_
