/* Each region has as many executions as the program had, also where a context switch comes while the library measures an execution of nothing:
 * four threads on one CPU execute hundreds of short regions, of which two share a place of the cache here and there.
 * needs: counters or other-core */
#include "competing.h"
#include "csv.h"
#include "pmu.h"
#include <pthread.h>
#include <topdown_region.h>

enum { THREADS = 4, REGIONS = 400, ROUNDS = 400 };
static char names[REGIONS][24];

static void *thread(void *unused)
{
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < REGIONS; i++) {
            CHECK_EQ(td_region_begin(names[i]), 0);
            work(200);
            CHECK_EQ(td_region_end(names[i]), 0);
        }
    return unused;
}

int main(int argc, char **argv)
{
    static struct csv csv;
    pthread_t other[THREADS];
    for (int i = 0; i < REGIONS; i++)
        snprintf(names[i], sizeof names[i], "r%d", 7919 * i);
    if (argc > 1) {
        stay_on_a_cpu();
        for (int i = 0; i < THREADS; i++)
            CHECK_EQ(pthread_create(&other[i], NULL, thread, NULL), 0);
        for (int i = 0; i < THREADS; i++)
            CHECK_EQ(pthread_join(other[i], NULL), 0);
        return 0;
    }
    td_close(counted());
    setenv("TOPDOWN_SOURCE", "counters", 1);
    CHECK_EQ(under_preload(argv[0], "work", &csv), 0);
    for (int i = 0; i < REGIONS; i++)
        CHECK_EQ((uint64_t)csv_number(&csv, csv_row(&csv, names[i]), "executions"), THREADS * ROUNDS);
    return 0;
}
