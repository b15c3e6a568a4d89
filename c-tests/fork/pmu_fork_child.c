/* A forked child does not own its parent's real counters, whose control page it does not even have: it can but close
 * the handle, opens its own, and the parent goes on. */
#include "pmu.h"
#define OPEN() measured(NULL)
#include "fork_child.c"
