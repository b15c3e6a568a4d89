/* One handle for both kinds of core: a thread that is moved between P-cores and E-cores, with random mixes, gets one answer, whole,
 * of single regions and of a sum, each within its bound of the truth, and all of its time is counted. So does another thread's,
 * and one that is moved at any instruction of a td_read.
 * needs: counters, hybrid */
#include "pmu.h"
#include <pthread.h>
#include <semaphore.h>
#include <topdown_inline.h>

enum { REGIONS = 150, PIECES = 4, SLACK = 1500 /* instructions beside a piece's work */ };

static int core[2], width[2];
static uint64_t seed;

/* what ran, as the program knows it: slots in all and of each node; and how far that may be off */
struct known {
    double slots, part[4], mispredicts, slack;
};

static td_t *opened(uint32_t flags, uint32_t target, int32_t id)
{
    struct td_options options = options_of(flags, 0);
    td_t *td = NULL;
    options.target = target;
    options.id = id;
    td_must(td_open(&td, &options));
    return td;
}

/* so much work of a mix, on this kind of core */
static void piece(struct known *known, int kind, struct vm_mix mix, uint64_t instructions)
{
    const struct truth truth = truth_of(mix);
    const double slots = (double)instructions * width[kind];
    move_to(0, core[kind]);
    mix_is(mix);
    work(instructions);
    known->slots += slots;
    known->slack += (double)SLACK * width[0];
    for (int k = 0; k < 4; k++)
        known->part[k] += slots * truth.l1[k];
    known->mispredicts += slots * truth.l2[2];
}

/* returns on which kind the last ran */
static int pieces(struct known *known)
{
    int kind = 0;
    for (uint64_t left = 1 + next_random(&seed) % PIECES; left > 0; left--)
        piece(known, kind = (int)(next_random(&seed) % 2), random_mix(&seed), 20000 + next_random(&seed) % 300000);
    return kind;
}

static void is_known(const struct td_l1 *l1, const struct known *known, double most_error)
{
    double share[4];
    const double slack = known->slack / known->slots;
    l1_array(l1, share);
    CHECK_NEAR((double)l1->slots, known->slots, known->slack + l1->error * known->slots);
    /* (the bound of counts that contradict each other holds everything) */
    const double error = fmin(l1->error, 0.05 + 30000 / known->slots);
    for (int k = 0; k < 4; k++)
        CHECK_NEAR(share[k], known->part[k] / known->slots, error + slack);
    if (l1->error >= most_error)
        FAIL("error %g of %llu slots, running %.9f", l1->error, (unsigned long long)l1->slots, l1->running);
}

static void nodes_are_known(const struct td_node *nodes, uint32_t count, const struct known *known)
{
    const double slack = known->slack / known->slots;
    CHECK_EQ(count, 5);
    CHECK(nodes[4].measured && nodes[4].id == TD_NODE_BRANCH_MISPREDICTS && nodes[4].parent == TD_NODE_BAD_SPECULATION);
    CHECK(nodes[4].low - slack <= known->mispredicts / known->slots && known->mispredicts / known->slots <= nodes[4].high + slack);
}

static void add(struct known *all, const struct known *one)
{
    all->slots += one->slots;
    all->slack += one->slack;
    all->mispredicts += one->mispredicts;
    for (int k = 0; k < 4; k++)
        all->part[k] += one->part[k];
}

