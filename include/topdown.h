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
 * Link with -ltopdown.
 *
 * Functions return 0, or a negative code: -errno, or TD_E* below -4096. td_strerror gives a short text of a code,
 * td_last_error the whole story: what happened, why, and what to do about it. -EFAULT is a failure of the library itself;
 * please report it. Outputs are written on success only. A pointer that is NULL or misaligned gives -EINVAL, never a crash.
 * The library prints nothing and reads no environment variables.
 *
 * Structures begin with their size. The caller sets it in td_options and td_mix, the library in results. Reserved fields
 * are zeros. "opaque" fields are the library's own.
 *
 * Programs built with this header work with all later libraries of the same soname.
 *
 * Made by `make header` from src/: do not edit. */
#ifndef TOPDOWN_H
#define TOPDOWN_H

#include <stddef.h>
#include <stdint.h>

/* Version of this header; td_version() is that of the library. TD_VERSION grows with each version. */
#define TD_VERSION_MAJOR 0
#define TD_VERSION_MINOR 1
#define TD_VERSION_PATCH 0
#define TD_VERSION (TD_VERSION_MAJOR * 1000000 + TD_VERSION_MINOR * 1000 + TD_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

/* A handle: open counters of one target. */
typedef struct td td_t;

struct td_options;
struct td_sample;

/* ---- Open, read, close ---- */

/** Opens the topdown counters, proves that they count, and begins a measurement period.
 *
 * `out` receives the handle; end it with td_close. `options` may be NULL or all zeros for the defaults: the calling
 * thread, user mode, the deepest level that the CPU counts, by RDPMC where that is possible and by read(2) elsewhere
 * (td_get_info tells which, and why).
 *
 * Threads: the handle belongs to the thread that opened it, and that thread alone may read, reset and query it.
 * Threads and processes that it starts are not counted (but see TD_FLAG_INHERIT); descriptors are close-on-exec.
 *
 * A helper thread, which ends with the call, opens the events; so prctl(PR_TASK_PERF_EVENTS_DISABLE) in the program
 * does not disable them. Signals are blocked during the call.
 *
 * Returns 0, or:
 *  -ENODEV         this CPU or virtual machine has no topdown counters
 *  -EACCES         denied by perf_event_paranoid or by a security module
 *  -EPERM          denied by a seccomp filter
 *  -ENOSYS         no perf_event_open system call
 *  -ENOTSUP        this CPU cannot give the level or the target
 *  -EINVAL         bad argument
 *  -E2BIG          options of a later version
 *  -ESRCH          no such thread
 *  -EMFILE         this process has no file descriptors left; a handle takes up to 12
 *  -ENFILE         the system has none left
 *  -ENOMEM         no memory, or none left that may be locked
 *  -EAGAIN         this user or container may not start another thread
 *  TD_ENOTCOUNTING others hold the counters
 * td_last_error says what is in the way and what to do about it. A failed call leaves nothing open. */
int td_open(td_t **out, const struct td_options *options);

/** Reads the totals since td_open or the last td_reset into `out`.
 *
 * By RDPMC this usually takes 44 to 50 instructions, with no system call, lock or allocation (by general counters 68 for level 1, 92
 * for both; what follows is of registers). PERF_METRICS holds rounded shares
 * of all slots since the registers were last reset. When they hold so many slots that the next region could not be
 * measured to within td_options.max_error_ppm, td_read resets them with a read(2) (some 7,400 instructions), as long as
 * td_options.max_overhead_ppm allows. So the accuracy of a pair of readings does not depend on what ran before.
 *
 * Threads: the one that opened the handle. It may be called in a signal handler of that thread, also in one that
 * interrupts another td_ call on the same handle or leaves that call by siglongjmp. A child of vfork(2), which
 * shares the memory, must not call it.
 *
 * RDPMC can be taken away: when 0 is written to the PMU's `rdpmc` file in sysfs, it faults from then on. So td_open of a
 * handle that uses RDPMC installs, once per process, a handler of SIGSEGV that recognizes this fault and passes all others
 * to the handler or action that it replaced; the reading returns TD_ENORDPMC. A program that then installs a handler of
 * its own, or a thread that has SIGSEGV blocked, is ended by SIGSEGV in this case. TD_FLAG_NO_RDPMC avoids that.
 *
 * On arm64 a reading by MRS takes 330 to 380 instructions, and the sysctl kernel.perf_user_access forbids it: who sets that to 0 while
 * the handle is open gets SIGILL where the above says SIGSEGV, and no error: this and further readings are by read(2).
 *
 * Returns 0, or:
 *  -EINVAL         an argument is NULL
 *  TD_EWRONGTHREAD called by another thread than the one that opened the handle, or in a forked child
 *  TD_ENORDPMC     see above
 *  -EBADF          the handle is closed, or the program has closed the descriptors of its events
 *  -EBUSY          signal handlers interrupted the call again and again, and used the handle
 *  -EIO            the kernel has given the counters up: their CPU went offline
 *  another -errno  of read(2)
 * A failure changes no totals. */
