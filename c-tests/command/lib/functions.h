/* functions.h: functions with known mixes, for `topdown record`. */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H
#include "vm/mix.h"

enum { MOST_FUNCTIONS = 40, OTHER_MIXES = 4 };

/* The true mix of function `k`, and with other mixes of function `k - OTHER_MIXES`. No two are alike. */
static inline struct vm_mix mix_of_function(unsigned k)
{
    const unsigned a = 8 + 11 * k % 29, b = 2 + 7 * k % 13, c = 1 + 5 * k % 13;
    return (struct vm_mix){a, b, c, 1 + k % 9, 2 + 3 * k % 11, 1 + 5 * k % 12, 2 + 7 * k % 13};
}
#endif
