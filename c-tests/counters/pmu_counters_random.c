/* pmu_counters_random [SEED [REGIONS]]: 10,000 regions by general counters, from 1,000 slots up, of twelve threads on two
 * CPUs, with sleeps, migrations, resets, signal handlers, several mixes in them and others around them, and sums over executions: the
 * truth of each node that is measured is within its interval in all, and within a point from 6,000 slots on; sums of many executions
 * are within half a point on average. Then as many beside another process that pins counters of a CPU, or counts other events in these
 * threads, and goes again: within the interval in all. On AMD once more by handles of level 2 below each root.
 * needs: counters or general-counters or other-core */
#include "competing.h"
#include "truth.h"
#include <sys/prctl.h>

enum { THREADS = 12, REGIONS = 10000, SLOTS_OF_A_POINT = 6000, LEAST_SLOTS = 1000, MOST_MULTIPLE = 1000, PHASES = 3, RIVALS = 6 };
/* Sums: of so many mixes and executions, each of so many instructions, at the most. */
enum { MIXES_OF_A_SUM = 4, MOST_EXECUTIONS = 4000, EXECUTIONS_AT_ONCE = 16, LONGEST_EXECUTION = 2000, MANY = 1000 };
/* What a change of the mix executes in user mode, and a reading; in instructions, at the most. */
#if defined(__x86_64__)
enum { CHANGE = 10, READING = 100 };
static uint32_t path_here(void) { return TD_PATH_RDPMC; }
#else
enum { CHANGE = 10, READING = 1500 };
static uint32_t path_here(void) { return has_word("/proc/sys/kernel/perf_user_access", "1") ? TD_PATH_RDPMC : TD_PATH_READ; }
#endif

/* A sum over executions, as they come. */
struct summing {
    struct td_sum sum;
    struct node_truth truth;
    struct node_truth counted; /* the same, of which each mix has what its executions counted: also what readings took */
    struct known_mix mix[MIXES_OF_A_SUM];
    unsigned mixes, left; /* executions to come */
};