int td_read(td_t *td, struct td_sample *out);

/** Begins a new measurement period: totals start from zero, and samples from before do not decode with later ones.
 *
 * Costs a read(2) of the group. Threads and signal handlers as in td_read.
 *
 * Returns as td_read. */
int td_reset(td_t *td);

/** Ends a handle and closes its descriptors; NULL is ignored.
 *
 * The counters are free at once, even while forked children still have copies of the descriptors. A forked child that
 * has no use for the handle closes it, too: that frees its own copies and does not disturb the parent. Samples stay valid.
 *
 * Threads: the one that opened the handle, or another one when the owner does not use it any more. In a signal handler
 * only where free(3) may be called.
 *
 * Do not use the pointer afterwards. Calls with it return -EBADF until a later handle gets the same memory. */
void td_close(td_t *td);

/** Totals since td_open or the last td_reset. Two samples of one handle and period decode to the shares of what ran between
 * them. Plain data: copy it, send it to another thread, write it to a file. Another version of the library
 * refuses it, unless what it was counted by is the same there. */
struct td_sample {
    uint32_t size;             /**< sizeof(struct td_sample), set by the library. */
    uint32_t flags;            /**< TD_SAMPLE_* bits. */
    uint64_t slots;            /**< Pipeline slots counted in this period. */
    uint64_t time_enabled_ns;  /**< Nanoseconds of this period in which the thread (or CPU) ran. */
    /** Nanoseconds of those in which the counters counted: fewer if the kernel multiplexed them with other users', or if the
     * thread ran on cores of another kind. */
    uint64_t time_running_ns;
    uint64_t opaque[28];       /**< The library's own. */
};

/* Bits of td_sample.flags, and of the flags of all that is decoded from samples: */
/** Nothing bounds the error, and `error` of what is decoded is as large as it can be. The library could not count how often
 * the registers, which round, were saved and restored (TD_FLAG_INHERIT; or TD_FLAG_NO_RDPMC if no memory may be locked). */
#define TD_SAMPLE_UNBOUNDED 1
/** The times are older than the reading: of when the thread was last scheduled, or the library last read the clock. */
#define TD_SAMPLE_COARSE_TIME 2
#define TD_SAMPLE_SIMULATED 4       /**< Made by the simulated PMU (TD_FLAG_SIMULATE). */
/** Of a sum: not every execution was measured, and `error` is four standard errors of a random sample more than the bound of
 * those that were. */
#define TD_SAMPLE_SPARSE 8
/** Some of the library's own work follows the reading and is counted, and a constant bounds it: of marks of
 * registers that td_read_mark takes by a call, of the first reading of an execution in a sum by general counters, and on arm64 of the slow
 * path and of MRS. */
#define TD_SAMPLE_WORK_AFTER 32
#define TD_SAMPLE_WORK_BEFORE 64    /**< Likewise: some of it precedes the reading, and is counted. */
/** For a while there was no counter for what the published metrics correct nodes by (INT_MISC.UOP_DROPPING and the like): their intervals
 * have it. */
#define TD_SAMPLE_UNCORRECTED 128
/** Of a mark that td_read_mark took by a call: what the library executed on the way to the reading and back was counted, and is in the
 * bound of a region that begins or ends there. */
#define TD_SAMPLE_WORK_COUNTED 256

/* ---- Decode ---- */

/** Level 1: shares of the pipeline slots between two samples. They add up to 1: the four, and on AMD `smt_contention` with them. */
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
    /** AMD: slots that went to the core's other thread; 0 on CPUs that do not tell them apart. */
    double smt_contention;
    uint64_t reserved[1];    /**< Zero. */
};

