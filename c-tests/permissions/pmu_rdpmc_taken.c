/* Somebody writes 0 to the PMU's `rdpmc` file while handles are open: every program's next RDPMC faults. Readings end with
 * TD_ENORDPMC, in each of the ways to read, in each thread; earlier samples are good; a new handle reads by read(2), and by
 * RDPMC again once 1 is written. A handle that was opened with TD_FLAG_NO_RDPMC does not notice. */
#include "pmu.h"
#include <pthread.h>
#include <topdown_inline.h>

static pthread_barrier_t barrier;

static void grant_again(void) { rdpmc_is(1); }

enum { READ, MARK, RESET, SUM, WAYS };

static int reading(td_t *td, int way)
{
    struct td_sample sample;
    struct td_mark mark;
    struct td_sum sum;
    memset(&sum, 0, sizeof sum);
    switch (way) {
    case READ: return td_read(td, &sample);
    case MARK: return td_read_mark(td, &mark);
    case RESET: return td_reset(td);
    default: return td_sum_begin(td, &sum);
    }
}

/* the other thread's readings end in the same way */
static void *other(void *unused)
{
    struct td_sample sample;
    td_t *td = measured(NULL);
    td_must(td_read(td, &sample));
    pthread_barrier_wait(&barrier); /* open */
    pthread_barrier_wait(&barrier); /* taken */
    CHECK_EQ(td_read(td, &sample), TD_ENORDPMC);
    td_close(td);
    return unused;
}

int main(void)
{
    struct td_sample before, after;
    struct td_l1 l1;
    struct td_node nodes[16];
    uint32_t count = 0;
    struct td_options no_rdpmc = options_of(TD_FLAG_NO_RDPMC, 0);
    td_t *td[WAYS];
    struct td_mark mark;
    pthread_t thread;
    td_close(measured(NULL));
    needs_known_mix();
    mix_is(MIXES[0]);
    rdpmc_is(1);
    CHECK_EQ(atexit(grant_again), 0);

    td[0] = measured(&no_rdpmc);
    td_must(td_read(td[0], &before));
    rdpmc_is(0);
    work(2000000);
    td_must(td_read(td[0], &after));
    td_must(td_decode_l1(&before, &after, &l1));
    l1_is(&l1, MIXES[0], 0.02);
    td_close(td[0]);
    rdpmc_is(1);

    for (int way = 0; way < WAYS; way++) {
        td[way] = measured(NULL);
        CHECK_EQ(info_of(td[way]).path, TD_PATH_RDPMC);
        td_must(td_read(td[way], &before));
        work(2000000);
        td_must(td_read(td[way], &after));
        CHECK_EQ(pthread_barrier_init(&barrier, NULL, 2), 0);
        CHECK_EQ(pthread_create(&thread, NULL, other, NULL), 0);
        pthread_barrier_wait(&barrier);

        rdpmc_is(0);
        struct td_sample untouched = after;
        CHECK_EQ(reading(td[way], way), TD_ENORDPMC);
        CHECK(last_error_with("rdpmc") && last_error_with("td_open"));
        for (int again = 0; again < WAYS; again++)
            CHECK_EQ(reading(td[way], again), TD_ENORDPMC);
        CHECK_EQ(td_read(td[way], &after), TD_ENORDPMC);
        CHECK_EQ(memcmp(&after, &untouched, sizeof after), 0);
        td_must(td_decode_l1(&before, &after, &l1));
        l1_is(&l1, MIXES[0], 0.02);
        pthread_barrier_wait(&barrier);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        td_t *lost = td[way];

        /* the remedy */
        td[way] = measured(NULL);
        CHECK_EQ(info_of(td[way]).path, TD_PATH_READ);
        td_must(td_read(td[way], &before));
        work(2000000);
        td_must(td_read(td[way], &after));
        td_must(td_decode_l1(&before, &after, &l1));
        l1_is(&l1, MIXES[0], 0.02);
        td_must(td_decode_tree_as(&before, &after, TD_AS_BARE, nodes, 16, &count)); /* (no counter is left for what corrects these) */
        for (uint32_t k = 0; k < count; k++)
            CHECK(!nodes[k].measured || nodes[k].high - nodes[k].low < 0.1);
        rdpmc_is(1);
        td_must(td_read(td[way], &after)); /* goes on */
        td_close(td[way]);
        CHECK_EQ(td_read(lost, &after), TD_ENORDPMC); /* for good, also after 1 is written */
        CHECK_EQ(td_read_mark(lost, &mark), TD_ENORDPMC);
        CHECK_EQ(info_of(lost).path, TD_PATH_RDPMC);
        td_close(lost);
    }
    return 0;
}
