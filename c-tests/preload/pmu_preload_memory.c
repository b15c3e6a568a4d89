/* preload_memory, with counters: from each call of mmap(2) and mremap(2) on the library gets no memory. */
#define REAL 1
#include "preload_memory.c"
