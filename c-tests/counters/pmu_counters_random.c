/* pmu_counters_random [SEED [REGIONS]]: 10,000 regions by general counters, from 1,000 slots up, of twelve threads on two
 * CPUs, with sleeps, migrations, resets, signal handlers and several mixes in them: the truth is within `error` in all, and
 * within a point from 6,000 slots on. Then as many beside another process that pins counters of a CPU, or counts other events
 * in these threads, and goes again: within `error` in all.
 * needs: counters or general-counters */
#include "competing.h"
#include <sys/prctl.h>

enum { THREADS = 12, REGIONS = 10000, SLOTS_OF_A_POINT = 6000, LEAST_SLOTS = 1000, MOST_MULTIPLE = 1000, PHASES = 3, RIVALS = 6 };
/* What a change of the mix executes in user mode, and a reading; in instructions, at the most. */
enum { CHANGE = 140, READING = 100 };

struct measuring {
    pthread_t thread;
    pid_t id;
    uint64_t seed;
    int regions, with_rivals;
    /* what came of it: regions of which all was counted, of which some was, of which none was */
    int whole, part, none, handled;
};

/* What a signal handler needs to know of its thread. */
static __thread td_t *td;
static __thread uint64_t handler_seed;
static __thread int *handled;
static cpu_set_t all_cpus;

static uint64_t up_to(uint64_t *seed, uint64_t most) { return next_random(seed) % (most + 1); }

/* A handler reads, too, and works. It has the mix of what it interrupts. */
static void handler(int number)
{
    struct td_sample sample;
    const int code = td_read(td, &sample);
    (void)number;
    CHECK(code == 0 || code == -EBUSY);
    work(up_to(&handler_seed, 2000));
    ++*handled;
}

static int any_cpu(uint64_t *seed)
{
    for (;;) {
        const int cpu = (int)up_to(seed, CPU_SETSIZE - 1);
        if (CPU_ISSET((unsigned)cpu, &all_cpus))
            return cpu;
    }
}

/* One CPU and no other for some time; then all of them. */
static void migrate(uint64_t *seed)
{
    move_to(0, any_cpu(seed));
    if (up_to(seed, 3) == 0)
        CHECK_EQ(sched_setaffinity(0, sizeof all_cpus, &all_cpus), 0);
}

static void something_happens(uint64_t *seed)
{
    const struct timespec moment = {0, 1000 * (long)(1 + up_to(seed, 200))};
    switch (up_to(seed, 3)) {
    case 0: nanosleep(&moment, NULL); break;
    case 1: sched_yield(); break;
    case 2: migrate(seed); break;
    default: CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0); break;
    }
}

static void shares_are(const double *share, const double *truth, int count, double error, double doubt)
{
    for (int k = 0; k < count; k++)
        CHECK_NEAR(share[k], truth[k], error + doubt);
}

/* A region of these samples, with this truth, of which `doubt` is not known. */
static void is_true(struct measuring *of, unsigned level, const struct td_sample *before, const struct td_sample *after,
                    const struct truth *truth, double doubt)
{
    struct td_l1 l1;
    struct td_l2 l2;
    double one[4], two[8];
    const int code = td_decode_l1(before, after, &l1);
    if (code == TD_ENOTCOUNTING && of->with_rivals) {
        of->none++;
        return;
    }
    td_must(code);
    const int whole = l1.running == 1.0;
    CHECK(whole || of->with_rivals);
    *(whole ? &of->whole : &of->part) += 1;
    const double most = !of->with_rivals && l1.slots >= SLOTS_OF_A_POINT ? 0.01 : 1;
    l1_array(&l1, one);
    shares_are(one, truth->l1, 4, fmin(l1.error, most), doubt);
    if (level == 2) {
        td_must(td_decode_l2(before, after, &l2));
        l2_array(&l2, two);
        shares_are(two, truth->l2, 8, fmin(l2.error, most), doubt);
    }
}

static void one_region(struct measuring *of, struct td_info info)
{
    uint64_t *seed = &of->seed;
    struct td_sample before, after;
    struct truth truth;
    struct vm_mix mix[PHASES];
    const int phases = up_to(seed, 3) ? 1 : PHASES;
    const int happens = phases == 1 && up_to(seed, 3) == 0; /* (of several mixes it must be known how long each lasts) */
    const double length =
        (double)LEAST_SLOTS / info.slots_per_cycle * pow(MOST_MULTIPLE, (double)up_to(seed, 1000) / 1000);
    const uint64_t half = (uint64_t)(length / phases / 2);
    memset(&truth, 0, sizeof truth);
    for (int phase = 0; phase < phases; phase++)
        add_truth(&truth, mix[phase] = random_mix(seed), 1.0 / phases);
    switch (up_to(seed, 7)) { /* history */
    case 0: td_must(td_reset(td)); break;
    case 1: mix_is(random_mix(seed)); work(up_to(seed, 100000)); break;
    case 2: something_happens(seed); break;
    default: break;
    }
    mix_is(mix[0]);
    td_must(td_read(td, &before));
    for (int phase = 0; phase < phases; phase++) {
        if (phase > 0)
            mix_is(mix[phase]);
        work(half);
        if (happens)
            something_happens(seed);
        work(half);
    }
    td_must(td_read(td, &after));
    const double more = (double)(after.slots - before.slots) / info.slots_per_cycle - length;
    const double changes = (phases - 1) * CHANGE;
    if (phases == 1)
        is_true(of, info.level, &before, &after, &truth, 0);
    else if (more < changes + 2 * READING) /* no handler made one of the mixes longer */
        is_true(of, info.level, &before, &after, &truth, (changes + READING) / length);
}

