/* A signal handler that leaves a call on a handle with real counters. */
#include "pmu.h"
#define OPEN(td) td_open(td, NULL)
#define DESCRIPTORS 1
#include "left_by_longjmp.c"
