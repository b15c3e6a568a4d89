/* topdown.h: where the CPU's pipeline slots go (TopDown, TMA), in any region of a program, measured from inside it.
 *
 *     td_t *td;
 *     struct td_sample before, after;
 *     struct td_l1 shares;
 *
 *     td_open(&td, NULL);                         counts the calling thread, in user mode
 *     td_read(td, &before);
 *     ... the region ...
 *     td_read(td, &after);
 *     td_decode_l1(&before, &after, &shares);     shares.retiring, ..., shares.error
 *     td_close(td);
 *
 * Link with -ltopdown. Programs built with this header work with all later libraries of the same soname.
 *
 * Functions return 0, or a negative code: -errno, or TD_E* below -4096. td_strerror gives a short text of a code,
 * td_last_error the whole story: what happened, why, and what to do about it. -EFAULT is a failure of the library;
 * please report it. Outputs are written on success only. A pointer that is NULL or misaligned gives -EINVAL, never a
 * crash. The library prints nothing and reads no environment variables.
 *
 * Structures begin with their size. Of td_options and td_mix so many bytes are read as the caller's `size` says; 0
 * means the size of the first version. Structs of other versions work: what is missing is zero, and what this version
 * does not know has to be zero (else -E2BIG). Results are written as they are here, whatever their memory held. They
 * never grow: later versions give more by other functions. Reserved fields are zeros, "opaque" ones the library's own.
 *
 * Made by `make header` from src/: do not edit. */
#ifndef TOPDOWN_H
#define TOPDOWN_H

#include <stddef.h>
#include <stdint.h>

/* Version of this header; td_version() is that of the library. TD_VERSION grows with each version. */
#define TD_VERSION_MAJOR 0
#define TD_VERSION_MINOR 2
#define TD_VERSION_PATCH 0
#define TD_VERSION (TD_VERSION_MAJOR * 1000000 + TD_VERSION_MINOR * 1000 + TD_VERSION_PATCH)

/* Of what is called at a region's end. A first call through the procedure linkage table looks for the function, a thousand instructions
 * that would be the region's. (Clang has no such attribute: link with -Wl,-z,now there.) */
#ifdef __has_attribute
#if __has_attribute(noplt)
#define TD_NO_PLT __attribute__((noplt))
#endif
#endif
#ifndef TD_NO_PLT
#define TD_NO_PLT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A handle: open counters of one target. */
typedef struct td td_t;

/* ---- Options ---- */

/** What to measure. All zeros, like NULL: the calling thread, in user mode, as deep and as fast as possible. */
struct td_options {
    uint32_t size;              /**< sizeof(struct td_options), set by the caller; 0 means 64. */
    uint32_t flags;             /**< TD_FLAG_* bits. */
    uint32_t target;            /**< TD_TARGET_*. */
    int32_t id;                 /**< Thread id or CPU number of the target; 0 for TD_TARGET_SELF. */
    /** 1, 2, 3, or 0 for the deepest that the CPU counts in one group. Deeper ones: `nodes`. */
    uint32_t level;
    /** Wanted bound on each share's error, in parts per million, up to 1000000; 0 means 10000 (1 percentage point).
     * Registers are reset so often that regions of a million slots or more reach it; 1000000: never for exactness. */
    uint32_t max_error_ppm;
    /** Part of the thread's time that resets may take, in parts per million, up to 1000000; 0 means 10000 (1 %). */
    uint32_t max_overhead_ppm;
    /** A node (TD_NODE_*, or td_node_id) of which others are parts, or 0: where the counters cannot hold all of a level
     * in one group, count level 1 and what is below this node. `topdown list` has the nodes of each core that are
     * counted so, td_list_nodes what a handle measures. -EINVAL: no core has a node below it, or `level` is above all of
     * these. -ENOTSUP: this core does not count it alone (td_last_error has those that it does), or a counter is taken. */
    uint32_t subtree;
    uint32_t source;            /**< TD_SOURCE_*: what is counted. */
    uint32_t core_type;         /**< TD_CORES_*: which cores of a hybrid CPU. */
    uint32_t node_count;        /**< How many nodes `nodes` has, up to 8; 0: none is asked for. */
    /** Nodes (TD_NODE_*, or td_node_id) that general counters count beside level 1, all in one group: with each its
     * children (`level` 0), or all below it down to `level` (up to 6), as far as there are counters. td_list_nodes has what
     * is counted. -EINVAL: one is no node. -ENOTSUP: one cannot be counted here, or no group has room for all; td_last_error
     * says why, and which go together. */
    uint32_t nodes[8];
    uint32_t reserved[5];       /**< Zeros. */
};

