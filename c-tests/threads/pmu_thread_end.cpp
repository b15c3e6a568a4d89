// The destructors that run as a thread ends read real counters.
#include "pmu.h"
#define OPEN() measured(NULL)
#include "thread_end.cpp"
