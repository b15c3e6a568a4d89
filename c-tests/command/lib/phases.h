/* phases.h: programs of phases that sleep differently, and whose functions have other mixes in each (phases.c). */
#ifndef PHASES_H
#define PHASES_H
#include "functions.h"

enum { OF_PHASE = 4, MOST_PHASES = 5 };

/* Millions of instructions, and a sleep after so many calls. */
struct phase {
    unsigned millions, calls, sleep_us;
};
static const struct phased_program {
    const char *name;
    struct phase phase[MOST_PHASES];
    unsigned phases, threads, repeated;
} PHASED[] = {
    {"five", {{20, 0, 0}, {20, 1, 200}, {30, 0, 0}, {10, 3, 1000}, {20, 1, 50}}, 5, 1, 1},
    {"input", {{25, 1, 150}, {75, 0, 0}}, 2, 1, 1},
    {"threads", {{20, 0, 0}, {20, 1, 200}, {30, 0, 0}, {10, 3, 1000}, {20, 1, 50}}, 5, 3, 1},
    {"again", {{4, 1, 200}, {16, 0, 0}, {5, 1, 700}}, 3, 1, 6},
};

/* What function `k` of OF_PHASE is in a phase. */
static inline unsigned in_phase(unsigned k, unsigned phase) { return k + OF_PHASE * phase; }
#endif
