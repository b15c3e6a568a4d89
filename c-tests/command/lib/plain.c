/* plain MILLIONS RETIRING BRANCH_MISPREDICTS MACHINE_CLEARS ...: a program without regions, which executes so many million instructions with
 * the mix of the seven numbers that follow (struct vm_mix). */
#include "../../vm/mix.h"
#include <stdlib.h>

int main(int argc, char **argv)
{
    int part[7];
    if (argc != 9)
        return 1;
    for (int k = 0; k < 7; k++)
        part[k] = atoi(argv[2 + k]);
    vm_mix_set((struct vm_mix){part[0], part[1], part[2], part[3], part[4], part[5], part[6]}, 0, 0, 0);
    uint64_t turns = strtoull(argv[1], NULL, 10) * 500000;
    __asm__ volatile("1: dec %0\n jnz 1b" : "+r"(turns) : : "cc");
    return 7;
}