/* Values of td_options.target: */
#define TD_TARGET_SELF 0  /**< The calling thread; td_options.id is 0. */
#define TD_TARGET_TASK 1  /**< The thread whose id is td_options.id. */
#define TD_TARGET_CPU 2   /**< Everything that runs on the CPU whose number is td_options.id. */

/* Bits of td_options.flags: */
#define TD_FLAG_KERNEL 1      /**< Count kernel mode, too. Read by read(2). */
#define TD_FLAG_INHERIT 2     /**< Count threads and processes that the target starts, too: by read(2), no bound. */
#define TD_FLAG_NO_RDPMC 4    /**< Read by read(2) even where RDPMC is possible; no RDPMC is ever executed. */
#define TD_FLAG_SIMULATE 8    /**< Use a simulated PMU (td_simulate_mix). Only this flag chooses it. */
#define TD_FLAG_REGISTERS 16  /**< As td_options.source TD_SOURCE_REGISTERS. */
#define TD_FLAG_COUNTERS 32   /**< As td_options.source TD_SOURCE_COUNTERS. */
#define TD_FLAG_E_CORES 256   /**< As td_options.core_type TD_CORES_E. */
#define TD_FLAG_BARE 512      /**< Nodes without the corrections of the published metrics (docs/sources.md). */

/* Values of td_options.source: what is counted. */
#define TD_SOURCE_AUTO 0       /**< Counters where they are free or alone, else registers; td_info.note says why. */
#define TD_SOURCE_REGISTERS 1  /**< SLOTS and PERF_METRICS, rounded. General counters are left to others. */
#define TD_SOURCE_COUNTERS 2   /**< General counters of each category's slots, exact. Others go without them. */

/* Values of td_options.core_type: which cores of a hybrid CPU; on others 0 and TD_CORES_P are the same. */
/** Both kinds for a thread that may run on both: level 1 and branch mispredicts, by general counters. P-cores alone
 * with level 2, a source, a subtree, TD_FLAG_BARE or _INHERIT, a CPU as target, or if others count. */
#define TD_CORES_AUTO 0
#define TD_CORES_P 1     /**< P-cores alone. `running` is the part of the time there. */
#define TD_CORES_E 2     /**< E-cores alone, by general counters. -ENOTSUP if the CPU is not hybrid. */

/* ---- Open, read, close ---- */

/** Opens the topdown counters, proves that they count, and begins a measurement period.
 *
 * `out` receives the handle; td_close ends it. `options` NULL or all zeros: the calling thread, user mode, the deepest
 * level that the CPU counts, by RDPMC where possible and by read(2) elsewhere (td_get_info tells which, and why).
 *
 * Threads: the handle belongs to the thread that opened it, and that thread alone may read, reset and query it.
 * Threads and processes that it starts are not counted (but see TD_FLAG_INHERIT). Descriptors are close-on-exec.
 * Signals are blocked during the call. A helper thread, which ends with the call, opens the events.
 *
 * Returns 0, or a code; td_last_error says what is in the way. A failed call leaves nothing open.
 *  -ENODEV           this CPU or virtual machine has no topdown counters
 *  -EACCES, -EPERM   denied by perf_event_paranoid or a security module; by a seccomp filter
 *  -ENOSYS           no perf_event_open system call
 *  -ENOTSUP          this CPU cannot give the level, the subtree, the cores or the target
 *  -EINVAL, -E2BIG   bad argument; options of a later version
 *  -ESRCH            no such thread
 *  -EMFILE, -ENFILE  no file descriptors left: of this process (a handle takes up to 12); of the system
 *  -ENOMEM           no memory, or none left that may be locked
 *  -EAGAIN           this user or container may not start another thread
 *  TD_ENOTCOUNTING   others hold the counters */
int td_open(td_t **out, const struct td_options *options);

