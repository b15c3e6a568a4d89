/* Opening and closing real counters many times leaves no descriptor, no mapping and no memory behind. */
#include "pmu.h"
#define TURNS repeats(10000)
#define FLAGS 0
#define OPEN(options) measured(options)
#include "no_leak.c"
