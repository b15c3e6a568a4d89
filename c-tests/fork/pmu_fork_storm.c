/* The program forks while threads reset, open and close real counters. */
#include "pmu.h"
#define OPEN() measured(NULL)
#define FORKS repeats(40)
#define OF_A_HANDLE 4
#include "fork_storm.c"
