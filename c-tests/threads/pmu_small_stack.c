/* small_stack with real counters. */
#include "pmu.h"
#define OPEN() measured(NULL)
#define CORES {NULL}
#include "small_stack.c"
