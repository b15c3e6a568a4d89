/* callers TIMES: leaf is called by middle, that by outer, and that by main, none of which has a frame pointer. */
#include <stdint.h>
#include <stdlib.h>

#define NOT_INLINED __attribute__((noinline, noclone))
static uint64_t sink;

NOT_INLINED static void leaf(uint64_t turns, uint64_t *sum)
{
    volatile uint64_t kept[4] = {turns};
#if defined(__aarch64__)
    __asm__ volatile("1: subs %0, %0, #1\n b.ne 1b" : "+r"(turns) : : "cc");
#else
    __asm__ volatile("1: dec %0\n jnz 1b" : "+r"(turns) : : "cc");
#endif
    *sum += kept[0];
}

NOT_INLINED static void middle(uint64_t turns)
{
    uint64_t sums[16] = {turns};
    leaf(turns, &sums[0]);
    leaf(turns, &sums[1]);
    sink += sums[0] + sums[1];
}

NOT_INLINED static void outer(uint64_t turns)
{
    for (int k = 0; k < 10; k++)
        middle(turns);
    sink++;
}

int main(int argc, char **argv)
{
    const uint64_t times = argc == 2 ? strtoull(argv[1], NULL, 0) : 0;
    for (uint64_t k = 0; k < times; k++)
        outer(5000);
    return sink == 1;
}