/* a handle of this thread's, whose regions, sum and whole are compared with the truth */
static void regions_are_known(uint32_t flags, int regions)
{
    struct td_sample start, before, after;
    struct known whole = {0}, summed = {0};
    struct td_node nodes[16];
    struct td_sum sum = {0};
    struct td_l1 l1;
    uint32_t count = 0;
    int seen = 0; /* readings after regions: on a P-core, then on an E-core, then on a P-core */
    may_run_anywhere();
    td_t *td = opened(flags, TD_TARGET_SELF, 0);
    CHECK_EQ(info_of(td).path, flags ? TD_PATH_READ : TD_PATH_RDPMC);
    mix_is(MIXES[0]);
    td_must(td_reset(td));
    td_must(td_read(td, &start));
    for (int i = 0; i < regions; i++) {
        struct known one = {0};
        const int in_sum = i % 3 == 2;
        td_must(in_sum ? td_sum_begin(td, &sum) : td_read(td, &before));
        const int kind = pieces(&one);
        td_must(in_sum ? td_sum_end(td, &sum) : td_read(td, &after));
        add(&whole, &one);
        if (in_sum) {
            add(&summed, &one);
            continue;
        }
        td_must(td_decode_l1(&before, &after, &l1));
        is_known(&l1, &one, seen < 3 ? 1.01 : 0.05 + 30000 / one.slots);
        /* (once the thread was read on P-cores, E-cores and P-cores again, the time of both is known) */
        if (seen >= 3 && l1.running < 1)
            FAIL("region %d: running %.9f of %llu ns", i, l1.running, (unsigned long long)(after.time_enabled_ns - before.time_enabled_ns));
        seen += kind == (seen == 1);
        td_must(td_decode_tree(&before, &after, nodes, 16, &count));
        nodes_are_known(nodes, count, &one);
    }
    td_must(td_decode_l1(&start, &after, &l1));
    printf("whole: %.0f slots, error %.4f, running %.6f\n", (double)l1.slots, l1.error, l1.running);
    whole.slack += (double)regions * SLACK * width[0];
    if (regions % 3)
        is_known(&l1, &whole, 0.05);
    CHECK(l1.running > 0.999);
    td_must(td_sum_l1(&sum, &l1));
    printf("sum: %.0f slots, error %.4f, running %.6f\n", (double)l1.slots, l1.error, l1.running);
    is_known(&l1, &summed, 0.05);
    td_must(td_sum_decode_tree(&sum, nodes, 16, &count));
    nodes_are_known(nodes, count, &summed);
    td_close(td);
}

/* where a thread stays on one kind of core, all is as with a handle of that kind */
static void stays(void)
{
    struct td_sample before, after;
    struct td_mark mark[2];
    struct td_l1 l1;
    may_run_anywhere();
    td_t *td = opened(0, TD_TARGET_SELF, 0);
    const struct td_info info = info_of(td);
    CHECK_EQ(strcmp(info.pmu, "cpu_core,cpu_atom"), 0);
    CHECK(strstr(info.core, " Cove and ") != NULL);
    CHECK_EQ(info.path, TD_PATH_RDPMC);
    CHECK_EQ(info.level, 2);
    CHECK_EQ(info.counters, strstr(info.core, "Lion") || strstr(info.core, "Cougar") ? 4 : 5); /* what corrects the others, too */
    CHECK_EQ(info.note[0], 0);
    for (int k = 0; k < 8; k++) {
        struct known one = {0};
        move_to(0, core[k % 2]);
        td_must(td_read(td, &before)); /* after which the thread is where it was last seen */
        td_must(td_read(td, &before));
        piece(&one, k % 2, MIXES[k / 2], 300000);
        td_must(td_read(td, &after));
        td_must(td_decode_l1(&before, &after, &l1));
        is_known(&l1, &one, 0.02);
        CHECK_EQ((long)(l1.running * 1e9), 1000000000);
        td_must(td_read_mark(td, &mark[0]));
        work(300000);
        td_must(td_read_mark(td, &mark[1]));
        td_must(td_mark_sample(td, &mark[0], &before));
        td_must(td_mark_sample(td, &mark[1], &after));
        td_must(td_decode_l1(&before, &after, &l1));
        l1_is(&l1, MIXES[k / 2], 0.05);
    }
    td_close(td);

    may_run_anywhere(); /* who wants level 2 gets that of the P-cores */
    struct td_options both = options_of(0, 2);
    td_must(td_open(&td, &both));
    CHECK_EQ(strcmp(info_of(td).pmu, "cpu_core"), 0);
    CHECK(strstr(info_of(td).note, "level 2 is wanted") != NULL);
    td_close(td);

    move_to(0, core[0]); /* and nowhere else: all that the P-cores give */
    td = opened(0, TD_TARGET_SELF, 0);
    CHECK_EQ(strcmp(info_of(td).pmu, "cpu_core"), 0);
    td_close(td);
}