/** Totals since td_open or the last td_reset. Two of one handle and period decode to the shares of what ran between
 * them. Plain data: copy, send or write it. Another version of the library decodes it as this one, or refuses it. */
struct td_sample {
    uint32_t size;             /**< sizeof(struct td_sample), set by the library. */
    uint32_t flags;            /**< TD_SAMPLE_* bits. */
    uint64_t slots;            /**< Pipeline slots counted in this period. */
    uint64_t time_enabled_ns;  /**< Nanoseconds of this period in which the thread (or CPU) ran. */
    /** Nanoseconds of those in which the counters counted: not while others had them, or on cores of another kind. */
    uint64_t time_running_ns;
    uint64_t opaque[28];       /**< The library's own. */
};

/* Bits of td_sample.flags, and of the flags of all that is decoded from samples: */
#define TD_SAMPLE_UNBOUNDED 1       /**< No bound: `error` is as large as it can be (docs/error-bound.md). */
#define TD_SAMPLE_COARSE_TIME 2     /**< The times are of an earlier look at the clock than the reading. */
#define TD_SAMPLE_SIMULATED 4       /**< Made by the simulated PMU (TD_FLAG_SIMULATE). */
#define TD_SAMPLE_SPARSE 8          /**< Of a sum: a random sample of the executions was measured. */
#define TD_SAMPLE_WORK_AFTER 32     /**< Library work after the reading was counted; `error` has its most. */
#define TD_SAMPLE_WORK_BEFORE 64    /**< The same, of work before the reading. */
#define TD_SAMPLE_UNCORRECTED 128   /**< No counter was left for a correction; the intervals have it. */
#define TD_SAMPLE_WORK_COUNTED 256  /**< Of a mark taken by a call: `error` has what the call executed. */

/** Reads the totals since td_open or the last td_reset into `out`.
 *
 * By RDPMC without system call, lock or allocation (docs/cost.md), but for this: PERF_METRICS holds rounded shares of
 * all slots since the registers were last reset. When the next region could not be measured to within
 * td_options.max_error_ppm, td_read resets them by a read(2), as long as td_options.max_overhead_ppm allows. So the
 * accuracy of a pair of readings does not depend on what ran before.
 *
 * Threads: the one that opened the handle, also in a signal handler, which may interrupt another td_ call on the same
 * handle, or leave that call by siglongjmp. A child of vfork(2), which shares the memory, must not call it.
 *
 * Root can take RDPMC away (0 in the PMU's `rdpmc` file in sysfs; on arm64 in the sysctl kernel.perf_user_access). So
 * td_open of a handle that uses it installs, once per process, a handler of SIGSEGV (arm64: SIGILL), which passes on
 * all other faults. Then readings return TD_ENORDPMC (arm64: go on by read(2)). A program that later installs a
 * handler of its own, or a thread that has it blocked, is ended by this fault. TD_FLAG_NO_RDPMC avoids that.
 *
 * Returns 0, or a code; then no totals have changed.
 *  -EINVAL          an argument is NULL
 *  TD_EWRONGTHREAD  called by another thread than the one that opened the handle, or in a forked child
 *  TD_ENORDPMC      see above
 *  -EBADF           the handle is closed, or the program has closed the descriptors of its events
 *  -EBUSY           signal handlers interrupted the call again and again, and used the handle
 *  -EIO             the kernel has given the counters up: their CPU went offline
 *  another -errno   of read(2) */
int td_read(td_t *td, struct td_sample *out);

/** Begins a new measurement period, by a read(2): totals start from zero, and samples from before do not decode with
 * later ones. Threads, signal handlers and returns as td_read. */
int td_reset(td_t *td);

/** Ends a handle and closes its descriptors; NULL is ignored. Samples stay valid. The counters are free at once, even
 * while forked children have copies of the descriptors; in a child td_close frees its own copies alone.
 *
 * Threads: the one that opened the handle, or another one when the owner does not use it any more. In a signal handler
 * only where free(3) may be called. Later calls with the pointer return -EBADF, until a later handle has its memory. */
void td_close(td_t *td);

/* ---- Decode ---- */