/** Level 1: how the pipeline slots between two samples divide.
 *
 * `from` is the earlier sample, or NULL for the start of the period. Both are of the same handle and period. Samples are
 * plain data: any thread may decode them, at any time, also after td_close.
 *
 * The four shares add up to 1; on AMD with smt_contention, which is 0 elsewhere. On CPUs with PERF_METRICS they are its fields
 * over the sum of the four; perf's metrics correct some of them by further events and can differ by a few points.
 *
 * Returns 0, or:
 *  -EINVAL         `to` or `out` is NULL, not a sample, of different handles, or in the wrong order
 *  TD_ESTALE       the samples are of different periods
 *  TD_ENOTCOUNTING no slot was counted between them */
int td_decode_l1(const struct td_sample *from, const struct td_sample *to, struct td_l1 *out);

/** Level 2: shares of the pipeline slots between two samples. The eight add up to 1, and each pair to its share of level 1. */
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

/** Level 2: as td_decode_l1, each of the four shares in two parts.
 *
 * The eight shares add up to 1, none is negative, and each pair adds up to its share of level 1.
 *
 * Returns as td_decode_l1, and -ENOTSUP if level 2 was not counted, or has other nodes than these, as on E-cores: td_decode_tree
 * gives those. */
int td_decode_l2(const struct td_sample *from, const struct td_sample *to, struct td_l2 *out);

/* ---- Options ---- */

/** What to measure. All zeros, like NULL: the calling thread, in user mode, at the deepest level, by the fastest path. */
struct td_options {
    /** sizeof(struct td_options), set by the caller: so many bytes are read. 0 means 64, its size in the first version. Programs
     * built with a shorter or a longer struct of another version work, as long as all fields that this version does not know are zero. */
    uint32_t size;
    uint32_t flags;             /**< TD_FLAG_* bits. */
    uint32_t target;            /**< TD_TARGET_*. */
    int32_t id;                 /**< Thread id or CPU number of the target; 0 for TD_TARGET_SELF. */
    uint32_t level;             /**< 1, 2, 3, or 0 for the deepest that the CPU counts in one group. */
    /** Wanted bound on the error of each share, in parts per million, up to 1000000; 0 means 10000 (1 percentage point).
     * td_read resets the registers often enough that regions of a million slots or more reach it, within
     * max_overhead_ppm; `error` of the result is the bound that was reached. 1000000: readings never reset the
     * registers for exactness, only after a second without a reading and after the counters were away. */
    uint32_t max_error_ppm;
    /** The part of the thread's time that these resets may take, in parts per million, up to 1000000; 0 means 10000 (1 %).
     * Up to 64 of them may come in a row. */
    uint32_t max_overhead_ppm;
    /** A TD_NODE_* that is the parent of others: on cores whose counters cannot hold all of a level in one group, count what is
     * below this node beside level 1. `topdown list` names these nodes of each core; those of a hybrid CPU's E-cores take
     * TD_FLAG_E_CORES, too. -ENOTSUP for other nodes, and where something else has a counter that the group takes; td_last_error
     * says what. 0: none. (Regions under libtopdown-preload.so have all of the level, with TOPDOWN_LEVEL: its parts take turns
     * from one execution to another.) */
    uint32_t subtree;
    uint32_t source;            /**< TD_SOURCE_*: what is counted. */
    uint32_t core_type;         /**< TD_CORES_*: which cores of a hybrid CPU. */
    uint32_t reserved[6];       /**< Zeros. */
};

/* Values of td_options.target: */
#define TD_TARGET_SELF 0  /**< The calling thread; td_options.id is 0. */
#define TD_TARGET_TASK 1  /**< The thread whose id is td_options.id. */
#define TD_TARGET_CPU 2   /**< Everything that runs on the CPU whose number is td_options.id. */

/* Bits of td_options.flags: */
#define TD_FLAG_KERNEL 1      /**< Count kernel mode, too. Read by read(2). */
/** Count threads and processes, too, that the target starts from now on. Read by read(2). Nothing bounds the error then:
 * samples have TD_SAMPLE_UNBOUNDED. For a bound, open one handle in each thread instead. */
