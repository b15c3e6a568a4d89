/* measure.h: groups of four raw counters around parts of a program. The interface is libjevents'. */
#ifndef MEASURE_H
#define MEASURE_H 1

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define N_COUNTER 4

/* A group is an array of N_COUNTER of these. */
struct measure {
    char *name;                 /* NULL: counted, not printed */
    unsigned long long counter; /* raw event: umask << 8, event number */
    int ratio_to;               /* print it as a percentage of this member, or -1 */
    /* what to print in place of the total, or NULL */
    unsigned long long (*func)(struct measure *m, unsigned long long total[N_COUNTER], int i);
};

#ifdef EVENT_MACROS
#define ETO(x, y) { #x, x, y, NULL }
#define ETO0(x) { #x, x, 0, NULL }
#define E(x) { #x, x, -1, NULL }
#define EFUNC(x, y, f) { #x, x, y, f }
#endif

/* The thread measures this group from now on; ends the program if it cannot. */
void measure_group_init(struct measure *g, char *name);
/* What follows is measured. */
void measure_group_start(void);
/* What follows is not. */
void measure_group_stop(void);
/* The thread measures no group any more. */
void measure_group_finish(void);
/* Prints all that was measured. */
void measure_print_all(FILE *fh);
/* Forgets all that was measured. */
void measure_free_all(void);

#ifdef __cplusplus
}
#endif

#endif
