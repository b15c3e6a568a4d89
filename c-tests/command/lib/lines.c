/* lines TIMES: one function spends known parts of the time in lines of its own, and in one that was inlined. Each says which part in its
 * comment. */
#include <stdint.h>
#include <stdlib.h>

/* so many instructions */
#if defined(__aarch64__)
#define SPEND(n) __asm__ volatile("1: subs %0, %0, #1\n b.ne 1b" : "+r"((uint64_t){(n) / 2}) : : "cc")
#else
#define SPEND(n) __asm__ volatile("1: dec %0\n jnz 1b" : "+r"((uint64_t){(n) / 2}) : : "cc")
#endif

__attribute__((always_inline)) static inline void inlined(uint64_t part)
{
    SPEND(10 * part); /* 10 % of the time */
}

__attribute__((noinline, noclone)) static void spends(uint64_t part)
{
    SPEND(30 * part); /* 30 % of the time */
    inlined(part);
    SPEND(60 * part); /* 60 % of the time */
}

int main(int argc, char **argv)
{
    const uint64_t times = argc == 2 ? strtoull(argv[1], NULL, 0) : 0;
    for (uint64_t k = 0; k < times; k++)
        spends(200);
    return 0;
}
