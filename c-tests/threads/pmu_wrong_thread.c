/* Only the thread that opened real counters may read them: RDPMC in another would give that thread's numbers. */
#include "pmu.h"
#define OPEN() measured(NULL)
#include "wrong_thread.c"
