/* Whatever way a process starts another: real counters stay behind. */
#include "pmu.h"
#define OPEN() measured(NULL)
#include "vfork_clone.c"
