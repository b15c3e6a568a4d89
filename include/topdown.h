/* topdown.h: where the CPU's pipeline slots go (TopDown, TMA), for any region of a program, measured from
 * inside it. Link with -ltopdown.
 *
 *     td_t *td;
 *     struct td_sample before, after;
 *     struct td_l1 shares;
 *     td_open(&td, NULL);
 *     td_read(td, &before);
 *     ... the region ...
 *     td_read(td, &after);
 *     td_decode_l1(&before, &after, &shares);
 *
 * Functions return 0 or a negative code: -errno, or TD_E* below -4096. td_strerror tells what a code means,
 * td_last_error what happened in full. Outputs are written on success only. A NULL pointer is an error,
 * never a crash. Nothing is printed and no environment variable is read.
 *
 * Structures begin with their size. In td_options and td_mix the caller sets it; in results the library
 * does. Unused parts are zeros.
 *
 * Made from the Rust sources by `make header`: do not edit. */

#ifndef TOPDOWN_H
#define TOPDOWN_H

#include <stddef.h>
#include <stdint.h>
/* A handle. It belongs to the thread that opened it. */
typedef struct td td_t;


/**
 * `td_node.parent`: the node is a root.
 */
#define TD_NODE_NONE 0

/**
 * `td_node.id`: tma_retiring.
 */
#define TD_NODE_RETIRING 1

/**
 * `td_node.id`: tma_bad_speculation.
 */
#define TD_NODE_BAD_SPECULATION 2

/**
 * `td_node.id`: tma_frontend_bound.
 */
#define TD_NODE_FRONTEND_BOUND 3

/**
 * `td_node.id`: tma_backend_bound.
 */
#define TD_NODE_BACKEND_BOUND 4

/**
 * `td_node.id`: tma_heavy_operations.
 */
#define TD_NODE_HEAVY_OPERATIONS 5

/**
 * `td_node.id`: tma_light_operations.
 */
#define TD_NODE_LIGHT_OPERATIONS 6

/**
 * `td_node.id`: tma_branch_mispredicts.
 */
#define TD_NODE_BRANCH_MISPREDICTS 7

/**
 * `td_node.id`: tma_machine_clears.
 */
#define TD_NODE_MACHINE_CLEARS 8

/**
 * `td_node.id`: tma_fetch_latency.
 */
#define TD_NODE_FETCH_LATENCY 9

/**
 * `td_node.id`: tma_fetch_bandwidth.
 */
#define TD_NODE_FETCH_BANDWIDTH 10

/**
 * `td_node.id`: tma_memory_bound.
 */
#define TD_NODE_MEMORY_BOUND 11

/**
 * `td_node.id`: tma_core_bound.
 */
#define TD_NODE_CORE_BOUND 12

/**
 * `td_node.unit`: the value is a share of the pipeline slots.
 */
#define TD_UNIT_SLOTS 1

/**
 * `td_node.unit`: the value is a share of the core's cycles.
 */
#define TD_UNIT_CLOCKS 2

/**
 * Where the control page of SLOTS is, in bytes from the handle. The library's own.
 */
#define TD_CONTROL_PAGE 4096

/**
 * `td_sample.flags`: how often the registers were saved and restored could not be counted, so nothing bounds
 * what their rounding did: `error` of anything decoded from this sample is as large as it can be. (TD_FLAG_INHERIT;
 * or no memory left that may be locked, with TD_FLAG_NO_RDPMC.)
 */
#define TD_SAMPLE_UNBOUNDED 1

/**
 * `td_sample.flags`: the kernel gives no clock to user space here, so the times are those of the last
 * time that the thread was scheduled.
 */
#define TD_SAMPLE_COARSE_TIME 2

/**
 * `td_sample.flags`: no reading has it any more. Earlier versions set it where reading the registers cleared them.
 */
#define TD_SAMPLE_CLEARED 16

/**
 * `td_sample.flags`: the reading took the slow path, and some of the library's own work after it counts.
 */
#define TD_SAMPLE_WORK_AFTER 32

/**
 * `td_sample.flags`: and some before it.
 */
#define TD_SAMPLE_WORK_BEFORE 64

/**
 * `td_sample.flags`: made by the simulated PMU (TD_FLAG_SIMULATE).
 */
#define TD_SAMPLE_SIMULATED 4

