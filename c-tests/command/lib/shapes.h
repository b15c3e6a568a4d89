/* shapes.h: what is known of the programs of shapes.c. */
#ifndef SHAPES_H
#define SHAPES_H
#include "vm/mix.h"

static const struct vm_mix MIX = {8, 2, 6, 2, 8, 8, 14};

/* Units of work that each executes, and instructions of each. */
enum { UNITS = 160, UNIT = 500000 };
/* Threads or processes of a storm, and programs of a chain of exec. */
enum { STORM = 200, LINKS = 4 };
/* Programs that `shapes "calls often"` executes, of a unit each, beside as many units of its own. */
enum { CALLS = 40 };
/* What `shapes tallies` counts in a file: turns of TURN instructions, of each of its threads. */
enum { TURN = 2004, TALLIES = 4 };
struct tally {
    volatile int32_t group; /* of its processes, once it has begun */
    volatile uint64_t turns[TALLIES];
};
#endif
