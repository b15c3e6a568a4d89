/* A program that was compiled with the headers beside this file keeps working on real counters, its inlined readings, too. */
#define REAL 1
#include "old_calls.c"
