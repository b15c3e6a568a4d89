/* measure.h: groups of four raw counters around parts of a program. The interface is libjevents'; docs/jevents.md says
 * what each function does. */
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

void measure_group_init(struct measure *g, char *name);
void measure_group_start(void);
void measure_group_stop(void);
void measure_group_finish(void);
void measure_print_all(FILE *fh);
void measure_free_all(void);

#ifdef __cplusplus
}
#endif

#endif