/**
 * `td_l1.flags`, `td_l2.flags`, `td_node.flags`: not every execution was measured, so `error` is four standard errors of a random
 * sample, over the bound of what was measured.
 */
#define TD_SAMPLE_SPARSE 8

/**
 * The handle was used by a thread that did not open it, or in a forked child.
 */
#define TD_EWRONGTHREAD -4097

/**
 * Nothing was counted between the two samples: never scheduled, starved, or on an E-core.
 */
#define TD_ENOTCOUNTING -4098

/**
 * A sample from before a `td_reset` was used with one from after it; or a mark is older than the handle remembers.
 */
#define TD_ESTALE -4099

/**
 * RDPMC was taken away while the handle was open: somebody wrote 0 to the PMU's `rdpmc` file in sysfs.
 */
#define TD_ENORDPMC -4100

/**
 * td_options.target: the calling thread.
 */
#define TD_TARGET_SELF 0

/**
 * td_options.target: the thread whose id is in td_options.id.
 */
#define TD_TARGET_TASK 1

/**
 * td_options.target: everything on the CPU whose number is in td_options.id.
 */
#define TD_TARGET_CPU 2

/**
 * td_options.flags: count kernel mode too. Read by read(2).
 */
#define TD_FLAG_KERNEL 1

/**
 * td_options.flags: count threads and processes that the target starts from now on, too. Read by read(2).
 * Nothing bounds the error then: samples are TD_SAMPLE_UNBOUNDED. One handle in each thread has a bound.
 */
#define TD_FLAG_INHERIT 2

/**
 * td_options.flags: read by read(2) even where RDPMC is possible; no RDPMC is executed.
 */
#define TD_FLAG_NO_RDPMC 4

/**
 * td_options.flags: use a simulated PMU. Never chosen by itself.
 */
#define TD_FLAG_SIMULATE 8

/**
 * td_options.flags: measure on the E-cores of a hybrid CPU, where the default measures on its P-cores: level 1, by
 * read(2), exact but for what ran uncounted. A thread that runs on both has a handle for each; `running` of either tells
 * how much of the time was its own, and slots add up.
 */
#define TD_FLAG_E_CORES 256

/**
 * td_info.path: readings are RDPMC, from user space.
 */
#define TD_PATH_RDPMC 1

/**
 * td_info.path: readings are read(2); td_info.note tells why.
 */
#define TD_PATH_READ 2

/**
 * td_info.path: the numbers are simulated (TD_FLAG_SIMULATE).
 */
#define TD_PATH_SIMULATED 3

/**
 * The opaque handle of C: where a `Handle` points.
 */
struct td;

/**
 * What to measure. All zeros, or a NULL pointer: this thread, user mode, deepest level, best path.
 */
struct td_options {
    /**
     * sizeof(struct td_options); 0 stands for the size in this header. A shorter or longer struct, of another
     * version, is fine as long as what this version does not know is zero.
     */
    uint32_t size;
    /**
     * TD_FLAG_* bits.
     */
    uint32_t flags;
    /**
     * TD_TARGET_*.
     */
    uint32_t target;
    /**
     * Thread id or CPU number of the target; 0 for TD_TARGET_SELF.
     */
    int32_t id;
    /**
     * 0 for the deepest that the CPU's counters give in one group, 1, or 2.
     */
    uint32_t level;
    /**
     * Wanted bound on each share's error, in parts per million; 0 stands for 10000 (1 point); at most
     * 1000000. td_read opens new windows of the registers so that regions of a million slots or more have it,
     * within max_overhead_ppm; `error` tells what a region got. 1000000 for no windows of
     * the readings' own.
     */
    uint32_t max_error_ppm;
    /**
     * What these windows may take of the thread's time, in parts per million; 0 stands for 10000 (1 %); at
     * most 1000000. Up to 64 of them may come in a burst.
     */
    uint32_t max_overhead_ppm;
    /**
     * Zeros.
     */
    uint32_t reserved[9];
};

/**
 * Where the totals stood when the present window of the hardware registers began. The library's own:
 * callers need not look at it.
 */
