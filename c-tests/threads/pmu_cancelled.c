/* The same where there are counters: td_open reads files of /sys, and td_close closes descriptors. */
#include "pmu.h"
#include "cancelled.c"
