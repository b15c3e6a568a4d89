/* Another thread closes a handle with real counters that its owner still reads. */
#include "pmu.h"
#define OPEN() measured(NULL)
#define ROUNDS repeats(100)
#include "close_in_use.c"