struct td_base {
    /**
     * Sequence number of the control page under which the registers are read.
     */
    uint32_t sequence;
    /**
     * Number of the window: `first_window` of the period, and on from there.
     */
    uint32_t window;
    /**
     * Random number of the handle, not 0. It and `period` together are those of no other handle, in whatever process.
     */
    uint32_t handle;
    /**
     * Number of the period: random when the handle is opened, and counted on by `td_reset`.
     */
    uint32_t period;
    /**
     * How often the registers were saved and restored since the window began; 65535 for that often or more.
     */
    uint16_t switches;
    /**
     * Row of the table of CPU models.
     */
    uint8_t model;
    /**
     * Deepest level that was counted: 1 or 2.
     */
    uint8_t level;
    /**
     * When the registers were last known not to have been reset by somebody else: milliseconds of
     * `time_enabled_ns`, modulo 2^32.
     */
    uint32_t checked_ms;
    /**
     * Bound on the rounding error of each of `category`, in slots; it only grows.
     */
    uint64_t error;
    /**
     * Slots before the window of retiring, bad speculation, frontend bound, heavy operations, branch
     * mispredicts, fetch latency, memory bound; backend bound has the rest.
     */
    int64_t category[7];
};

/**
 * Totals since `td_open` or the last `td_reset`, as `td_read` takes them. Two samples of one period
 * decode to the shares of what ran between them. Copy it, keep it, hand it to another thread or write
 * it to a file: it is plain data. It means nothing to another version of the library.
 */
struct td_sample {
    /**
     * sizeof(struct td_sample), written by the library.
     */
    uint32_t size;
    /**
     * TD_SAMPLE_* bits.
     */
    uint32_t flags;
    /**
     * Pipeline slots counted in this period.
     */
    uint64_t slots;
    /**
     * Nanoseconds of this period in which the thread (or CPU) ran with the counters open.
     */
    uint64_t time_enabled_ns;
    /**
     * Nanoseconds of those in which the counters really counted; less when other users of the counters
     * took turns with this one, or on a hybrid CPU's E-cores.
     */
    uint64_t time_running_ns;
    /**
     * Slots of this period before the present window of the registers: `slots` less this is what the SLOTS
     * register said.
     */
    uint64_t slots_before;
    /**
     * The totals at the start of the window.
     */
    struct td_base base;
    /**
     * The PERF_METRICS register: eight 8-bit shares of the slots since the window began.
     */
    uint64_t raw_metrics;
    /**
     * Totals of plain counters, on CPUs whose shares are computed from such. Untouched where PERF_METRICS
     * gives the shares.
     */
    uint64_t counter[15];
};

/**
 * A reading that a program inlines (topdown_inline.h): the registers, and which window they are of. The handle
 * makes a sample of it (td_mark_sample).
 */
struct td_mark {
    /**
     * The SLOTS register, since the start of the window.
     */
    uint64_t slots;
    /**
     * The PERF_METRICS register.
     */
    uint64_t metrics;
    /**
     * Sequence number of the control page.
     */
    uint32_t sequence;
    /**
     * Number of the window.
     */
    uint32_t window;
};

/**
 * Level 1: shares of pipeline slots between two samples. The four add up to 1.
 */
struct td_l1 {
    /**
     * sizeof(struct td_l1), written by the library.
     */
    uint32_t size;
    /**
     * TD_SAMPLE_* bits of both samples.
     */
    uint32_t flags;
    /**
     * Slots between the two samples.
     */
    uint64_t slots;
    /**
     * Share of slots whose operation retired, 0 to 1.
     */
    double retiring;
    /**
     * Share of slots wasted on wrong paths and on recovery from them, 0 to 1.
     */
    double bad_speculation;
    /**
     * Share of slots that the frontend left empty, 0 to 1.
     */
    double frontend_bound;
    /**
     * Share of slots that the backend could not take, 0 to 1.
     */
    double backend_bound;
    /**
     * Bound: no share is further than this from the truth, 0 to 1.
     */
    double error;
    /**
     * Part of the time between the samples that the counters were counting, 0 to 1.
     */
    double running;
    /**
     * Zero.
     */
    uint64_t reserved[2];
};

/**
 * Level 2: shares of pipeline slots between two samples. The eight add up to 1; each pair adds up to
 * its level 1 share.
 */