/** Level 1: shares of the slots between two samples (docs/sources.md). The four and `smt_contention` add up to 1. */
struct td_l1 {
    uint32_t size;           /**< sizeof(struct td_l1), set by the library. */
    uint32_t flags;          /**< TD_SAMPLE_* bits of both samples. */
    uint64_t slots;          /**< Slots between the two samples. */
    double retiring;         /**< Slots whose operation retired. */
    double bad_speculation;  /**< Slots lost to wrong paths, and to recovery from them. */
    double frontend_bound;   /**< Slots that the frontend left empty. */
    double backend_bound;    /**< Slots that the backend could not accept. */
    double error;            /**< Bound, 0 to 1: no share is further than this from the truth. */
    double running;          /**< Part of the time between the samples in which the counters counted, 0 to 1. */
    double smt_contention;   /**< Slots that went to the core's other thread; 0 on CPUs that do not tell them apart. */
    uint64_t reserved[1];    /**< Zero. */
};

/** Level 1: how the pipeline slots between two samples divide. `from` is the earlier sample, or NULL for the start of
 * the period. Both are of the same handle and period. Any thread, at any time, also after td_close. Returns 0, or:
 *  -EINVAL          `to` or `out` is NULL, not a sample, of different handles, or in the wrong order
 *  TD_ESTALE        the samples are of different periods
 *  TD_ENOTCOUNTING  no slot was counted between them */
int td_decode_l1(const struct td_sample *from, const struct td_sample *to, struct td_l1 *out);

/** Level 2: shares of the slots between two samples. The eight add up to 1, each pair to its share of level 1. */
struct td_l2 {
    uint32_t size;              /**< sizeof(struct td_l2), set by the library. */
    uint32_t flags;             /**< TD_SAMPLE_* bits of both samples. */
    uint64_t slots;             /**< Slots between the two samples. */
    double heavy_operations;    /**< Of retiring: operations of instructions that need several, or microcode. */
    double light_operations;    /**< Of retiring: the rest. */
    double branch_mispredicts;  /**< Of bad speculation: mispredicted branches. */
    double machine_clears;      /**< Of bad speculation: machine clears. */
    double fetch_latency;       /**< Of frontend bound: nothing was delivered. */
    double fetch_bandwidth;     /**< Of frontend bound: too little was delivered. */
    double memory_bound;        /**< Of backend bound: waiting for memory. */
    double core_bound;          /**< Of backend bound: waiting for execution units. */
    double error;               /**< Bound, 0 to 1: no share is further than this from the truth. */
    double running;             /**< Part of the time between the samples in which the counters counted, 0 to 1. */
    uint64_t reserved[2];       /**< Zeros. */
};

/** Level 2: each of the four in two parts. Any thread. Returns as td_decode_l1, and -ENOTSUP if level 2 was not
 * counted, or has other nodes than these: td_decode_tree gives those. */
int td_decode_l2(const struct td_sample *from, const struct td_sample *to, struct td_l2 *out);

/* ---- What a handle measures ---- */

/** What a handle measures, and how. */
struct td_info {
    uint32_t size;              /**< sizeof(struct td_info), set by the library. */
    uint32_t path;              /**< TD_PATH_*: how the counters are read. */
    uint32_t level;             /**< Deepest level that is counted. */
    uint32_t slots_per_cycle;   /**< Pipeline slots per cycle of the core; 0 if not known. */
    char cpu[64];               /**< Brand string of the CPU; "simulated" with TD_FLAG_SIMULATE. */
    char pmu[32];               /**< Name of the PMU in sysfs; "simulated" with TD_FLAG_SIMULATE. */
    char core[48];              /**< Name of the core, such as "Redwood Cove". */
    /** Why path, level or source are not the best there are, and what to do; else empty. All may change meanwhile. */
    char note[192];
    uint32_t max_error_ppm;     /**< td_options.max_error_ppm, or its default. */
    uint32_t max_overhead_ppm;  /**< td_options.max_overhead_ppm, or its default. */
    uint64_t windows;           /**< How often readings have reset the registers for accuracy since td_open. */
    uint64_t windows_ns;        /**< Nanoseconds that this took; cycles if the kernel gives user space no clock. */
    uint32_t counters;          /**< General counters that the handle takes; 0: registers, and what corrects them. */
    uint32_t reserved;          /**< Zero. */
};

