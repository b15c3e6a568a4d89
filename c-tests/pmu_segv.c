/* segv.c on real counters: there the handler is installed. */
#include "pmu.h"
#define OPEN() measured(NULL)
#include "segv.c"