struct td_l2 {
    /**
     * sizeof(struct td_l2), written by the library.
     */
    uint32_t size;
    /**
     * TD_SAMPLE_* bits of both samples.
     */
    uint32_t flags;
    /**
     * Slots between the two samples.
     */
    uint64_t slots;
    /**
     * Part of retiring: operations of instructions that need several, or microcode.
     */
    double heavy_operations;
    /**
     * Part of retiring: the rest.
     */
    double light_operations;
    /**
     * Part of bad speculation: mispredicted branches.
     */
    double branch_mispredicts;
    /**
     * Part of bad speculation: machine clears.
     */
    double machine_clears;
    /**
     * Part of frontend bound: nothing was delivered.
     */
    double fetch_latency;
    /**
     * Part of frontend bound: too little was delivered.
     */
    double fetch_bandwidth;
    /**
     * Part of backend bound: waiting for memory.
     */
    double memory_bound;
    /**
     * Part of backend bound: waiting for execution units.
     */
    double core_bound;
    /**
     * Bound: no share is further than this from the truth, 0 to 1.
     */
    double error;
    /**
     * Part of the time between the samples that the counters were counting, 0 to 1.
     */
    double running;
    /**
     * Zero.
     */
    uint64_t reserved[2];
};

/**
 * A node of the tree of metrics, and its share between two samples.
 */
struct td_node {
    /**
     * sizeof(struct td_node), written by the library.
     */
    uint32_t size;
    /**
     * TD_SAMPLE_* bits of both samples.
     */
    uint32_t flags;
    /**
     * TD_NODE_*: which metric it is. The same metric has the same number on all CPUs and in all versions.
     */
    uint32_t id;
    /**
     * The node of which it is a part; TD_NODE_NONE for roots.
     */
    uint32_t parent;
    /**
     * 1 for roots, and one more than the parent's.
     */
    uint32_t level;
    /**
     * TD_UNIT_*: what the value is a share of. Nodes of another unit than their parent's do not add up to it.
     */
    uint32_t unit;
    /**
     * 1, or 0: what the node takes was not counted, and `value`, `low` and `high` are NaN.
     */
    uint32_t measured;
    /**
     * Zero.
     */
    uint32_t reserved0;
    /**
     * The share, 0 to 1.
     */
    double value;
    /**
     * The truth is not below this.
     */
    double low;
    /**
     * Nor above this.
     */
    double high;
    /**
     * Part of the time between the samples that the counters were counting, 0 to 1.
     */
    double running;
    /**
     * How many of `unit` were counted between the samples.
     */
    uint64_t whole;
    /**
     * Zeros.
     */
    uint64_t reserved[3];
};

/**
 * Slots of each category, and bounds on their errors.
 */
struct td_part {
    /**
     * Slots of each category.
     */
    double category[8];
    /**
     * By rounding.
     */
    double rounding;
    /**
     * At the edges.
     */
    double edges;
};

/**
 * Sum over executions of one region: clear it to start, then td_sum_begin and td_sum_end around each, or td_sum_add.
 * Plain data, for one thread at a time.
 */
struct td_sum {
    /**
     * sizeof(struct td_sum), written by the library.
     */
    uint32_t size;
    /**
     * TD_SAMPLE_* bits of all samples.
     */
    uint32_t flags;
    /**
     * Executions that have ended.
     */
    uint64_t executions;
    /**
     * Slots in all of them.
     */
    uint64_t slots;
    /**
     * Nanoseconds in all of them, as in td_sample.
     */
    uint64_t time_enabled_ns;
    /**
     * Nanoseconds of those in which the counters really counted.
     */
    uint64_t time_running_ns;
    /**
     * Executions of which it is known how their slots divide.
     */
    uint64_t measured;
    /**
     * Slots in those.
     */
    uint64_t measured_slots;
    /**
     * Executions that ended without having begun.
     */
    uint64_t unbalanced;
    /**
     * Zero.
     */
    uint64_t unseen;
    /**
     * The rest is the library's own.
     */
    uint32_t level;
    /**
     * Between two executions, in one, or in one that is measured.
     */
    uint32_t state;
    /**
     * Executions to come before the next that is measured.
     */
    uint64_t wait;
    /**
     * State of the random numbers.
     */
    uint64_t random;
    /**
     * time_enabled_ns when the first execution began.
     */
    uint64_t begun_ns;
    /**
     * Measured executions that have been added up for good.
     */
    struct td_part closed;
    /**
     * The last ones, which follow each other closely: taken together, and each by itself.
     */
    struct td_part together;
    /**
     * See `together`.
     */
    struct td_part apart;
    /**
     * Sum of the squares of the slots of measured executions.
     */
    double xx;
    /**
     * Of measured executions: sums of the products of their slots and those of each category, then of the squares of the
     * latter. On CPUs with plain counters, which tell of each execution how its slots divide: how much each counted.
     */
    double moments[16];
    /**
     * The last sample added.
     */
    struct td_sample last;
    /**
     * Where the present execution began.
     */
    struct td_sample from;
};

