/* activations MILLIONS: executes so many millions of instructions: in a function that calls none and runs long; in two that call each other, many
 * calls deep; in two that jump to each other; and in one and another that is inlined into it, in turn. A function of each pair is left and
 * come back to, again and again, and none returns. Of x86-64. */
#include "activations.h"
#include <stdlib.h>

#if defined(__x86_64__)
#define NOT_INLINED __attribute__((noinline, noclone))

/* Mixes, as the base of GS (vm/mix.h). */
uint64_t mixes[ACTIVE];

/* From a quarter to seven quarters of so many turns: no gap between samples keeps pace with that. */
static uint64_t seed = 88172645463325252u;
static inline __attribute__((always_inline)) uint64_t some(uint64_t turns)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return turns / 4 + (seed >> 33) % (turns * 3 / 2);
}

/* This code divides so from now on, for two instructions a turn; without a call. */
#define SPENDS(k, turns)                                                                                                       \
    do {                                                                                                                       \
        uint64_t left = (turns), number = SYS_arch_prctl;                                                                      \
        __asm__ volatile("syscall\n mov %1, %%rcx\n 1: dec %%rcx\n jnz 1b"                                                     \
                         : "+a"(number)                                                                                        \
                         : "r"(left), "D"(ARCH_SET_GS), "S"(mixes[k])                                                          \
                         : "rcx", "r11", "cc", "memory");                                                                      \
    } while (0)

NOT_INLINED static void leaf(void) { SPENDS(LEAF, 100000); }

NOT_INLINED static unsigned down_a(unsigned depth);
NOT_INLINED static unsigned down_b(unsigned depth)
{
    SPENDS(DOWN_B, some(450));
    return down_a(depth - 1) + 1;
}
static unsigned down_a(unsigned depth)
{
    SPENDS(DOWN_A, some(150));
    return depth ? down_b(depth) + 1 : 0;
}

/* (as compilers make them of calls at the end of a function; for turns from `least` on, a random part of `more` more) */
unsigned jump_a(uint64_t count);
#define JUMPS(name, other, place, least, more)                                                                                 \
    ".type " #name ", @function\n" #name ": mov %rdi, %r8\n mov $158, %eax\n mov $0x1001, %edi\n mov mixes+8*" place "(%rip), %rsi\n" \
    "syscall\n imul $1103515245, %r9, %r9\n add $12345, %r9\n mov %r9d, %ecx\n shr $16, %ecx\n and $" more ", %ecx\n add $" least ", %ecx\n" \
    "1: dec %ecx\n jnz 1b\n mov %r8, %rdi\n dec %rdi\n jnz " #other "\n ret\n .size " #name ", .-" #name "\n"
__asm__(".text\n" JUMPS(jump_a, jump_b, "3", "23", "255") JUMPS(jump_b, jump_a, "4", "195", "511"));
_Static_assert(JUMP_A == 3 && JUMP_B == 4, "places");

static inline __attribute__((always_inline)) void inner(void) { SPENDS(INNER, some(450)); }
NOT_INLINED static void host(void)
{
    for (int k = 0; k < 160; k++) {
        SPENDS(HOST, some(150));
        inner();
    }
}

int main(int argc, char **argv)
{
    for (unsigned k = 0; k < ACTIVE; k++) {
        const struct vm_mix m = mix_of_function(k);
        mixes[k] = (uint64_t)0x2a << 41 | (uint64_t)m.retiring << 34 | (uint64_t)m.bad << 28 | (uint64_t)m.frontend << 22 |
                   m.heavy << 18 | m.mispredicts << 14 | m.latency << 10 | m.memory << 6;
    }
    for (uint64_t done = 0; argc == 2 && done < strtoull(argv[1], NULL, 0) * 1000000; done += 776000) {
        leaf();
        if (down_a(160) != 320)
            return 1;
        jump_a(320);
        host();
    }
    return 0;
}
#else
int main(void) { return 2; }
#endif