/* Values of td_info.path: how the counters are read. */
#define TD_PATH_RDPMC 1      /**< In user space, by RDPMC; on arm64 by MRS, where kernel.perf_user_access is 1. */
#define TD_PATH_READ 2       /**< By read(2); td_info.note says why. */
#define TD_PATH_SIMULATED 3  /**< Nothing is read: the numbers are simulated. */

/** Describes what a handle measures, and how. Signals are blocked during the call. Threads and returns as td_read. */
int td_get_info(const td_t *td, struct td_info *out);

/* ---- Errors ---- */

/* Codes of the library's own; all others are -errno. */
#define TD_EWRONGTHREAD -4097  /**< Called by a thread that did not open the handle, or in a forked child. */
#define TD_ENOTCOUNTING -4098  /**< No slot was counted: nothing ran, or elsewhere, or others held the counters. */
#define TD_ESTALE -4099        /**< Samples from before and after a td_reset were mixed, or a mark is too old. */
#define TD_ENORDPMC -4100      /**< RDPMC was taken away while the handle was open (td_read). */

/** Short text of a code that this library returned. Static, never NULL. Any thread. */
const char *td_strerror(int code);

/** Copies the calling thread's last failure in full into `buffer`, cut to `length` - 1 bytes, and a NUL; NULL and 0 ask
 * for the length. Successful calls do not change the text. Any thread. Returns the length of the whole text without the
 * NUL (0: no call has failed yet), or -EINVAL if `buffer` is NULL and `length` is not 0. */
int td_last_error(char *buffer, size_t length);

/** Version of the library that runs, "MAJOR.MINOR.PATCH". Static text. Any thread. */
const char *td_version(void);

/* ---- The tree of metrics: all that a CPU gives, as nodes with parents and bounds ---- */

/** A node of the tree of metrics, with its share between two samples. */
struct td_node {
    uint32_t size;         /**< sizeof(struct td_node), set by the library. */
    uint32_t flags;        /**< TD_SAMPLE_* bits of both samples. */
    uint32_t id;           /**< TD_NODE_*, or what td_node_id says: the same on all CPUs and in all versions. */
    uint32_t parent;       /**< `id` of the node of which it is a part; TD_NODE_NONE for roots. */
    uint32_t level;        /**< 1 for roots, else one more than the parent's. */
    uint32_t unit;         /**< TD_UNIT_*: what the shares are of. Nodes of two units do not add up. */
    uint32_t measured;     /**< 1; or 0 if the node was not counted: then `value`, `low` and `high` are NaN. */
    uint32_t reserved0;    /**< Zero. */
    double value;          /**< The share, 0 to 1, as td_decode_l1 and td_decode_l2 give it. */
    double low;            /**< Lower end of the bound: the truth is not below it. */
    double high;           /**< Upper end of the bound: the truth is not above it. */
    double running;        /**< Part of the time between the samples in which the counters counted, 0 to 1. */
    uint64_t whole;        /**< Number of slots or cycles (`unit`) between the samples. */
    uint64_t reserved[3];  /**< Zeros. */
};

