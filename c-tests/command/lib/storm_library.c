/* A library that lib/storms loads: four functions, whose names begin with LETTER. */
#include <stdint.h>

#define JOINED(letter, n) letter##n
#define NAMED(letter, n) JOINED(letter, n)
#if defined(__aarch64__)
#define TURN "1: subs %0, %0, #1\n b.ne 1b //"
#else
#define TURN "1: dec %0\n jnz 1b #"
#endif
#define F(n)                                                                                                                   \
    __attribute__((noinline, noclone)) void NAMED(LETTER, n)(uint64_t turns);                                                  \
    __attribute__((noinline, noclone)) void NAMED(LETTER, n)(uint64_t turns) { __asm__ volatile(TURN " " #n : "+r"(turns) : : "cc"); }
F(0) F(1) F(2) F(3)
