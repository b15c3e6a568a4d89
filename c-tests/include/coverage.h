/* coverage.h: whether intervals of 95 % have the truth in them as often as they say. One in twenty does not, so what is asserted is how far
 * the truth is from what is told, in standard deviations that the interval tells: of each, and of all that a program looks at, no
 * further than one in a million would be by chance (one in ten thousand, if they are parts of one total). */
#ifndef COVERAGE_H
#define COVERAGE_H
#include "expect.h"
#include <math.h>

/* What the sum of the squares of so many independent normal deviates does not exceed but once in a million (Wilson and Hilferty). */
static inline double squares_at_most(int deviates)
{
    const double variance = 2.0 / 9 / deviates;
    return deviates * pow(1 - variance + 4.7534 * sqrt(variance), 3);
}

/* Told is a value with an interval. */
static inline void lies_within(const char *name, double told, double low, double high, double truth)
{
    static double squares;
    static int deviates;
    const double half = truth < told ? told - low : high - told;
    const double deviate = truth == told ? 0 : 1.96 * (truth - told) / half;
    squares += deviate * deviate;
    deviates++;
    if (!(deviate * deviate <= squares_at_most(1)))
        FAIL("%s: told is %g, %g to %g, in truth it is %g", name, told, low, high, truth);
    if (!(squares <= squares_at_most(deviates)))
        FAIL("intervals are too narrow: at %s (told is %g, %g to %g, in truth it is %g) the squares of %d deviates add up to %g", name, told, low,
             high, truth, deviates, squares);
}
#endif
