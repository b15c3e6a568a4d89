/* interrupts.h: how many hardware interrupts this thread received. The interface is libjevents'; docs/jevents.md says what
 * each function does. */
#ifndef INTERRUPTS_H
#define INTERRUPTS_H 1

#ifdef __cplusplus
extern "C" {
#endif

void interrupts_init(void);
void interrupts_exit(void);
unsigned long long get_interrupts(void);

#ifdef __cplusplus
}
#endif

#endif
