/* storms.h: what is known of the programs of storms.c. */
#ifndef STORMS_H
#define STORMS_H
#include <stdint.h>

/* Threads or processes of a storm, and how many instructions each executes in functions, which have so many on average. */
enum { STORM_THREADS = 300, STORM_OF_THREAD = 2000000, STORM_FORKS = 60, STORM_OF_PROCESS = 4000000, STORM_LENGTH = 4000 };
/* Functions, and instructions of those programs that have one thread, or in each of two libraries. */
enum { STORM_FUNCTIONS = 4, STORM_WHOLE = 200000000 };

/* A relay: how often one of the threads runs, two at a time; and for how many instructions those do that run in each function. */
enum { RELAY_LEGS = 300 };
static const uint32_t RELAY_OF[STORM_FUNCTIONS] = {400000, 800000, 3200000, 6400000};

/* What a program keeps in a file: nanoseconds of each function, by a clock of cycles (work.h), and CPU time as the kernel knows it, in user and kernel mode. */
struct storm {
    volatile uint64_t spent[STORM_FUNCTIONS];
    volatile uint64_t cpu_ns;
};
#endif
