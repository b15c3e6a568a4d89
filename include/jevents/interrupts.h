/* interrupts.h: how many hardware interrupts this thread received. The interface is libjevents'. */
#ifndef INTERRUPTS_H
#define INTERRUPTS_H 1

#ifdef __cplusplus
extern "C" {
#endif

/* Begins to count this thread's interrupts. */
void interrupts_init(void);
/* Counts them no longer. */
void interrupts_exit(void);
/* How many there were since interrupts_init. */
unsigned long long get_interrupts(void);

#ifdef __cplusplus
}
#endif

#endif