/**
 * What a handle measures, and how.
 */
struct td_info {
    /**
     * sizeof(struct td_info), written by the library.
     */
    uint32_t size;
    /**
     * TD_PATH_*.
     */
    uint32_t path;
    /**
     * Deepest level that is counted: 1 or 2.
     */
    uint32_t level;
    /**
     * Pipeline slots per cycle of the core; 0 if no document tells.
     */
    uint32_t slots_per_cycle;
    /**
     * Brand string of the CPU; "simulated" if none is behind the numbers.
     */
    char cpu[64];
    /**
     * Name of the PMU in sysfs; "simulated" if none is behind the numbers.
     */
    char pmu[32];
    /**
     * Name of the core.
     */
    char core[48];
    /**
     * Why readings are not RDPMC, and what to do about it; empty if they are.
     */
    char note[192];
    /**
     * Wanted bound on each share's error, in parts per million.
     */
    uint32_t max_error_ppm;
    /**
     * What windows of td_read's own may take of the thread's time, in parts per million.
     */
    uint32_t max_overhead_ppm;
    /**
     * Windows that readings (td_read, td_read_mark, td_sum_begin) opened on their own since td_open.
     */
    uint64_t windows;
    /**
     * Nanoseconds that they took (ticks of the time-stamp counter where the kernel gives no clock to user space).
     */
    uint64_t windows_ns;
    /**
     * Zeros.
     */
    uint64_t reserved[1];
};

/**
 * How the slots of the simulated PMU truly divide: shares of all slots, 0 to 1. The level 1 four add up
 * to 1; a level 2 share is at most its level 1 share.
 */
struct td_mix {
    /**
     * sizeof(struct td_mix).
     */
    uint32_t size;
    /**
     * Zero.
     */
    uint32_t reserved;
    /**
     * Level 1.
     */
    double retiring;
    /**
     * Level 1.
     */
    double bad_speculation;
    /**
     * Level 1.
     */
    double frontend_bound;
    /**
     * Level 1.
     */
    double backend_bound;
    /**
     * Part of retiring.
     */
    double heavy_operations;
    /**
     * Part of bad speculation.
     */
    double branch_mispredicts;
    /**
     * Part of frontend bound.
     */
    double fetch_latency;
    /**
     * Part of backend bound.
     */
    double memory_bound;
};

/**
 * The part of a handle that readings look at; the control page of SLOTS follows it in memory. The library's own: programs
 * that inline readings are compiled with it, so when it changes, td_read_mark_slowly gets another name.
 */
struct td_hot {
    /**
     * Thread pointer of the thread whose calls of td_read may read the registers; 0 while nobody's may.
     */
    uint64_t reader;
    /**
     * The same of readings that programs inline.
     */
    uint64_t inline_reader;
    /**
     * Where the reader tells the kernel of its restartable sequence.
     */
    uint64_t *rseq;
    /**
     * With more slots than this in the registers, the library wants to have a look.
     */
    uint64_t limit;
    /**
     * Turns the time-stamp counter into nanoseconds.
     */
    uint64_t scale;
    /**
     * Not 0: the memory is as the parent left it.
     */
    uint64_t present;
    uint64_t _line[2];
    /**
     * What a sample would be were registers and clock at zero; `base.sequence` is what the page must say.
     */
    struct td_sample start;
};

