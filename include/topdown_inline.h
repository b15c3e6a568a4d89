/* topdown_inline.h: readings that the compiler puts in place, for regions that are too short for a call. Such a reading costs
 * little more than bare RDPMC of the same counters.
 *
 *     struct td_mark a, b;
 *     struct td_sample before, after;
 *
 *     td_read_mark(td, &a);
 *     ... the region ...
 *     td_read_mark(td, &b);
 *     td_mark_sample(td, &a, &before);        soon after the region
 *     td_mark_sample(td, &b, &after);
 *     td_decode_l1(&before, &after, &shares);
 *
 * C99 or later and C++, with GCC or Clang for x86-64 (not with -masm=intel); elsewhere td_read_mark calls the library.
 *
 * After a mark, the kernel may still look at data of the object (program or shared library) that took it. Before an object that
 * took marks is unloaded by dlclose, the same thread calls td_read or td_close; or link it with -z nodelete.
 *
 * Made by `make header` from src/: do not edit. */
#ifndef TOPDOWN_INLINE_H
#define TOPDOWN_INLINE_H
#include "topdown.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An inline reading: registers, or general-purpose counters, as they are. td_mark_sample makes a sample of it. */
struct td_mark {
    /** The SLOTS register; of a handle that counts general-purpose counters, the one that counts slots or cycles. */
    uint64_t slots;
    uint64_t metrics;     /**< The PERF_METRICS register. */
    uint32_t sequence;    /**< The library's own. */
    uint32_t window;      /**< The library's own. */
    uint64_t counter[7];  /**< The other general-purpose counters. */
};

/* Reads the registers or general counters into `mark` without a system call (docs/cost.md), or else by a call of the library.
 * Threads and returns as td_read; but td and mark must not be NULL. */
static inline int td_read_mark(td_t *td, struct td_mark *mark);

/** Makes a sample of a mark that td_read_mark took of the same handle.
 *
 * The sample decodes with all others of its period. Its times are those at which the library last read the clock
 * (TD_SAMPLE_COARSE_TIME).
 *
 * Call it soon after the region: the handle remembers the state of the counters at its last 64 looks at it (one for
 * each context switch, reset of the registers, and reading that does not take the fast path), and marks from before
 * are stale. Threads as in td_read.
 *
 * Returns 0, or:
 *  -EINVAL         an argument is NULL, or not a mark
 *  TD_ESTALE       the mark is too old, or of another handle
 * or as td_read. */
int td_mark_sample(td_t *td, const struct td_mark *mark, struct td_sample *out);

/* ---- What follows is the library's own ---- */

/** What td_read_mark calls where it may not read registers or counters itself. It works with any handle.
 *
 * Threads and returns as td_read. */
int td_mark_read_slowly(td_t *td, struct td_mark *out);

/* Where an inline reading finds what it needs, in bytes from the handle. */
/** The thread pointer of the thread whose inline readings may read the registers; 2 less if they may read general counters; 0
 * if none may. */
#define TD_INLINE_READER 8
/** The address of that thread's `rseq_cs` field, by which it tells the kernel of a restartable sequence. */
#define TD_INLINE_RSEQ 16
#define TD_INLINE_LIMIT 24          /**< SLOTS above which a reading calls the library. */
/** How many general counters, besides the one of slots or cycles: 3 to 8; or beside the registers: none, 1 or 2. */
#define TD_INLINE_COUNTERS 48
/** Sequence number and number of the window, in this order: what td_mark takes over. */
#define TD_INLINE_STAMP 104
#define TD_INLINE_NUMBERS 320       /**< The counters' RDPMC numbers, that of slots or cycles first. */
#define TD_INLINE_LEADER_LIMIT 472  /**< Likewise the general counter of slots or cycles. */
#define TD_CONTROL_PAGE 4096  /**< Where the control page of SLOTS is, in bytes from the handle. The library's own. */

#define TD_INLINE_COUNTER(K) \
    "mov %c[numbers]+4+4*" K "(%[td]), %%ecx\n\t" \
    "rdpmc\n\t" \
    "mov %%eax, %c[counter]+8*" K "(%[mark])\n\t" \
    "mov %%edx, %c[counter]+4+8*" K "(%[mark])\n\t"

