/* A program loads the library, counts, and unloads it with real counters open. */
#include "pmu.h"
#define OPTIONS options_of(0, 0)
#include "unload.c"