#ifdef __cplusplus
extern "C" {
#endif /* __cplusplus */

/**
 * Opens the topdown counters and proves that they count.
 *
 * `out`: gets the handle, to be ended with td_close. `options`: NULL or all zeros for the defaults: the
 * calling thread, user mode, the deepest level, by RDPMC where that is possible and by read(2) where not
 * (td_get_info tells which, and why).
 *
 * The handle belongs to the thread that opens it: that thread alone reads, resets and asks it. It is
 * not inherited by what the thread starts, and its descriptors are close-on-exec.
 *
 * A thread that lasts as long as the call opens the events, so they belong to no thread of the program's, and
 * prctl(PR_TASK_PERF_EVENTS_DISABLE) does not switch them off. Signals are blocked meanwhile, as in
 * td_close and td_get_info; a handler may leave any td_ call by siglongjmp.
 *
 * Returns 0, or: -ENODEV no topdown counters on this CPU or VM; -EACCES perf_event_paranoid or a security
 * module; -EPERM a seccomp filter; -ENOSYS no perf_event_open; -ENOTSUP level or target that this CPU
 * cannot give; -EINVAL bad argument; -E2BIG options of a later version; -ESRCH no such thread;
 * -EMFILE, -ENFILE no descriptors left (a handle takes up to 10); -ENOMEM no memory, or none left that
 * may be locked; -EAGAIN no thread left to this user or container; TD_ENOTCOUNTING others hold the counters. td_last_error tells which wall it was and
 * what to do. A failed open leaves nothing behind.
 */
int td_open(struct td **out,
            const struct td_options *options);

/**
 * Takes the totals since td_open or the last td_reset.
 *
 * In the steady state on the RDPMC path: 43 instructions, no system call, no lock, no allocation. When the
 * registers hold so many slots that the next region could not be told to within td_options.max_error_ppm, it opens a
 * new window of them with a read(2) of the leader, some 5,100 instructions, as long as td_options.max_overhead_ppm
 * is not exceeded: a pair of readings around a region is right whatever ran before.
 *
 * It may be called in a signal handler of the thread, even one that interrupts another td_ call on the same handle or
 * leaves it by siglongjmp. A child of vfork, which shares the memory, must not call it.
 *
 * If somebody writes 0 to the PMU's `rdpmc` file in sysfs while handles are open, RDPMC faults from then on. td_open of
 * such a handle installs a handler of SIGSEGV, once in a process, that survives this fault and passes all others on to
 * what was there before: the reading returns TD_ENORDPMC. A program whose own handler replaces that one, or a thread that
 * has SIGSEGV blocked, ends with SIGSEGV there; where that may happen, open with TD_FLAG_NO_RDPMC.
 *
 * Returns 0, or: -EINVAL td or out is NULL; TD_EWRONGTHREAD called by another thread than the one that
 * opened, or in a forked child; TD_ENORDPMC see above; -EBADF the handle is closed; -EBUSY signal handlers used the handle again and again
 * meanwhile; -EIO the kernel
 * has given the counters up (a CPU that went offline); else -errno of read(2). Totals stay intact whatever it returns.
 */
int td_read(struct td *td,
            struct td_sample *out);

/**
 * What td_read_mark of topdown_inline.h calls where the steady state does not serve; works everywhere.
 *
 * Returns as td_read.
 */
int td_read_mark_slowly(struct td *td, struct td_mark *out);

/**
 * Makes a sample of a mark that td_read_mark (topdown_inline.h) took of the same handle.
 *
 * The sample decodes with others of its period, however they were taken. Its times are those of the last look at the
 * clock (TD_SAMPLE_COARSE_TIME). The handle remembers the last 64 looks, one for each context switch and each
 * window: a mark that is older is stale.
 *
 * Returns 0, or: -EINVAL NULL, or not a mark; TD_ESTALE too old, or of another handle; else as td_read.
 */
int td_mark_sample(struct td *td,
                   const struct td_mark *mark,
                   struct td_sample *out);

/**
 * Starts a new measurement period: totals start from zero, and earlier samples become stale.
 *
 * Costs a read(2) of the group. In a signal handler it is as td_read.
 *
 * Returns 0, or as td_read.
 */
int td_reset(struct td *td);

/**
 * Ends a handle and frees its descriptors; NULL is nothing to end. The only way to end one: in a forked
 * child, too, close what the parent opened. Another thread may close a handle that its owner does not use
 * any more; a signal handler may where it may call free(3).
 *
 * The counters are free at once, also while a forked child has copies of the handle's descriptors.
 *
 * The pointer means nothing afterwards. Calls with it say -EBADF for a while, until a later handle gets its
 * memory: do not close twice.
 */
void td_close(struct td *td);

/**
 * Level 1 shares of the slots between two samples of one handle and period.
 *
 * `from`: the earlier sample, or NULL for the start of the period. Any thread, any time, also after
 * td_close: samples are plain data.
 *
 * The four shares add up to 1. They are what PERF_METRICS gives, over the sum of its four fields; perf's
 * metrics correct some of them with further events and can differ by a few points.
 *
 * Returns 0, or: -EINVAL NULL, not a sample, of two handles, or in the wrong order; TD_ESTALE of two
 * periods; TD_ENOTCOUNTING no slot was counted between them.
 */
int td_decode_l1(const struct td_sample *from, const struct td_sample *to, struct td_l1 *out);

/**
 * Level 2 shares of the slots between two samples of one handle and period, as td_decode_l1.
 *
 * The eight shares add up to 1, none is negative, and each pair adds up to its level 1 share.
 *
 * Returns as td_decode_l1, and -ENOTSUP if the samples have no level 2.
 */
int td_decode_l2(const struct td_sample *from, const struct td_sample *to, struct td_l2 *out);

/**
 * Nodes of the CPU's tree of metrics between two samples of one handle and period, as td_decode_l1.
 *
 * `nodes`: gets the first `capacity` nodes, parents before their children, in the order of td_list_nodes; NULL with
 * capacity 0 to ask for their number. `count`: gets the number of the tree's nodes.
 *
 * For each node the truth lies between `low` and `high`, and `value` is what td_decode_l1 and td_decode_l2 say.
 * What the handle did not measure (level 2 with one of level 1) has measured = 0, and NaN for its figures. The samples are
 * enough, on any machine; the tree is that of the CPU on which they were taken.
 *
 * Returns as td_decode_l1.
 */
int td_decode_tree(const struct td_sample *from,
                   const struct td_sample *to,
                   struct td_node *nodes,
                   uint32_t capacity,
                   uint32_t *count);

/**
 * Level 1 shares between two readings of SLOTS and PERF_METRICS that the caller took by RDPMC, `a` first.
 *
 * For callers with a perf group of their own. Both readings are of one thread, with nothing in between
 * that resets the registers (read(2), PERF_EVENT_IOC_RESET) and no context switch; otherwise `error` does
 * not hold. slots_a = metrics_a = 0 stands for the moment of the reset. Any thread.
 *
 * Returns 0, or: -EINVAL out is NULL, or slots of more than 48 bits; TD_ESTALE SLOTS went back, so the
 * registers were reset in between; TD_ENOTCOUNTING SLOTS stood still, or PERF_METRICS is empty.
 */
int td_decode_raw_l1(uint64_t slots_a,
                     uint64_t metrics_a,
                     uint64_t slots_b,
                     uint64_t metrics_b,
                     struct td_l1 *out);

/**
 * Level 2 shares between two readings of SLOTS and PERF_METRICS, as td_decode_raw_l1.
 *
 * The upper half of PERF_METRICS means something on Sapphire Rapids, Alder Lake and later P-cores only.
 *
 * Returns as td_decode_raw_l1, and -ENOTSUP if the upper halves are empty and the CPU that runs this has
 * level 1 only.
 */
int td_decode_raw_l2(uint64_t slots_a,
                     uint64_t metrics_a,
                     uint64_t slots_b,
                     uint64_t metrics_b,
                     struct td_l2 *out);

/**
 * Adds an execution to a sum, from a sample before it and one after it.
 *
 * For every execution that is added the division is known, and `error` of the result is a bound that always holds: at
 * most the sum of each execution's own, and far less where they follow each other closely, as in a loop. Any thread,
 * one at a time. Clear the sum (memset) before the first.
 *
 * Returns 0, or as td_decode_l1, and nothing is added; an execution in which no slot was counted is added and tells
 * nothing.
 */
int td_sum_add(struct td_sum *sum,
               const struct td_sample *from,
               const struct td_sample *to);

/**
 * An execution of the sum's region begins.
 *
 * For regions that are too short or too many to measure each: td_sum_begin opens a fresh window for as many of them,
 * chosen at random, as td_options.max_overhead_ppm allows; the others count their slots only. What is assumed: that what
 * an execution does has nothing to do with whether it was chosen. Clear the sum (memset) before the first; each
 * thread has sums of its own; different ones may nest, one may not (recursion): a begin after a begin starts the
 * execution anew. The budget is for the windows: an execution that is not measured costs some 210 instructions.
 *
 * Returns 0, or as td_read.
 */
int td_sum_begin(struct td *td,
                 struct td_sum *sum);

/**
 * The execution that began ends.
 *
 * Returns 0, or as td_read; -EINVAL none had begun (td_sum.unbalanced counts these); TD_ESTALE a td_reset came between.
 */
int td_sum_end(struct td *td,
               struct td_sum *sum);

/**
 * Level 1 shares of all executions in a sum.
 *
 * `slots` are those of all executions. If each was measured, `error` bounds the shares' error. If not, flags has
 * TD_SAMPLE_SPARSE, and to the bound of the measured ones come four standard errors of the mean over a random
 * sample; with fewer than eight measured, the most that the others can have been.
 *
 * Returns 0, or: -EINVAL NULL; TD_ENOTCOUNTING no execution was measured yet.
 */
int td_sum_l1(const struct td_sum *sum,
              struct td_l1 *out);

/**
 * Level 2 shares of all executions in a sum, as td_sum_l1.
 *
 * Returns as td_sum_l1, and -ENOTSUP if the samples have no level 2.
 */
int td_sum_l2(const struct td_sum *sum, struct td_l2 *out);

/**
 * Nodes of the CPU's tree of metrics, of all executions in a sum.
 *
 * `nodes` and `count` as in td_decode_tree. For each node the truth lies between `low` and `high`; if not every execution was
 * measured, as in td_sum_l1, with the same four standard errors. `value` is what td_sum_l1 and td_sum_l2 say. A sum is of
 * one CPU: td_sum_add refuses samples of another tree.
 *
 * Returns as td_sum_l1.
 */
int td_sum_decode_tree(const struct td_sum *sum,
                       struct td_node *nodes,
                       uint32_t capacity,
                       uint32_t *count);

/**
 * Tells what a handle measures, and how: CPU, PMU, level, path, and why the path is not RDPMC.
 *
 * Returns 0, or as td_read.
 */
int td_get_info(const struct td *td, struct td_info *out);

/**
 * Lists the nodes of the tree of metrics of the handle's CPU, and which of them the handle measures.
 *
 * `nodes` and `count` as in td_decode_tree. The nodes' figures are NaN: td_decode_tree has them. The list is the same for
 * the life of the handle.
 *
 * Returns 0, or as td_read.
 */
int td_list_nodes(const struct td *td,
                  struct td_node *nodes,
                  uint32_t capacity,
                  uint32_t *count);

/**
 * perf's name of a node (td_node.id), "tma_retiring" for TD_NODE_RETIRING; "" if no tree of this version has it. Any
 * thread; never NULL, never freed.
 */
const char *td_node_name(uint32_t id);

/**
 * Sets how the slots of the simulated PMU divide from now on.
 *
 * For programs that are developed and tested where there is no PMU. The simulated clock runs on the
 * time-stamp counter, also while the thread sleeps; the registers round and reset as real ones do. A handle starts
 * with retiring 0.4, bad speculation 0.1, frontend bound 0.2, backend bound 0.3.
 *
 * Returns 0, or: -EINVAL NULL, wrong size (it must be set), or not a mix; -ENOTSUP the handle was not opened with
 * TD_FLAG_SIMULATE; else as td_read.
 */
int td_simulate_mix(struct td *td,
                    const struct td_mix *mix);

/**
 * Short static text of a code that this library returned. Any thread; never NULL, never freed.
 */
const char *td_strerror(int code);

/**
 * Copies this thread's last failure in full: what, why, what to do about it.
 *
 * `buffer`: gets the text, cut to `length` - 1 bytes, with its final NUL; NULL with length 0 to ask for the
 * length. A success does not change the text.
 *
 * Returns the length of the whole text without the NUL, 0 if nothing has failed yet; or -EINVAL: buffer
 * is NULL and length is not 0.
 */
int td_last_error(char *buffer, size_t length);

/**
 * The library's version, "MAJOR.MINOR.PATCH". Static text; any thread.
 */
const char *td_version(void);

#ifdef __cplusplus
}  /* extern "C" */
#endif  /* __cplusplus */

#endif  /* TOPDOWN_H */

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
