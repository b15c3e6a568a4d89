/* shapes.h: what is known of the programs of shapes.c. */
#ifndef SHAPES_H
#define SHAPES_H
#include "vm/mix.h"

static const struct vm_mix MIX = {8, 2, 6, 2, 8, 8, 14};

/* Units of work that each executes, and instructions of each. */
enum { UNITS = 160, UNIT = 500000 };
#endif
