/* at_mix RETIRING BAD FRONTEND [HEAVY MISPREDICTS LATENCY MEMORY]: executes 30 million instructions in user mode at this mix (in
 * 1/64 of slots, and 1/16 of the parent), and little else: what is counted from outside is that. nodes-as-perf.
 * needs: arguments */
#include <stdio.h>
#include <stdlib.h>
#include "vm/mix.h"

int main(int argc, char **argv)
{
    unsigned part[7] = {0, 0, 0, 8, 8, 8, 8};
    uint64_t turns = 15000000;
    if (argc < 4 || argc > 8) {
        fprintf(stderr, "usage: at_mix RETIRING BAD FRONTEND [HEAVY MISPREDICTS LATENCY MEMORY]\n");
        return 77;
    }
    for (int k = 1; k < argc; k++)
        part[k - 1] = (unsigned)atoi(argv[k]);
    vm_mix_set((struct vm_mix){part[0], part[1], part[2], part[3], part[4], part[5], part[6]}, 0, 0, 0);
#if defined(__x86_64__)
    __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(turns) : : "cc");
#else
    __asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(turns) : : "cc");
#endif
    return 0;
}