#define TD_FLAG_INHERIT 2
#define TD_FLAG_NO_RDPMC 4    /**< Read by read(2) even where RDPMC is possible; no RDPMC is ever executed. */
#define TD_FLAG_SIMULATE 8    /**< Use a simulated PMU (td_simulate_mix). Only this flag chooses it. */
#define TD_FLAG_REGISTERS 16  /**< As td_options.source TD_SOURCE_REGISTERS. */
#define TD_FLAG_COUNTERS 32   /**< As td_options.source TD_SOURCE_COUNTERS. */
#define TD_FLAG_E_CORES 256   /**< As td_options.core_type TD_CORES_E. */
/** Bare sources: each node is as its registers or counters have it. Without this flag the nodes are Intel's published metrics, which up
 * to Redwood Cove take the slots of INT_MISC.UOP_DROPPING out of frontend bound and fetch latency, by one general counter more; where
 * none is left for it, the intervals have those slots. Hybrid CPUs up to Redwood Cove: the P-cores alone. */
#define TD_FLAG_BARE 512

/* Values of td_options.source: what is counted. */
/** General counters if they are free when the handle opens, else registers; td_info.note says why. Where there are no registers,
 * or the kernel shows none, as in virtual machines: general counters. */
#define TD_SOURCE_AUTO 0
/** SLOTS and PERF_METRICS, which take no general counter from other users of the PMU. -ENODEV where there are none. */
#define TD_SOURCE_REGISTERS 1
/** General counters of each category's slots. They are exact, but other users of the PMU go without them. */
#define TD_SOURCE_COUNTERS 2

/* Values of td_options.core_type: which cores of a hybrid CPU are measured; on other CPUs 0 and TD_CORES_P are the same. */
/** Both kinds for a thread that may run on both: level 1 and branch mispredicts, by general counters of both groups. P-cores alone
 * with a level of 2, a source, a subtree, TD_FLAG_INHERIT or a CPU as target, or if others hold counters (td_info.note). */
#define TD_CORES_AUTO 0
#define TD_CORES_P 1     /**< P-cores alone. */
/** E-cores alone, by general counters. Level 2 has nodes of its own, which td_decode_tree gives. -ENOTSUP if the CPU is not hybrid. */
#define TD_CORES_E 2

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
    /** Why the path is not TD_PATH_RDPMC, why level 1 alone is counted, or why registers are rather than general counters, and what to
     * do about it; else empty. It may change, as path, level and counters may, while others take general counters. */
    char note[192];
    uint32_t max_error_ppm;     /**< td_options.max_error_ppm, or its default. */
    uint32_t max_overhead_ppm;  /**< td_options.max_overhead_ppm, or its default. */
    uint64_t windows;           /**< How often readings have reset the registers for accuracy since td_open. */
    /** Nanoseconds that this took; cycles of the time-stamp counter if the kernel gives user space no clock. */
    uint64_t windows_ns;
    /** General counters that the handle takes; 0: its source is SLOTS and PERF_METRICS, with what corrects them beside them. */
    uint32_t counters;
    uint32_t reserved;          /**< Zero. */
};

/* Values of td_info.path: how the counters are read. */
#define TD_PATH_RDPMC 1      /**< In user space, by RDPMC; on arm64 by MRS, where kernel.perf_user_access is 1. */
#define TD_PATH_READ 2       /**< By read(2); td_info.note says why. */
#define TD_PATH_SIMULATED 3  /**< Nothing is read: the numbers are simulated. */

/** Describes what a handle measures, and how.
 *
 * Signals are blocked during the call. Threads as in td_read.
 *
 * Returns as td_read. */
int td_get_info(const td_t *td, struct td_info *out);

/* ---- Errors ---- */

/* Codes of the library's own; all others are -errno. */
#define TD_EWRONGTHREAD -4097  /**< The handle was used by a thread that did not open it, or in a forked child. */
/** No slot was counted: the target never ran, or on other cores (E-cores), or others held the counters. */
#define TD_ENOTCOUNTING -4098
#define TD_ESTALE -4099        /**< Samples from before and after a td_reset were mixed, or a mark is too old. */
/** RDPMC was taken away while the handle was open: 0 was written to the PMU's `rdpmc` file in sysfs. */
#define TD_ENORDPMC -4100

/** Short text of a code that this library returned. Static, never NULL. Any thread. */
const char *td_strerror(int code);

/** Copies the calling thread's last failure in full: what happened, why, and what to do about it.
 *
 * `buffer` receives the text, cut to `length` - 1 bytes, and a NUL. Pass NULL and 0 to ask for the length. Successful calls
 * do not change the text.
 *
 * Returns the length of the whole text without the NUL, 0 if no call of this thread has failed yet; or -EINVAL if
 * `buffer` is NULL and `length` is not 0. */