/* Values of td_node.id, and of td_node.parent: levels 1 and 2. td_node_id gives those of deeper nodes. */
#define TD_NODE_NONE 0                  /**< Of td_node.parent: the node is a root. */
#define TD_NODE_RETIRING 1              /**< tma_retiring */
#define TD_NODE_BAD_SPECULATION 2       /**< tma_bad_speculation */
#define TD_NODE_FRONTEND_BOUND 3        /**< tma_frontend_bound */
#define TD_NODE_BACKEND_BOUND 4         /**< tma_backend_bound */
#define TD_NODE_HEAVY_OPERATIONS 5      /**< tma_heavy_operations */
#define TD_NODE_LIGHT_OPERATIONS 6      /**< tma_light_operations */
#define TD_NODE_BRANCH_MISPREDICTS 7    /**< tma_branch_mispredicts */
#define TD_NODE_MACHINE_CLEARS 8        /**< tma_machine_clears */
#define TD_NODE_FETCH_LATENCY 9         /**< tma_fetch_latency */
#define TD_NODE_FETCH_BANDWIDTH 10      /**< tma_fetch_bandwidth */
#define TD_NODE_MEMORY_BOUND 11         /**< tma_memory_bound */
#define TD_NODE_CORE_BOUND 12           /**< tma_core_bound */
#define TD_NODE_SMT_CONTENTION 13       /**< tma_smt_contention */
#define TD_NODE_IFETCH_LATENCY 14       /**< tma_ifetch_latency */
#define TD_NODE_IFETCH_BANDWIDTH 15     /**< tma_ifetch_bandwidth */
#define TD_NODE_RESOURCE_BOUND 16       /**< tma_resource_bound */
#define TD_NODE_MICROCODE 17            /**< tma_retiring_from_microcode */
#define TD_NODE_FASTPATH 18             /**< tma_retiring_from_fastpath */
#define TD_NODE_PIPELINE_RESTARTS 19    /**< tma_pipeline_restarts */
#define TD_NODE_FRONTEND_MEM_BOUND 59   /**< tma_frontend_mem_bound */
#define TD_NODE_FRONTEND_CORE_BOUND 60  /**< tma_frontend_core_bound */
#define TD_NODE_BACKEND_MEM_BOUND 61    /**< tma_backend_mem_bound */
#define TD_NODE_BACKEND_CORE_BOUND 62   /**< tma_backend_core_bound */

/* Values of td_node.unit: */
#define TD_UNIT_SLOTS 1       /**< A share of the pipeline slots. */
#define TD_UNIT_CLOCKS 2      /**< A share of the core's cycles. */
#define TD_UNIT_OPERATIONS 3  /**< A share of the operations that retired. */

/** Every node that the CPU has, between two samples as in td_decode_l1. `nodes` receives the first `capacity` nodes,
 * parents before their children, as td_list_nodes; it may be NULL if `capacity` is 0. `count` receives the number of
 * all nodes. The samples tell the CPU: any machine decodes them. Any thread. Returns as td_decode_l1. */
int td_decode_tree(const struct td_sample *from, const struct td_sample *to, struct td_node *nodes, uint32_t capacity,
                   uint32_t *count);

#define TD_AS_PUBLISHED 0  /**< As their maker publishes them: td_decode_tree. */
#define TD_AS_BARE 2       /**< As registers or counters have them, without corrections (docs/sources.md). */

/** As td_decode_tree, by a definition of the nodes: TD_AS_*. Any thread. Returns as td_decode_tree; -EINVAL also if it is none. */
int td_decode_tree_as(const struct td_sample *from, const struct td_sample *to, uint32_t definition,
                      struct td_node *nodes, uint32_t capacity, uint32_t *count);

/** The nodes of the handle's CPU, as td_decode_tree, and which of them the handle measures; their shares are NaN. The
 * list stays the same as long as the handle is open. Threads and returns as td_read. */
int td_list_nodes(const td_t *td, struct td_node *nodes, uint32_t capacity, uint32_t *count);

/** Number of the node that perf calls `name` ("tma_l1_bound", or without "tma_"); TD_NODE_NONE if this version knows
 * none, or `name` is NULL. Any thread, also in a signal handler. */
uint32_t td_node_id(const char *name);

/** perf's name of the node of a number ("tma_retiring"), or "". Static text. Any thread, also in a signal handler. */
const char *td_node_name(uint32_t id);

/* ---- Sums: regions that run many times ---- */

/** Sum over executions of one region. Clear it (memset) before the first; then call td_sum_begin and td_sum_end around
 * each, or td_sum_add after it. Plain data, for one thread at a time. */
struct td_sum {
    uint32_t size;             /**< sizeof(struct td_sum), set by the library. */
    uint32_t flags;            /**< TD_SAMPLE_* bits of all samples. */
    uint64_t executions;       /**< Executions that have ended. */
    uint64_t slots;            /**< Slots in all of them, as they were counted. */
    uint64_t time_enabled_ns;  /**< Nanoseconds of all of them, as td_sample.time_enabled_ns. */
    uint64_t time_running_ns;  /**< Nanoseconds of those in which the counters counted. */
    uint64_t measured;         /**< Executions that were measured: it is known how their slots divide. */
    uint64_t measured_slots;   /**< Slots in those. */
    uint64_t unbalanced;       /**< Calls of td_sum_end without a td_sum_begin. */
    uint64_t reserved;         /**< Zero. */
    uint64_t opaque[131];      /**< The library's own. */
};

