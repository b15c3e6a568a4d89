/* What decoding costs, in instructions: of samples around a region, in one window and over several, and with context switches
 * in between. */
#include "pmu.h"
#include "internals.h"

enum { MOST_1 = 550, MOST_2 = 750 }; /* with the call, and with what the published metrics correct their nodes by */

static inline uint64_t rdtsc(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return low | (uint64_t)high << 32;
}

static void costs(const char *what, const struct td_sample *from, const struct td_sample *to)
{
    uint64_t least[2] = {UINT64_MAX, UINT64_MAX}, nothing = UINT64_MAX;
    struct td_l1 l1;
    struct td_l2 l2;
    for (int i = 0; i < 20; i++) {
        const uint64_t before = rdtsc();
        const uint64_t begun = rdtsc();
        const int code_1 = td_decode_l1(from, to, &l1);
        const uint64_t between = rdtsc();
        const int code_2 = own(to)->base.level == 2 ? td_decode_l2(from, to, &l2) : 0;
        const uint64_t ended = rdtsc();
        td_must(code_1);
        td_must(code_2);
        nothing = begun - before < nothing ? begun - before : nothing;
        least[0] = between - begun < least[0] ? between - begun : least[0];
        least[1] = ended - between < least[1] ? ended - between : least[1];
    }
    least[0] -= nothing;
    least[1] -= nothing;
    printf("%s: td_decode_l1 %lu, td_decode_l2 %lu instructions\n", what, (unsigned long)least[0], (unsigned long)least[1]);
    CHECK(least[0] > 100); /* they are counted */
    CHECK(least[0] <= MOST_1);
    CHECK(least[1] <= MOST_2);
}

int main(void)
{
    struct td_sample before, after, later;
    td_t *td = measured(NULL);
    needs_known_mix(); /* where the time-stamp counter counts instructions */
    mix_is(MIXES[1]);
    td_must(td_read(td, &before));
    work(1000000);
    td_must(td_read(td, &after));
    costs("one window", &before, &after);
    for (int i = 0; i < 5; i++) {
        work(4000000);
        usleep(1000);
        td_must(td_read(td, &later));
    }
    costs("after context switches", &before, &later);
    costs("after context switches, a short region", &after, &later);
    td_close(td);
    return 0;
}