int td_last_error(char *buffer, size_t length);

/** Version of the library that the program runs with, "MAJOR.MINOR.PATCH"; TD_VERSION is that of the header.
 *
 * Static text. Any thread. */
const char *td_version(void);

/* ---- The tree of metrics: all that a CPU gives, as nodes with parents and bounds ---- */

/** A node of the tree of metrics, with its share between two samples. */
struct td_node {
    uint32_t size;         /**< sizeof(struct td_node), set by the library. */
    uint32_t flags;        /**< TD_SAMPLE_* bits of both samples. */
    uint32_t id;           /**< TD_NODE_*. A metric has the same number on all CPUs and in all versions. */
    uint32_t parent;       /**< `id` of the node of which it is a part; TD_NODE_NONE for roots. */
    uint32_t level;        /**< 1 for roots, else one more than the parent's. */
    /** TD_UNIT_*: what the shares are of. Children of another unit than their parent's do not add up to it. */
    uint32_t unit;
    uint32_t measured;     /**< 1; or 0 if the node was not counted: then `value`, `low` and `high` are NaN. */
    uint32_t reserved0;    /**< Zero. */
    double value;          /**< The share, 0 to 1. */
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
#define TD_UNIT_SLOTS 1   /**< A share of the pipeline slots. */
#define TD_UNIT_CLOCKS 2  /**< A share of the core's cycles. */

/** The tree of metrics: every node that the CPU has, between two samples as in td_decode_l1.
 *
 * `nodes` receives the first `capacity` nodes, parents before their children, in the order of td_list_nodes; it may be NULL
 * if `capacity` is 0. `count` receives the number of nodes that the tree has.
 *
 * `value` of a node is the share that td_decode_l1 and td_decode_l2 give; the truth lies between `low` and `high`. A node
 * that was not measured (level 2, with a handle of level 1) has `measured` 0 and NaN for its shares. Nothing but the samples
 * is needed: the tree is that of the CPU on which they were taken, not of the one that decodes them.
 *
 * Returns as td_decode_l1. */
int td_decode_tree(const struct td_sample *from, const struct td_sample *to, struct td_node *nodes, uint32_t capacity,
                   uint32_t *count);

#define TD_AS_PUBLISHED 0  /**< The nodes as their maker publishes them: td_decode_tree. */
/** The nodes as registers or counters have them: without what corrects frontend bound, fetch latency and backend bound (up to Redwood
 * Cove), and without its slots in the intervals. */
#define TD_AS_BARE 2

/** As td_decode_tree, by a definition of the nodes: TD_AS_*.
 *
 * Returns as td_decode_tree, and:
 *  -EINVAL  `definition` is none */
int td_decode_tree_as(const struct td_sample *from, const struct td_sample *to, uint32_t definition,
                      struct td_node *nodes, uint32_t capacity, uint32_t *count);

/** Lists the nodes of the tree of the handle's CPU, and which of them the handle measures.
 *
 * `nodes`, `capacity` and `count` as in td_decode_tree. `measured` tells whether the handle measures the node; the shares
 * are NaN. The list stays the same as long as the handle is open. Threads as in td_read.
 *
 * Returns as td_read. */
int td_list_nodes(const td_t *td, struct td_node *nodes, uint32_t capacity, uint32_t *count);

/** The number of the node that perf calls `name`, such as "tma_l1_bound" or "l1_bound"; TD_NODE_NONE if this version knows none, or
 * `name` is NULL.
 *
 * A node has the same number on all CPUs and in all versions. Any thread, also in a signal handler. */
uint32_t td_node_id(const char *name);

/** perf's name of the node with this td_node.id, such as "tma_retiring"; "" if this version knows none.
 *
 * Static text, never NULL. Any thread, also in a signal handler. */
const char *td_node_name(uint32_t id);

/* ---- Sums: regions that run many times ---- */

/** Sum over executions of one region. Clear it (memset) before the first execution; then call td_sum_begin and td_sum_end
 * around each execution, or td_sum_add after it. Plain data, for one thread at a time. */
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
    uint64_t unseen;           /**< Zero. */
    uint64_t opaque[115];      /**< The library's own. */
};

