/* A daemon measures itself with real counters, and its grandparent's know nothing of it. */
#include "pmu.h"
#define OPEN() measured(NULL)
#include "daemon.c"
