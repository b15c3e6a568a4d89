/* functions.h: functions with known mixes, for `topdown record`. */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H
#include "vm/mix.h"

#if defined(__x86_64__)
/* A function of two instructions a turn. */
#define FUNCTION(name)                                                                     \
    static __attribute__((noinline, noclone)) void name(uint64_t turns)                    \
    {                                                                                      \
        __asm__ volatile("1: dec %0\n jnz 1b # " #name : "+r"(turns) : : "cc");            \
    }
#endif

enum { MOST_FUNCTIONS = 400, OTHER_MIXES = 4 };

/* The true mix of function `k`, and with other mixes of function `k - OTHER_MIXES`. No two are alike. */
static inline struct vm_mix mix_of_function(unsigned k)
{
    const unsigned a = 8 + 11 * k % 29, b = 2 + 7 * k % 13, c = 1 + 5 * k % 13;
    struct vm_mix mix = {a, b, c, 1 + k % 9, 2 + 3 * k % 11, 1 + 5 * k % 12, 2 + 7 * k % 13};
#if defined(__aarch64__)
    /* (Neoverse's formulas take the cycles of mispredicts, four slots of each of 8, from the frontend's and the backend's) */
    while (8 * 4 * b * mix.mispredicts >= 16 * 20 * (c < 64 - a - b - c ? c : 64 - a - b - c))
        mix.mispredicts--;
#else
    if (__builtin_cpu_is("skylake-avx512")) /* (the emulated one can be set to no more: truth.h) */
        mix.retiring %= 27;
#endif
    return mix;
}
#endif