/** Begins an execution of the sum's region.
 *
 * For regions that are too short, or run too often, to measure each execution. td_sum_begin measures a random choice of
 * them, as many as td_options.max_overhead_ppm allows, and counts the slots alone of all others; such an execution costs
 * some 120 instructions in all. The result is right if what an execution does has nothing to do with its being chosen. Where
 * general counters are counted (td_info.counters), each execution is measured, for some 220 (level 1) or 290 instructions where a counter
 * of slots leads (P-cores), and for some 2,600 to 2,900 where cycles do (E-cores, AMD's cores, arm64); now and then
 * one of nothing is measured before it, which tells what the library itself executes between the two readings.
 *
 * Each thread has sums of its own. Executions of different sums may nest; those of one may not: a second begin starts
 * the execution anew. Threads as in td_read.
 *
 * Returns as td_read. */
int td_sum_begin(td_t *td, struct td_sum *sum);

/** Ends the execution that td_sum_begin began with the same handle.
 *
 * Returns as td_read; -EINVAL also if none had begun (td_sum.unbalanced counts these) or with another handle, TD_ESTALE if
 * td_reset was called in between. */
int td_sum_end(td_t *td, struct td_sum *sum);

/** Adds one execution of a region, from a sample taken before it and one taken after it.
 *
 * Every execution is measured, so `error` of the result is a bound that always holds: at most the sum of the bounds of the
 * single executions, and far less if they follow each other closely, as in a loop. Any thread, one at a time.
 *
 * Returns as td_decode_l1; nothing is added if it fails. An execution without a slot is counted, and changes no share. */
int td_sum_add(struct td_sum *sum, const struct td_sample *from, const struct td_sample *to);

/** Level 1 shares of all executions in a sum. Any thread.
 *
 * `slots` is of all executions. Where general counters are counted, what the library itself executes between the readings of
 * td_sum_begin and td_sum_end is left out of slots and shares, once enough executions tell how much it is (some 500).
 *
 * If each was measured, `error` bounds the error of the shares; what it says of the library's own instructions, once these are left
 * out, is four standard errors (docs/error-bound-sums.md). If not each was, `flags` has
 * TD_SAMPLE_SPARSE, and `error` is the bound of the measured ones plus four standard errors of the mean of a random sample
 * (with fewer than eight measured executions: plus the most that the others can have been).
 *
 * Returns 0, or:
 *  -EINVAL         an argument is NULL, or `sum` is not a sum
 *  TD_ENOTCOUNTING no execution was measured yet */
int td_sum_l1(const struct td_sum *sum, struct td_l1 *out);

/** Level 2 shares of all executions in a sum, as td_sum_l1.
 *
 * Returns as td_sum_l1, and -ENOTSUP if level 2 was not counted. */
int td_sum_l2(const struct td_sum *sum, struct td_l2 *out);

/** Nodes of the tree of metrics of the sum's CPU, over all executions. Any thread.
 *
 * `nodes`, `capacity` and `count` as in td_decode_tree. The truth lies between `low` and `high`; if not every execution was
 * measured, this is as sure as td_sum_l1's `error`. `value` is what td_sum_l1 and td_sum_l2 say. A sum is of one CPU:
 * td_sum_add refuses samples of another tree.
 *
 * Returns as td_sum_l1. */
int td_sum_decode_tree(const struct td_sum *sum, struct td_node *nodes, uint32_t capacity, uint32_t *count);

/* ---- Raw decoding: for programs that execute RDPMC themselves ---- */

/** Level 1 shares between two readings of SLOTS and PERF_METRICS that the caller took by RDPMC, `a` before `b`.
 *
 * For programs that open a perf group of their own. Both readings are of the same thread, with no context switch between
 * them and nothing that resets the registers (read(2), PERF_EVENT_IOC_RESET); else `error` does not hold. For
 * the moment of the reset itself, pass 0 for slots_a and metrics_a. Any thread.
 *
 * Returns 0, or:
 *  -EINVAL         `out` is NULL, or SLOTS has more than 48 bits
 *  TD_ESTALE       SLOTS went back: the registers were reset in between
 *  TD_ENOTCOUNTING SLOTS stood still, or PERF_METRICS is empty */
int td_decode_raw_l1(uint64_t slots_a, uint64_t metrics_a, uint64_t slots_b, uint64_t metrics_b, struct td_l1 *out);

/** Level 2 shares between two readings, as td_decode_raw_l1.
 *
 * The upper half of PERF_METRICS, which has them, is defined on Sapphire Rapids, Alder Lake and later P-cores only.
 *
 * Returns as td_decode_raw_l1, and -ENOTSUP if the upper halves are empty and the CPU that runs the call has level 1 only. */