/** Begins an execution of the sum's region, which may be short and run often (docs/cost.md has what it costs). By
 * registers, a random choice of executions is measured, as many as td_options.max_overhead_ppm allows, and of all
 * others the slots alone are counted: the result is right if what an execution does has nothing to do with its being
 * chosen. By general counters each execution is measured.
 *
 * Each thread has sums of its own (a signal handler that executes the sum that it interrupts: docs/robustness.md).
 * Executions of different sums may nest; a second begin of one starts it anew. Threads and returns as td_read. */
int td_sum_begin(td_t *td, struct td_sum *sum);

/** Ends the execution that td_sum_begin began with the same handle. Threads and returns as td_read; -EINVAL also if
 * none had begun (td_sum.unbalanced counts these) or with another handle, TD_ESTALE after a td_reset in between. */
int td_sum_end(td_t *td, struct td_sum *sum) TD_NO_PLT;

/** Adds one execution of a region, from a sample taken before it and one taken after it. Any thread, one at a time.
 * Each is measured, so `error` of the result always holds: at most the sum of the bounds of single executions, and far
 * less if they follow each other closely. Returns as td_decode_l1; nothing is added if it fails. An execution without
 * a slot is counted, and changes no share. */
int td_sum_add(struct td_sum *sum, const struct td_sample *from, const struct td_sample *to);

/** Level 1 shares of all executions in a sum, and `slots` of all of them. If each was measured, `error` bounds the
 * error of the shares; else (TD_SAMPLE_SPARSE) it has four standard errors of the random sample, too. Any thread.
 * Returns 0; -EINVAL: an argument is NULL, or `sum` is not a sum; TD_ENOTCOUNTING: no execution was measured yet. */
int td_sum_l1(const struct td_sum *sum, struct td_l1 *out);

/** Level 2 shares of all executions in a sum. Any thread. Returns as td_sum_l1, and -ENOTSUP if level 2 was not counted. */
int td_sum_l2(const struct td_sum *sum, struct td_l2 *out);

/** Nodes over all executions in a sum, as td_decode_tree, with bounds as sure as td_sum_l1's. Any thread. Returns
 * as td_sum_l1. */
int td_sum_decode_tree(const struct td_sum *sum, struct td_node *nodes, uint32_t capacity, uint32_t *count);

/* ---- Turns: nodes of deeper levels that one group does not hold, over many executions of a region ---- */

/* A region of a thread, and groups that take turns in it. */
typedef struct td_turns td_turns_t;

/* Values of td_turns_open's `how`: */
#define TD_TURNS_ALL 0    /**< Each group has as many turns as the others. */
#define TD_TURNS_DRILL 1  /**< Those of the children of nodes that are above their thresholds, level by level. */

/** Opens groups that take turns in a region of the calling thread, from one execution to another: nodes of levels 3 to 6 that
 * one group does not hold. `options->nodes` names nodes; without any all are counted down to `options->level` (0: the
 * last). `how` is TD_TURNS_ALL or TD_TURNS_DRILL. Groups are opened when their first turn comes: a group that cannot be
 * opened then has none. A thread has one such region at a time. What other handles of the thread count by general
 * counters takes them from it, and is in the intervals.
 *
 * Threads, signals and returns as td_open; -ENOTSUP also if this CPU has no published tree, or a node cannot be
 * counted here; -EBUSY: the thread has a region open; -EINVAL: another target than the calling thread, the registers as
 * source, TD_FLAG_INHERIT or TD_FLAG_SIMULATE. */
int td_turns_open(struct td_turns **out, const struct td_options *options, uint32_t how);

/** Begins an execution of the region: a reading of the group whose turn it is, as td_sum_begin. A second begin starts it
 * anew. Not in a signal handler. Threads and returns as td_sum_begin. */
int td_turns_begin(struct td_turns *turns);

/** Ends it. If the turn has lasted long enough (2 ms at first, later 20 ms) the next begins: two ioctl(2), and at a
 * group's first turn the calls that open it. Threads and returns as td_sum_end. */
int td_turns_end(struct td_turns *turns);

