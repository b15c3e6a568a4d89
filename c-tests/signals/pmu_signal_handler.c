/* td_read of real counters in a signal handler, whatever call on the same handle it interrupts. */
#include "pmu.h"
#define OPEN() measured(NULL)
#include "signal_handler.c"