static inline int td_read_mark(td_t *td, struct td_mark *mark)
{
#if defined(__x86_64__) && defined(__LP64__) && defined(__GNUC__)
    /* A restartable sequence (rseq(2)) from label 20 to 21: a thread that is preempted, migrated or interrupted by a signal
     * within it goes on at label 23, and so to `slowly`. It reads both registers and compares the control page's sequence
     * number. The instruction at 23 does nothing: it marks the sequence for the library's handler of SIGSEGV. On hybrid CPUs,
     * where RDPMC can fault for want of the counter, the library lets no inline reading read the registers. The sequence from
     * 30 to 31 reads general counters, which are this CPU's as long as the page's number is the handle's; it goes on behind
     * 29. "?": the sections belong to the function's group, if it has one (C++ templates). */
    __asm__ goto("mov %%fs:0, %%rax\n\t"
                 "sub %c[reader](%[td]), %%rax\n\t"
                 "jne 28f\n\t"
                 "mov %c[rseq](%[td]), %%rcx\n\t"
                 "lea 22f(%%rip), %%rax\n\t"
                 "mov %%rax, (%%rcx)\n"
                 "20:\n\t"
                 "mov %c[stamp](%[td]), %%r8\n\t"
                 "mov $0x40000003, %%ecx\n\t"
                 "rdpmc\n\t"
                 "shl $32, %%rdx\n\t"
                 "or %%rdx, %%rax\n\t"
                 "cmp %c[limit](%[td]), %%rax\n\t"
                 "ja %l[slowly]\n\t"
                 "mov %%rax, %%r9\n\t"
                 "mov $0x20000000, %%ecx\n\t"
                 "rdpmc\n\t"
                 "mov %%eax, %c[metrics](%[mark])\n\t"
                 "mov %%edx, %c[metrics]+4(%[mark])\n\t"
                 "cmpl $0, %c[counters](%[td])\n\t" /* beside the registers: none, or one or two */
                 "je 26f\n\t"
                 TD_INLINE_COUNTER("0") TD_INLINE_COUNTER("1")
                 "26: cmp %%r8d, %c[lock](%[td])\n\t"
                 "jne %l[slowly]\n"
                 "21:\n\t"
                 "mov %%r9, %c[slots](%[mark])\n\t"
                 "29: mov %%r8, %c[sequence](%[mark])\n\t"
                 ".pushsection .data.rel.ro.topdown_rseq, \"aw?\", @progbits\n\t"
                 ".balign 32\n"
                 "22: .long 0, 0\n\t"
                 ".quad 20b, 21b - 20b, 23f\n"
                 "32: .long 0, 0\n\t"
                 ".quad 30f, 31f - 30f, 23f\n\t"
                 ".popsection\n\t"
                 ".pushsection .text.topdown_rseq, \"ax?\", @progbits\n\t"
                 ".byte 0x0f, 0xb9, 0x3d\n\t"
                 ".long 0x53053053\n"
                 "23: .byte 0x0f, 0x1f, 0x80\n\t"
                 ".long 0x4e574454\n\t"
                 "jmp %l[slowly]\n"
                 "28: cmp $2, %%rax\n\t"
                 "jne %l[slowly]\n\t"
                 "mov %c[rseq](%[td]), %%rcx\n\t"
                 "lea 32b(%%rip), %%rax\n\t"
                 "mov %%rax, (%%rcx)\n"
                 "30: movq $0, %c[metrics](%[mark])\n\t"
                 "mov %c[stamp](%[td]), %%r8\n\t"
                 "cmp %%r8d, %c[lock](%[td])\n\t"
                 "jne %l[slowly]\n\t"
                 "mov %c[numbers](%[td]), %%ecx\n\t"
                 "rdpmc\n\t"
                 "mov %%eax, %c[slots](%[mark])\n\t"
                 "mov %%edx, %c[slots]+4(%[mark])\n\t"
                 "test $0x8000, %%edx\n\t" /* the kernel has zeroed it */
                 "je %l[slowly]\n\t"
                 "shl $32, %%rdx\n\t"
                 "or %%rdx, %%rax\n\t"
                 "cmp %c[leader](%[td]), %%rax\n\t"
                 "ja %l[slowly]\n\t"
                 TD_INLINE_COUNTER("0") TD_INLINE_COUNTER("1") TD_INLINE_COUNTER("2")
                 "cmpl $3, %c[counters](%[td])\n\t"
                 "je 27f\n\t"
                 TD_INLINE_COUNTER("3")
                 "cmpl $4, %c[counters](%[td])\n\t"
                 "je 27f\n\t"
                 TD_INLINE_COUNTER("4")
                 "cmpl $5, %c[counters](%[td])\n\t"
                 "je 27f\n\t"
                 TD_INLINE_COUNTER("5") TD_INLINE_COUNTER("6")
                 "cmpl $7, %c[counters](%[td])\n\t" /* (of six, the last means nothing) */
                 "jbe 27f\n\t"
                 "mov %c[numbers]+4+4*7(%[td]), %%ecx\n\t" /* the eighth: there are no metrics */
                 "rdpmc\n\t"
                 "mov %%eax, %c[metrics](%[mark])\n\t"
                 "mov %%edx, %c[metrics]+4(%[mark])\n\t"
                 "27: cmp %%r8d, %c[lock](%[td])\n\t"
                 "jne %l[slowly]\n"
                 "31: jmp 29b\n\t"
                 ".popsection"
                 :
                 : [td] "r"(td), [mark] "r"(mark), [reader] "i"(TD_INLINE_READER),
                   [rseq] "i"(TD_INLINE_RSEQ), [limit] "i"(TD_INLINE_LIMIT), [leader] "i"(TD_INLINE_LEADER_LIMIT),
                   [stamp] "i"(TD_INLINE_STAMP), [lock] "i"(TD_CONTROL_PAGE + 8),
                   [slots] "i"(offsetof(struct td_mark, slots)), [metrics] "i"(offsetof(struct td_mark, metrics)),
                   [sequence] "i"(offsetof(struct td_mark, sequence)), [counter] "i"(offsetof(struct td_mark, counter)),
                   [counters] "i"(TD_INLINE_COUNTERS), [numbers] "i"(TD_INLINE_NUMBERS)
                 : "rax", "rcx", "rdx", "r8", "r9", "memory", "cc"
                 : slowly);
    return 0;
slowly: {
    /* Its address is in the global offset table, as for TD_NO_PLT, which Clang does not have. */
    int (*read)(td_t *, struct td_mark *);
    __asm__("movq td_mark_read_slowly@GOTPCREL(%%rip), %0" : "=r"(read));
    return read(td, mark);
}
#else
    return td_mark_read_slowly(td, mark);
#endif
}
#undef TD_INLINE_COUNTER

#ifdef __cplusplus
}
#endif
#endif