int td_decode_raw_l2(uint64_t slots_a, uint64_t metrics_a, uint64_t slots_b, uint64_t metrics_b, struct td_l2 *out);

/* ---- Simulation ---- */

/** How the slots of the simulated PMU truly divide: shares of all slots, 0 to 1. The level 1 four add up
 * to 1; a level 2 share is at most its level 1 share. */
struct td_mix {
    uint32_t size;              /**< sizeof(struct td_mix), set by the caller; 0 means 72. */
    uint32_t reserved;          /**< Zero. */
    double retiring;            /**< Level 1. */
    double bad_speculation;     /**< Level 1. */
    double frontend_bound;      /**< Level 1. */
    double backend_bound;       /**< Level 1. */
    double heavy_operations;    /**< Part of retiring. */
    double branch_mispredicts;  /**< Part of bad speculation. */
    double fetch_latency;       /**< Part of frontend bound. */
    double memory_bound;        /**< Part of backend bound. */
};

/** Sets how the slots of a handle's simulated PMU divide from now on.
 *
 * For programs that are developed or tested where there is no PMU: open with TD_FLAG_SIMULATE. Slots then follow the
 * time-stamp counter, also while the thread sleeps, and the registers round and are reset as real ones are. A handle
 * begins with retiring 0.4, bad speculation 0.1, frontend bound 0.2, backend bound 0.3. Threads as in td_read.
 *
 * Returns 0, or:
 *  -EINVAL         an argument is NULL, mix->size is wrong, or the shares are not a mix
 *  -ENOTSUP        the handle was not opened with TD_FLAG_SIMULATE
 * or as td_read. */
int td_simulate_mix(td_t *td, const struct td_mix *mix);

/** As td_open, of the simulated PMU of a chosen core: for programs that have to work on other CPUs, too.
 *
 * `core` is a name that `topdown list` prints, as in td_info.core, such as "Golden or Raptor Cove" or "Zen 5": any program can be
 * tested on any machine with the nodes and levels of another CPU. "made-up core" does not
 * exist: it has plain counters and a tree of three levels, the last in cycles, to test programs that walk the tree.
 * `options` as in td_open; TD_FLAG_SIMULATE need not be set. td_simulate_counters sets what the PMU of a core with plain
 * counters counts, td_simulate_mix what that of any other counts.
 *
 * Returns 0, or:
 *  -EINVAL         an argument is NULL, or no core has the name: td_last_error has all names
 * or as td_open. */
int td_simulate(td_t **out, const struct td_options *options, const char *core);

/** Sets how much each plain counter of a handle's simulated PMU counts per cycle from now on.
 *
 * `per_cycle` has `count` numbers from 0 to 64, of the core's first counter and on; all other counters stand still. Cycles
 * follow the time-stamp counter, also while the thread sleeps. Threads as in td_read.
 *
 * Returns 0, or:
 *  -EINVAL         an argument is NULL, there are more than 15 numbers, or one is out of range
 *  -ENOTSUP        the handle has no simulated plain counters
 * or as td_read. */
int td_simulate_counters(td_t *td, const double *per_cycle, uint32_t count);

#ifdef __cplusplus
}
#endif

#if defined(__cplusplus) && __cplusplus >= 201103L
#define TD_ASSERT_(condition) static_assert(condition, #condition)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define TD_ASSERT_(condition) _Static_assert(condition, #condition)
#else
#define TD_ASSERT_(condition) struct td_assert_
#endif
TD_ASSERT_(sizeof(struct td_options) == 64 && offsetof(struct td_options, subtree) == 28);
TD_ASSERT_(sizeof(struct td_sample) == 256 && offsetof(struct td_sample, opaque) == 32);
TD_ASSERT_(sizeof(struct td_l1) == 80);
TD_ASSERT_(sizeof(struct td_l2) == 112);
TD_ASSERT_(sizeof(struct td_info) == 384);
TD_ASSERT_(sizeof(struct td_node) == 96 && offsetof(struct td_node, value) == 32);
TD_ASSERT_(sizeof(struct td_sum) == 992 && offsetof(struct td_sum, opaque) == 72);
TD_ASSERT_(sizeof(struct td_mix) == 72);
#undef TD_ASSERT_

#endif
