/* The same of real counters. */
#include "pmu.h"
#define OPEN() measured(NULL)
#define MOST 250
#include "closed_by_handler.c"