/** The nodes that were measured in all executions, as td_decode_tree: those of groups that had eight turns. The interval of
 * each has what its turns leave to chance, and what passed before its group could come. Nodes that were named and were not
 * measured are among them (`measured` 0). Ends the turn.
 *
 * Threads and returns as td_read; -EINVAL also if an execution has not ended. */
int td_turns_decode_tree(struct td_turns *turns, struct td_node *nodes, uint32_t capacity, uint32_t *count);

/** Closes all groups. NULL is nothing. Any thread, once no other uses them. */
void td_turns_close(struct td_turns *turns);

/* ---- Raw decoding: for programs that execute RDPMC themselves ---- */

/** Level 1 shares between two readings of SLOTS and PERF_METRICS that the caller took by RDPMC, `a` before `b`, of a
 * perf group of its own. Both are of the same thread, with no context switch between them and nothing that resets the
 * registers (read(2), PERF_EVENT_IOC_RESET); else `error` does not hold. For the moment of the reset itself, pass 0
 * for slots_a and metrics_a. Any thread. Returns 0, or:
 *  -EINVAL          `out` is NULL, or SLOTS has more than 48 bits
 *  TD_ESTALE        SLOTS went back: the registers were reset in between
 *  TD_ENOTCOUNTING  SLOTS stood still, or PERF_METRICS is empty */
int td_decode_raw_l1(uint64_t slots_a, uint64_t metrics_a, uint64_t slots_b, uint64_t metrics_b, struct td_l1 *out);

/** Level 2 shares, of the same. Any thread. Returns as td_decode_raw_l1, and -ENOTSUP if the upper halves are empty and this CPU has
 * level 1 only. */
int td_decode_raw_l2(uint64_t slots_a, uint64_t metrics_a, uint64_t slots_b, uint64_t metrics_b, struct td_l2 *out);

/* ---- Simulation ---- */

/** How the slots of a simulated PMU truly divide: shares of all slots, 0 to 1. Level 1 adds up to 1. */
struct td_mix {
    uint32_t size;              /**< sizeof(struct td_mix), set by the caller; 0 means 72. */
    uint32_t reserved;          /**< Zero. */
    double retiring;            /**< Level 1. */
    double bad_speculation;     /**< Level 1. */
    double frontend_bound;      /**< Level 1. */
    double backend_bound;       /**< Level 1. */
    double heavy_operations;    /**< Level 2: at most retiring. */
    double branch_mispredicts;  /**< Level 2: at most bad_speculation. */
    double fetch_latency;       /**< Level 2: at most frontend_bound. */
    double memory_bound;        /**< Level 2: at most backend_bound. */
};

/** Sets how the slots of a handle's simulated PMU (TD_FLAG_SIMULATE) divide from now on. Slots follow the time-stamp
 * counter, also while the thread sleeps; the registers round and are reset as real ones are. A handle begins with
 * retiring 0.4, bad speculation 0.1, frontend bound 0.2, backend bound 0.3.
 *
 * Threads and returns as td_read; -EINVAL also if mix->size is wrong or the shares are not a mix, -E2BIG for a mix of
 * a later version, -ENOTSUP if the handle has no simulated registers. */
int td_simulate_mix(td_t *td, const struct td_mix *mix);

/** As td_open, of the simulated PMU of a chosen core, to try a program as on other CPUs. `core` is a name that `topdown
 * list` prints, as in td_info.core, or "made-up core": general counters and a tree of three levels, the last in
 * cycles. TD_FLAG_SIMULATE need not be set. td_simulate_counters sets what a core with general counters counts,
 * td_simulate_mix what any other does. Threads and returns as td_open; -EINVAL also if no core has it (td_last_error has
 * all). */
int td_simulate(td_t **out, const struct td_options *options, const char *core);

/** Sets how much each general counter of a handle's simulated PMU counts per cycle of the time-stamp counter from now
 * on: `per_cycle` has `count` numbers from 0 to 64, of the core's first counter and on; all others stand still.
 * Threads and returns as td_read; -EINVAL also if there are more than 15 numbers or one is out of range, -ENOTSUP if
 * the handle has no simulated general counters. */
int td_simulate_counters(td_t *td, const double *per_cycle, uint32_t count);

#ifdef __cplusplus
}
#endif

#endif