struct measuring {
    pthread_t thread;
    pid_t id;
    uint64_t seed;
    int regions, with_rivals;
    uint32_t subtree;
    struct td_info info;
    uint32_t count;
    int is_measured[SHARES]; /* which nodes the handle measures */
    int has_l2;              /* among them are all of td_l2 */
    int is_over;             /* of what is looked at level 1 alone may have been counted */
    struct summing summing;
    /* what came of it: regions of which all was counted, of which some was, of which none was; sums */
    int whole, part, none, handled, sums, of_many;
    double off, far; /* the most that a sum of many executions was off, and all of them together */
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

/* What td_decode_l1 and td_decode_l2 say of the same. */
static void levels_are(const struct measuring *of, const struct td_sample *before, const struct td_sample *after,
                       const struct td_l1 *l1, const double *truth, const double *value, double doubt)
{
    double one[4], two[8];
    struct td_l2 l2;
    l1_array(l1, one);
    for (int k = 0; k < 4; k++) {
        CHECK(one[k] == value[TD_NODE_RETIRING + k]);
        CHECK_NEAR(one[k], truth[TD_NODE_RETIRING + k], l1->error + doubt);
    }
    if (!of->has_l2 || of->is_over)
        return;
    td_must(td_decode_l2(before, after, &l2));
    l2_array(&l2, two);
    for (int k = 0; k < 8; k++) {
        CHECK(two[k] == value[TD_NODE_HEAVY_OPERATIONS + k]);
        CHECK_NEAR(two[k], truth[TD_NODE_HEAVY_OPERATIONS + k], l2.error + doubt);
    }
}

/* Each node that is measured contains its truth, of which `doubt` is not known; `most`: and is no further from it, or from what is
 * between it and `also`, where that is no ratio of few events. Returns the largest distance. */
static double nodes_are(const struct measuring *of, const struct td_node *nodes, uint32_t count, const double *truth,
                        const double *also, double doubt, double most, double *value)
{
    double farthest = 0;
    CHECK_EQ(count, of->count);
    for (const struct td_node *node = nodes; node < nodes + count; node++) {
        const double is = truth[node->id], other = also[node->id], slots = (double)node->whole;
        const double off = fmax(0, fmax(fmin(is, other) - node->value, node->value - fmax(is, other)));
        value[node->id] = node->value;
        if (!node->measured) {
            /* (what was counted of a part may be that of another mix) */
            CHECK(!of->is_measured[node->id] || may_be_unmeasured(node, &of->info, truth, slots) ||
                  (is_ratio(node, &of->info) && node->running < 1) || (of->is_over && node->level > 1));
            CHECK(isnan(node->value) && isnan(node->low) && isnan(node->high));
            continue;
        }
        CHECK(of->is_measured[node->id] && node->low <= node->value && node->value <= node->high);
        const int tells = !is_ratio(node, &of->info) || slots > 100 * SLOTS_OF_A_POINT;
        if (!(node->low - doubt <= is && is <= node->high + doubt) || (tells && off > most + doubt))
            FAIL("%s of %.0f slots: %f, between %f and %f, is not %f to %f, of which %f is not known", td_node_name(node->id), slots,
                 node->value, node->low, node->high, is, other, doubt);
        farthest = tells && off > farthest ? off : farthest;
    }
    return farthest;
}

/* A region of these samples. `most` holds if it is no short one. */
static void is_true(struct measuring *of, const struct td_sample *before, const struct td_sample *after,
                    const struct node_truth *truth, double doubt, double most)
{
    struct td_node nodes[MOST_NODES];
    struct td_l1 l1;
    double share[SHARES], value[SHARES];
    uint32_t count = 0;
    const int code = td_decode_l1(before, after, &l1);
    if (code == TD_ENOTCOUNTING && of->with_rivals) {
        of->none++;
        return;
    }
    td_must(code);
    const int whole = l1.running == 1.0;
    CHECK(whole || of->with_rivals);
    *(whole ? &of->whole : &of->part) += 1;
    of->is_over = own(after)->base.level < of->info.level || !has_all_levels(before, after);
    CHECK(!of->is_over || of->with_rivals);
    td_must(td_decode_tree(before, after, nodes, MOST_NODES, &count));
    node_shares(truth, &of->info, share);
    nodes_are(of, nodes, count, share, share, doubt, !of->with_rivals && l1.slots >= SLOTS_OF_A_POINT ? most : 1, value);
    levels_are(of, before, after, &l1, share, value, doubt);
}

static void one_region(struct measuring *of)
{
    uint64_t *seed = &of->seed;
    struct td_sample before, after;
    struct node_truth truth = {0};
    struct known_mix mix[PHASES];
    uint64_t half[PHASES];
    double most_per_instruction = 0; /* slots */
    const int phases = up_to(seed, 3) ? 1 : PHASES;
    const struct known_mix around = random_known_mix(seed, &of->info);
    /* (the bound of the library's own work is of an instruction in a cycle) */
    const int others_around = phases == 1 && around.slots_per_instruction <= of->info.slots_per_cycle && up_to(seed, 5) == 0;
    const int happens = phases == 1 && up_to(seed, 3) == 0; /* (of several mixes it must be known how long each lasts) */
    const double length = LEAST_SLOTS * pow(MOST_MULTIPLE, (double)up_to(seed, 1000) / 1000);
    for (int phase = 0; phase < phases; phase++) {
        mix[phase] = random_known_mix(seed, &of->info);
        const double slots = mix[phase].slots_per_instruction;
        half[phase] = (uint64_t)(length / slots / phases / 2);
        add_stretch(&truth, &mix[phase], 2 * slots * (double)half[phase]);
        most_per_instruction = fmax(most_per_instruction, slots);
    }
    switch (up_to(seed, 7)) { /* history */
    case 0: td_must(td_reset(td)); break;
    case 1: runs_at(&around); work(up_to(seed, 100000)); break;
    case 2: something_happens(seed); break;
    default: break;
    }
    runs_at(others_around ? &around : &mix[0]);
    const int were_handled = of->handled;
    const int begun = td_read(td, &before); /* (looked at later: what the test executes has the mix around it) */
    for (int phase = 0; phase < phases; phase++) {
        if (phase > 0 || others_around)
            runs_at(&mix[phase]);
        work(half[phase]);
        if (happens)
            something_happens(seed);
        work(half[phase]);
    }
    if (others_around)
        runs_at(&around);
    td_must(td_read(td, &after));
    td_must(begun);
    const double more = (double)(after.slots - before.slots) - truth.slots;
    const double changes = (phases - 1) * CHANGE * most_per_instruction, reading = READING * most_per_instruction;
    if (others_around && of->handled == were_handled) /* (a handler in a reading has the mix around it) */
        is_true(of, &before, &after, &truth, 2 * CHANGE * around.slots_per_instruction / truth.slots, 1);
    else if (phases == 1 && !others_around)
        is_true(of, &before, &after, &truth, 0, 0.01);
    else if (phases > 1 && more < changes + 2 * reading && !(of->with_rivals && of->handled > were_handled))
        /* (no handler made one of the mixes longer: beside others, slots that were estimated do not tell) */
        is_true(of, &before, &after, &truth, (changes + reading) / truth.slots, 0.01);
}

/* The sum is over, and true. */
static void sum_is_true(struct measuring *of, const struct summing *summing)
{
    struct td_node nodes[MOST_NODES];
    double share[SHARES], counted[SHARES], value[SHARES];
    uint32_t count = 0;
    const int code = td_sum_decode_tree(&summing->sum, nodes, MOST_NODES, &count);
    if (code == TD_ENOTCOUNTING && of->with_rivals)
        return;
    td_must(code);
    of->is_over = of->with_rivals;
    const int many = summing->sum.executions >= MANY && !of->with_rivals;
    node_shares(&summing->truth, &of->info, share);
    node_shares(&summing->counted, &of->info, counted);
    /* (what readings took may be subtracted, or may have its share: of several mixes it weighs each by how often it was executed) */
    const double off = nodes_are(of, nodes, count, share, counted, 0, 1, value);
    of->sums++;
    if (many) {
        of->of_many++;
        of->off = fmax(of->off, off);
        of->far += off;
    }
}

/* Executions of the present sum; if it is over, the next. Beside others it has one mix: it is not known how much of each was counted. */
static void executions(struct measuring *of)
{
    struct summing *summing = &of->summing;
    uint64_t *seed = &of->seed;
    if (summing->left == 0) {
        memset(summing, 0, sizeof *summing);
        summing->left = (unsigned)pow(MOST_EXECUTIONS, (double)(1 + up_to(seed, 999)) / 1000);
        summing->mixes = of->with_rivals ? 1 : 1 + (unsigned)up_to(seed, MIXES_OF_A_SUM - 1);
        for (unsigned k = 0; k < summing->mixes; k++)
            summing->mix[k] = known_mix(random_mix(seed), &of->info, (int)k);
    }
    for (uint64_t n = up_to(seed, EXECUTIONS_AT_ONCE); n > 0 && summing->left > 0; n--) {
        const struct known_mix *mix = &summing->mix[up_to(seed, summing->mixes - 1)];
        const uint64_t length = 20 + up_to(seed, LONGEST_EXECUTION), slots = summing->sum.slots;
        const int were_handled = of->handled, happens = up_to(seed, 31) == 0;
        runs_at(mix);
        td_must(td_sum_begin(td, &summing->sum));
        work(length);
        if (happens)
            something_happens(seed);
        td_must(td_sum_end(td, &summing->sum));
        const double counted = (double)(summing->sum.slots - slots), nominal = (double)length * mix->slots_per_instruction;
        add_stretch(&summing->counted, mix, counted);
        add_stretch(&summing->truth, mix, happens || of->handled > were_handled ? counted : nominal);
        if (--summing->left == 0)
            sum_is_true(of, summing);
    }
}

/* Which nodes this handle has, and measures. */
static void nodes_are_known(struct measuring *of)
{
    struct td_node nodes[MOST_NODES];
    td_must(td_list_nodes(td, nodes, MOST_NODES, &of->count));
    for (uint32_t k = 0; k < of->count; k++)
        of->is_measured[nodes[k].id] = nodes[k].measured;
    of->has_l2 = 1;
    for (uint32_t id = TD_NODE_HEAVY_OPERATIONS; id <= TD_NODE_CORE_BOUND; id++)
        of->has_l2 &= of->is_measured[id];
}

static void *measures(void *argument)
{
    struct measuring *of = argument;
    struct td_options options = options_of(TD_FLAG_COUNTERS, 0);
    sigset_t usr1;
    options.subtree = of->subtree;
    td_must(td_open(&td, &options));
    of->info = info_of(td);
    CHECK_EQ(of->info.path, path_here());
    nodes_are_known(of);
    handler_seed = of->seed;
    handled = &of->handled;
    __atomic_store_n(&of->id, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &usr1, NULL), 0);
    for (int i = 0; i < of->regions; i++) {
        one_region(of);
        executions(of);
    }
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

/* All threads' regions, signals to them meanwhile, and their sum. `roots`: each thread counts level 2 of one. */
static struct measuring all(uint64_t *seed, int regions, int with_rivals, int roots)
{
    static struct measuring of[THREADS];
    struct measuring sum;
    pid_t thread[THREADS], rival = 0;
    memset(of, 0, sizeof of);
    memset(&sum, 0, sizeof sum);
    for (int k = 0; k < THREADS; k++) {
        of[k].seed = next_random(seed);
        of[k].regions = (regions + THREADS - 1) / THREADS;
        of[k].with_rivals = with_rivals;
        const uint32_t root = smt_is_on() ? 2 * ((uint32_t)k % 2) : (uint32_t)k % 4; /* retiring and frontend bound, or each */
        of[k].subtree = roots ? TD_NODE_RETIRING + root : TD_NODE_NONE;
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
    for (int k = 0; k < THREADS; k++) {
        sum.whole += of[k].whole, sum.part += of[k].part, sum.none += of[k].none, sum.handled += of[k].handled;
        sum.sums += of[k].sums, sum.of_many += of[k].of_many;
        sum.off = fmax(sum.off, of[k].off), sum.far += of[k].far;
    }
    printf("%s%s: all counted of %d regions, a part of %d, nothing of %d; %d signal handlers\n", with_rivals ? "beside others" : "alone",
           roots ? ", level 2 root by root" : "", sum.whole, sum.part, sum.none, sum.handled);
    printf("  %d sums, %d of %d executions and more, those within %f, %f on average\n", sum.sums, sum.of_many, MANY, sum.off, sum.far / sum.of_many);
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
    td_t *first = counted();
    const struct td_info info = info_of(first);
    td_close(first);
    const int has_roots = strstr(info.core, "Zen") != NULL;
#if defined(__x86_64__)
    if (has_roots)
        contention_is_known(&info);
#endif
    CHECK_EQ(sched_getaffinity(0, sizeof all_cpus, &all_cpus), 0);
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &usr1, NULL), 0); /* of the threads to come, too, until they are ready */
    const struct measuring alone = all(&seed, regions, 0, 0), beside = all(&seed, regions, 1, 0);
    CHECK(alone.handled > 0 && alone.part + alone.none == 0);
    CHECK(alone.whole >= 9 * regions / 10);
    CHECK(alone.sums > 0 && alone.of_many > 0);
    /* (what the library itself executes is known of a sample: a single sum may be as far off as that) */
    CHECK(alone.far / alone.of_many < 0.005);
    CHECK(beside.part > 0 && beside.whole > regions / 10);
    if (has_roots) {
        watchdog_is(0); /* it has one of six counters */
        const struct measuring by_root = all(&seed, regions, 0, 1);
        watchdog_is(1);
        CHECK(by_root.part + by_root.none == 0 && by_root.whole >= 9 * regions / 10);
    }
    return 0;
}
