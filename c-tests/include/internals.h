/* internals.h: what the opaque fields of topdown.h are, for tests that look into them.
 *
 * Made by `make header` from src/: do not edit. */
#ifndef INTERNALS_H
#define INTERNALS_H
#include <stddef.h>
#include <stdint.h>

/** Where the totals stood when the present window of the hardware registers began. The library's own:
 * callers need not look at it. */
struct td_own_base {
    uint32_t sequence;    /**< Sequence number of the control page under which the registers are read. */
    uint32_t window;      /**< Number of the window: `first_window` of the period, and on from there. */
    /** Lower 20 bits: `model::mark` of the row that `model` stands for, not 0. Upper 12: a random number of the handle. They and
     * `period` together are those of no other handle, in whatever process. */
    uint32_t handle;
    uint32_t period;      /**< Number of the period: random when the handle is opened, and counted on by `td_reset`. */
    /** How often the registers were saved and restored since the window began; 65535 for that often or more. Of general-purpose counters: how many
     * stretches there were in the period in which level 1 alone was counted. */
    uint16_t switches;
    uint8_t model;        /**< Row of this version's table of CPU models; another version's is told by `handle`. */
    uint8_t level;        /**< Deepest level that was counted. */
    /** When the registers were last known not to have been reset by somebody else: milliseconds of
     * `time_enabled_ns`, modulo 2^32. */
    uint32_t checked_ms;
    uint64_t error;       /**< Bound on the rounding error of each of `category`, in slots; it only grows. */
    /** Slots before the window of retiring, bad speculation, frontend bound, heavy operations, branch
     * mispredicts, fetch latency, memory bound; backend bound has the rest. Of general-purpose counters with TD_SAMPLE_WORK_COUNTED: what was
     * counted, at the first place. */
    int64_t category[7];
};

/** Totals since td_open or the last td_reset. Two of one handle and period decode to the shares of what ran between
 * them. Plain data: copy, send or write it. Another version of the library decodes it as this one, or refuses it. */
struct td_own_sample {
    uint32_t size;             /**< sizeof(struct td_own_sample), set by the library. */
    uint32_t flags;            /**< TD_SAMPLE_* bits. */
    uint64_t slots;            /**< Pipeline slots counted in this period. */
    uint64_t time_enabled_ns;  /**< Nanoseconds of this period in which the thread (or CPU) ran. */
    /** Nanoseconds of those in which the counters counted: not while others had them, or on cores of another kind. */
    uint64_t time_running_ns;
    /** Slots of this period before the present window of the registers: `slots` less this is what the SLOTS
     * register said. */
    uint64_t slots_before;
    struct td_own_base base;       /**< The totals at the start of the window. */
    /** The PERF_METRICS register: eight 8-bit shares of the slots since the window began. */
    uint64_t raw_metrics;
    /** Totals of general-purpose counters. Where PERF_METRICS gives the shares td_read writes those alone that correct it. */
    uint64_t counter[15];
};

/** Slots of each category, and bounds on their errors. */
struct td_own_part {
    double category[8];  /**< Slots of each category. */
    double rounding;     /**< By rounding. */
    double edges;        /**< At the edges. */
};

/** Sum over executions of one region. Clear it (memset) before the first; then call td_sum_begin and td_sum_end around
 * each, or td_sum_add after it. Plain data, for one thread at a time. */
struct td_own_sum {
    uint32_t size;             /**< sizeof(struct td_own_sum), set by the library. */
    uint32_t flags;            /**< TD_SAMPLE_* bits of all samples. */
    uint64_t executions;       /**< Executions that have ended. */
    uint64_t slots;            /**< Slots in all of them, as they were counted. */
    uint64_t time_enabled_ns;  /**< Nanoseconds of all of them, as td_sample.time_enabled_ns. */
    uint64_t time_running_ns;  /**< Nanoseconds of those in which the counters counted. */
    uint64_t measured;         /**< Executions that were measured: it is known how their slots divide. */
    uint64_t measured_slots;   /**< Slots in those. */
    uint64_t unbalanced;       /**< Calls of td_sum_end without a td_sum_begin. */
    uint64_t reserved;         /**< Zero. */
    uint32_t level;            /**< The rest is the library's own. */
    uint32_t state;            /**< Between two executions, or in one, and how it is counted. */
    /** Executions to come before the next that is measured; less than none, as a signed number, where each is. */
    uint64_t wait;
    uint64_t random;           /**< State of the random numbers. */
    uint64_t begun_ns;         /**< time_enabled_ns when the first execution began. */
    struct td_own_part closed;     /**< Measured executions that have been added up for good. */
    /** The last ones, which follow each other closely: taken together, and each by itself. On CPUs with general-purpose counters: sums over
     * executions of nothing of what was counted, and of its squares. */
    struct td_own_part together;
    struct td_own_part apart;      /**< See `together`. */
    double xx;                 /**< Sum of the squares of the slots of measured executions. */
    /** Of measured executions: sums of the products of their slots and those of each category, then of the squares of the
     * latter. */
    double moments[16];
    /** On CPUs with general-purpose counters: how much each counted in measured executions. */
    uint64_t counted[16];
    struct td_own_sample last;     /**< The last sample added. */
    struct td_own_sample from;     /**< Where the present execution began. */
};

/* as topdown.h has them (it asserts the same numbers) */
_Static_assert(sizeof(struct td_own_sample) == 256 && offsetof(struct td_own_sample, slots_before) == 32, "td_sample");
_Static_assert(sizeof(struct td_own_sum) == 1120 && offsetof(struct td_own_sum, level) == 72, "td_sum");

/* the opaque fields of a sample */
static inline const struct td_own_sample *own(const void *sample)
{
    return (const struct td_own_sample *)sample;
}
#endif
