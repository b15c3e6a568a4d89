/* phases.h: mixes at which a thread runs on the emulated arm64 machine. */
#ifndef PHASES_H
#define PHASES_H
#include "truth.h"

static struct td_info info;

static inline int core_is(const char *name) { return strncmp(info.core, name, strlen(name)) == 0; }

/* A phase of this mix, with what its nodes are to be. */
static inline uint64_t phase_of(struct vm_mix mix, double *share)
{
    const struct known_mix known = known_mix(mix, &info, -1);
    shares_of_known(&known, &info, share);
    return known.phase;
}

/* Five mixes of which no formula leaves a share below zero, given so many mispredicts. */
static inline struct vm_mix one_of_five(int k)
{
    static const struct vm_mix five[5] = {
        {40, 8, 8, 4, 12, 8, 8}, {8, 32, 8, 8, 0, 12, 4}, {8, 4, 40, 2, 8, 6, 12}, {4, 4, 8, 15, 1, 3, 14}, {16, 8, 20, 8, 16, 16, 0},
    };
    struct vm_mix mix = five[k];
    mix.mispredicts /= core_is("hip08") ? 1 : 4;
    return mix;
}
#endif