static void *measures(void *argument)
{
    struct measuring *of = argument;
    const struct td_options options = options_of(TD_FLAG_COUNTERS, 0);
    sigset_t usr1;
    td_must(td_open(&td, &options));
    const struct td_info info = info_of(td);
    CHECK_EQ(info.path, TD_PATH_RDPMC);
    handler_seed = of->seed;
    handled = &of->handled;
    __atomic_store_n(&of->id, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &usr1, NULL), 0);
    for (int i = 0; i < of->regions; i++)
        one_region(of, info);
    /* (a signal that is sent from now on waits for ever) */
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &usr1, NULL), 0);
    td_close(td);
    return NULL;
}

/* Other users of the counters, who come and go: until it is killed. */
static void rivals(const pid_t *thread, uint64_t seed)
{
    CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
    for (;;) {
        struct perf_group group = {{0}, 0};
        const int pinned = up_to(&seed, 1) == 0;
        const int cpu = any_cpu(&seed);
        for (uint64_t k = 0; k < RIVALS; k++) {
            const uint64_t branches = 0xc4 | k << 8; /* some event or other */
            struct perf_event_attr attr = pinned ? pinned_event(branches) : event_of(PERF_TYPE_RAW, branches);
            /* a thread may have ended */
            const int fd = (int)syscall(SYS_perf_event_open, &attr, pinned ? -1 : thread[up_to(&seed, THREADS - 1)],
                                        pinned ? cpu : -1, -1, PERF_FLAG_FD_CLOEXEC);
            if (fd >= 0)
                group.fd[group.count++] = fd;
        }
        const struct timespec busy = {0, 1000 * (long)(1 + up_to(&seed, 10000))};
        nanosleep(&busy, NULL);
        group_ends(&group);
        const struct timespec free_of_it = {0, 1000 * (long)(1 + up_to(&seed, 10000))};
        nanosleep(&free_of_it, NULL);
    }
}

/* All threads' regions, signals to them meanwhile, and their sum. */
static struct measuring all(uint64_t *seed, int regions, int with_rivals)
{
    struct measuring of[THREADS], sum;
    pid_t thread[THREADS], rival = 0;
    memset(of, 0, sizeof of);
    memset(&sum, 0, sizeof sum);
    for (int k = 0; k < THREADS; k++) {
        of[k].seed = next_random(seed);
        of[k].regions = (regions + THREADS - 1) / THREADS;
        of[k].with_rivals = with_rivals;
        of[k].thread = start_thread(measures, &of[k]);
    }
    for (int k = 0; k < THREADS; k++)
        while ((thread[k] = __atomic_load_n(&of[k].id, __ATOMIC_ACQUIRE)) == 0)
            sched_yield();
    if (with_rivals && (rival = fork()) == 0)
        rivals(thread, next_random(seed));
    for (int k = 0; k < THREADS; k++)
        while (pthread_tryjoin_np(of[k].thread, NULL) != 0) {
            const struct timespec moment = {0, 1000 * (long)(1 + up_to(seed, 500))};
            (void)pthread_kill(of[k].thread, SIGUSR1); /* blocked at its ends */
            nanosleep(&moment, NULL);
        }
    if (with_rivals) {
        CHECK_EQ(kill(rival, SIGKILL), 0);
        CHECK_EQ(waitpid(rival, NULL, 0), rival);
    }
    for (int k = 0; k < THREADS; k++)
        sum.whole += of[k].whole, sum.part += of[k].part, sum.none += of[k].none, sum.handled += of[k].handled;
    printf("%s: all counted of %d regions, a part of %d, nothing of %d; %d signal handlers\n",
           with_rivals ? "beside others" : "alone", sum.whole, sum.part, sum.none, sum.handled);
    return sum;
}

int main(int argc, char **argv)
{
    const int regions = argc > 2 ? atoi(argv[2]) : REGIONS;
    uint64_t seed = seed_of(argc, argv);
    struct sigaction action = {.sa_handler = handler};
    sigset_t usr1;
    printf("seed %llu\n", (unsigned long long)seed);
    if (getenv("MACHINE") == NULL)
        needs_known_mix();
    td_close(counted());
    CHECK_EQ(sched_getaffinity(0, sizeof all_cpus, &all_cpus), 0);
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &usr1, NULL), 0); /* of the threads to come, too, until they are ready */
    const struct measuring alone = all(&seed, regions, 0), beside = all(&seed, regions, 1);
    CHECK(alone.handled > 0 && alone.part + alone.none == 0);
    CHECK(alone.whole >= 9 * regions / 10);
    CHECK(beside.part > 0 && beside.whole > regions / 10);
    return 0;
}
