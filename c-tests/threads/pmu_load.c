/* As many threads as have descriptors (a thousand have 10,000) open, read and close real counters at once; a million
 * readings by 64 threads. On the emulated machine: a reading is as many instructions beside 63 others as alone. */
#include "pmu.h"
#include <sys/resource.h>
#define OPEN() measured(NULL)
#define MIX_IS(td, k) ((void)(td), mix_is(MIXES[k]))
#define SHARES_ARE(l1, k) (emulated() ? l1_is(l1, MIXES[k], 1) : (void)0)
#define THREADS 1000
#define MAIN
#include "load.c"

enum { OF_A_HANDLE = 10, OTHERS = 64 };

int main(void)
{
    struct rlimit files;
    td_close(measured(NULL)); /* or it is skipped */
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
    if (files.rlim_max < THREADS * OF_A_HANDLE + OTHERS) {
        const struct rlimit more = {THREADS * OF_A_HANDLE + OTHERS, THREADS * OF_A_HANDLE + OTHERS};
        if (setrlimit(RLIMIT_NOFILE, &more) != 0)
            CHECK_EQ(errno, EPERM);
        CHECK_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
    }
    files.rlim_cur = files.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
    const rlim_t enough = (files.rlim_cur - OTHERS) / OF_A_HANDLE;
    const int threads = enough < THREADS ? (int)enough : (int)repeats(THREADS);
    printf("%d threads\n", threads);
    many(threads);
    many(threads);

    join_thread(start_thread(reader, (void *)(intptr_t)READERS));
    million();
    printf("%llu ticks alone\n", (unsigned long long)cost[READERS]);
    for (int i = 0; i < READERS && emulated(); i++)
        CHECK_NEAR((double)cost[i], (double)cost[READERS], 8);
    return 0;
}
