/* Two threads close one handle with real counters at the same moment. */
#include "pmu.h"
#define OPEN() measured(NULL)
#define ROUNDS repeats(300)
#include "close_twice.c"
