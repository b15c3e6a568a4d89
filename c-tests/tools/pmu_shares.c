/* pmu_shares RETIRING BAD FRONTEND: runs with this mix (in 1/64 of slots) and prints the level 1 shares that the library
 * measures, for comparison with what another tool says of the same run (perf-agrees).
 * needs: arguments */
#include "pmu.h"

int main(int argc, char **argv)
{
    struct td_sample before, after;
    struct td_l1 l1;
    if (argc != 4)
        SKIP("needs arguments: pmu_shares RETIRING BAD FRONTEND");
    struct vm_mix mix = {0, 0, 0, 8, 8, 8, 8};
    mix.retiring = (unsigned)atoi(argv[1]), mix.bad = (unsigned)atoi(argv[2]), mix.frontend = (unsigned)atoi(argv[3]);
    td_t *td = measured(NULL);
    /* 16 are counted for each instruction. The program starts at another mix, and that must not show: the registers are
     * rounded each time that they are saved and restored, so what they begin with can stick. */
    vm_mix_set(mix, 1, 0, 0);
    td_must(td_read(td, &before));
    work(60000000);
    td_must(td_read(td, &after));
    td_must(td_decode_l1(&before, &after, &l1));
    printf("%.6f %.6f %.6f %.6f\n", l1.retiring, l1.bad_speculation, l1.frontend_bound, l1.backend_bound);
    td_close(td);
    return 0;
}