static volatile int stop;
static sem_t begin;
static pid_t other;

static void *run(void *mixes)
{
    struct known *known = mixes;
    other = (pid_t)syscall(SYS_gettid);
    may_run_anywhere();
    CHECK_EQ(sem_post(&begin), 0);
    while (!stop)
        usleep(100);
    for (int i = 0; i < 20; i++)
        pieces(known);
    mix_is(MIXES[0]);
    return NULL;
}

/* another thread, from outside */
static void of_another_thread(void)
{
    struct td_sample before, after;
    struct known known = {0};
    struct td_l1 l1;
    pthread_t thread;
    may_run_anywhere();
    CHECK_EQ(sem_init(&begin, 0, 0), 0);
    CHECK_EQ(pthread_create(&thread, NULL, run, &known), 0);
    CHECK_EQ(sem_wait(&begin), 0);
    td_t *td = opened(0, TD_TARGET_TASK, other);
    CHECK_EQ(strcmp(info_of(td).pmu, "cpu_core,cpu_atom"), 0);
    td_must(td_read(td, &before));
    stop = 1;
    CHECK_EQ(pthread_join(thread, NULL), 0);
    td_must(td_read(td, &after));
    td_must(td_decode_l1(&before, &after, &l1));
    printf("another thread: error %.4f, running %.6f\n", l1.error, l1.running);
    known.slack *= 2;
    is_known(&l1, &known, 0.05);
    td_close(td);
}

static void *mover(void *reader)
{
    for (int i = 0; i < 3000; i++) {
        move_to(*(pid_t *)reader, core[i % 2]);
        work(next_random(&seed) % 20000);
    }
    stop = 2;
    return NULL;
}

/* moved at any instruction */
static void moved_by_another_thread(void)
{
    struct td_sample first, last, now;
    pid_t reader = (pid_t)syscall(SYS_gettid);
    struct td_l1 l1;
    pthread_t thread;
    long readings = 0;
    may_run_anywhere();
    td_t *td = opened(0, TD_TARGET_SELF, 0);
    mix_is(MIXES[1]);
    td_must(td_reset(td));
    td_must(td_read(td, &first));
    last = first;
    CHECK_EQ(pthread_create(&thread, NULL, mover, &reader), 0);
    while (stop != 2) {
        td_must(td_read(td, &now));
        CHECK(now.slots >= last.slots && now.time_enabled_ns >= last.time_enabled_ns);
        CHECK(now.time_running_ns >= last.time_running_ns && now.time_running_ns <= now.time_enabled_ns);
        last = now;
        readings++;
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
    td_must(td_decode_l1(&first, &last, &l1));
    printf("moved 3000 times during %ld readings: error %.4f, running %.6f\n", readings, l1.error, l1.running);
    l1_is(&l1, MIXES[1], 0.02);
    CHECK(l1.running > 0.9);
    td_close(td);
}

int main(int argc, char **argv)
{
    core[0] = p_core(), core[1] = e_core();
    if (core[0] < 0 || core[1] < 0)
        SKIP("not a hybrid CPU");
    td_close(measured(NULL));
    needs_known_mix();
    seed = seed_of(argc, argv);
    printf("seed %llu\n", (unsigned long long)seed);
    for (int kind = 0; kind < 2; kind++) {
        struct td_options options = options_of(kind ? TD_FLAG_E_CORES : TD_FLAG_COUNTERS, 1);
        td_t *td = NULL;
        move_to(0, core[kind]);
        td_must(td_open(&td, &options));
        width[kind] = (int)info_of(td).slots_per_cycle;
        td_close(td);
    }
    stays();
    regions_are_known(0, REGIONS);
    regions_are_known(TD_FLAG_NO_RDPMC, 30);
    of_another_thread();
    moved_by_another_thread();
    return 0;
}
