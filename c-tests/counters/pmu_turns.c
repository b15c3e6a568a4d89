/* `topdown stat --td-level` of a level that no group holds whole: the parts take turns while a program's mix changes at random. Level 1 is
 * of all the time, each node below is within its interval of the truth of the whole, and the bound is worth reading. The intervals of the
 * timeline add up to the whole; the rows of -I are each true of their time; those of -r have a mean; `topdown run` reports the same.
 * With the argument `hotplug`: a CPU that goes offline and comes back is counted on.
 * needs: other-core */
#include "../command/lib/stat.h"
#include "truth.h"
#include <pthread.h>

enum { PHASES = 1500, LONGEST = 6000000, OFFSETS = 8, THREADS = 4 };
static struct td_info info;

/* What the program leaves: when each phase began, and the last ended, and what it was. */
static struct {
    uint64_t phases;
    double begin[PHASES + 1], length[PHASES];
    struct known_mix known[PHASES];
    struct node_truth whole; /* with its threads */
} ran;

static void put(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fwrite(bytes, size, 1, file) == 1 && fclose(file) == 0);
}

static void get(const char *path, void *bytes, size_t size)
{
    FILE *file = fopen(path, "r");
    CHECK(file != NULL && fread(bytes, size, 1, file) == 1 && fclose(file) == 0);
}

static double seconds(void)
{
    struct timespec now;
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A thread of the program, with mixes of its own, and its truth. */
static struct node_truth truths[THREADS];
static void *thread(void *at)
{
    struct node_truth *truth = at;
    uint64_t seed = 2 + (uint64_t)(truth - truths);
    for (int k = 0; k < PHASES / THREADS; k++) {
        const struct known_mix known = random_known_mix(&seed, &info);
        const uint64_t length = next_random(&seed) % LONGEST;
        runs_at(&known);
        work(length);
        add_stretch(truth, &known, (double)length);
    }
    return NULL;
}

/* The program: it leaves the truth in a file, and takes no counters. With so many threads beside. */
static int phases(const char *core, const char *path, const char *number, int threads)
{
    uint64_t seed = 1;
    pthread_t id[THREADS];
    get(core, &info, sizeof info);
    ran.phases = (uint64_t)atoi(number);
    for (int k = 0; k < threads; k++)
        CHECK_EQ(pthread_create(&id[k], NULL, thread, &truths[k]), 0);
    for (uint64_t k = 0; k < ran.phases; k++) {
        ran.known[k] = random_known_mix(&seed, &info);
        const uint64_t length = next_random(&seed) % LONGEST;
        ran.length[k] = (double)length;
        ran.begin[k] = seconds();
        runs_at(&ran.known[k]);
        work(length);
        add_stretch(&ran.whole, &ran.known[k], (double)length);
    }
    ran.begin[ran.phases] = seconds();
    for (int k = 0; k < threads; k++) {
        CHECK_EQ(pthread_join(id[k], NULL), 0);
        ran.whole.slots += truths[k].slots;
        for (int rate = 0; rate < RATES; rate++)
            ran.whole.rate[rate] += truths[k].rate[rate];
    }
    put(path, &ran, sizeof ran);
    return 5;
}

/* The truth from one time to another. */
static void truth_between(double from, double to, double *share)
{
    struct node_truth truth = {0};
    for (uint64_t k = 0; k < ran.phases; k++) {
        const double begin = ran.begin[k], end = ran.begin[k + 1];
        const double first = begin > from ? begin : from, last = end < to ? end : to;
        if (last > first && ran.length[k] > 0)
            add_stretch(&truth, &ran.known[k], ran.length[k] * (last - first) / (end - begin));
    }
    CHECK(truth.slots > 0);
    node_shares(&truth, &info, share);
}

/* Whether the whole has the share that its parts have: not where two events tell how a node divides. */
static int is_a_sum(uint32_t id)
{
    const int amd = strstr(info.core, "Zen") != NULL, skylake = strstr(info.core, "Skylake") != NULL;
    switch (id) {
    case TD_NODE_BRANCH_MISPREDICTS: case TD_NODE_MACHINE_CLEARS: case TD_NODE_PIPELINE_RESTARTS: return !amd && !skylake;
    case TD_NODE_MEMORY_BOUND: case TD_NODE_CORE_BOUND: return !amd;
    case TD_NODE_BACKEND_BOUND: case TD_NODE_SMT_CONTENTION: return !amd; /* (how much another thread takes is the machine's) */
    case TD_NODE_HEAVY_OPERATIONS: case TD_NODE_LIGHT_OPERATIONS: return !skylake;
    default: return id <= TD_NODE_PIPELINE_RESTARTS;
    }
}

static int is_level_1(uint32_t id) { return id <= TD_NODE_BACKEND_BOUND || id == TD_NODE_SMT_CONTENTION; }

/* Runs the program so long, with so many threads beside, under `topdown` with these arguments. */
static void runs_with(const char *const *with, const char *number, const char *threads)
{
    char *all[24] = {beside("../release/topdown")};
    int n = 1;
    while (*with)
        all[n++] = strdup(*with++);
    char *const program[] = {strdup(own_path()), strdup("phases"), in_scratch("core"), in_scratch("truth"), strdup(number), strdup(threads)};
    memcpy(all + n, program, sizeof program);
    unlink(in_scratch("r.csv"));
    const int status = run_alone(all);
    fprintf(stderr, "%s", stat_said());
    CHECK_EQ(WEXITSTATUS(status), 5);
    get(in_scratch("truth"), &ran, sizeof ran);
}

/* So many phases; in the gate half. */
static const char *many(int all)
{
    static char number[16];
    snprintf(number, sizeof number, "%d", in_gate() ? all / 2 : all);
    return number;
}

static void runs(const char *const *with, const char *number) { runs_with(with, number, "0"); }

/* The report of the whole is true; how much of the time was counted. */
static double whole_is_true(const struct csv *csv, double least_running)
{
    double share[SHARES], bound[4] = {0};
    int below = 0;
    node_shares(&ran.whole, &info, share);
    for (uint32_t id = TD_NODE_RETIRING; id < SHARES; id++) {
        const char *name = td_node_name(id);
        char low[64], high[64];
        if (name == NULL || !csv_has(csv, name) || *csv_text(csv, 1, name) == 0)
            continue;
        snprintf(low, sizeof low, "%s_low", name);
        snprintf(high, sizeof high, "%s_high", name);
        const double ends[] = {csv_number(csv, 1, low), csv_number(csv, 1, high)}, is = csv_number(csv, 1, name);
        fprintf(stderr, "%s: %.4f, %.4f to %.4f, truth %.4f\n", name, is, ends[0], ends[1], share[id]);
        if (!is_a_sum(id))
            continue;
        CHECK(ends[0] <= is && is <= ends[1] && ends[0] <= share[id] && share[id] <= ends[1]);
        below += !is_level_1(id);
        const double far = is - ends[0] > ends[1] - is ? is - ends[0] : ends[1] - is;
        if (far > bound[is_level_1(id)])
            bound[is_level_1(id)] = far;
    }
    const int skylake = strstr(info.core, "Skylake") != NULL;
    CHECK(below >= (skylake ? 2 : 4));
    /* (Here a switch waits until the other CPU has its turn, so that a good part of the time is lost in between. In a nanosecond of it no
     * stretch has more than a cycle, and where two CPUs share the emulated machine's one clock, they have less.) */
    const double running = csv_number(csv, 1, "running");
    const double lost = (1 - running) * csv_number(csv, 1, "time_ns") * info.slots_per_cycle;
    const double uncounted = lost / (lost + csv_number(csv, 1, "slots"));
    fprintf(stderr, "running %.3f, uncounted at most %.3f, bounds %.3f and %.3f\n", running, uncounted, bound[1], bound[0]);
    CHECK(running > least_running && bound[1] < uncounted + 0.02);
    CHECK(bound[0] < uncounted + 0.3 || skylake);
    return running;
}

/* Slots, and those of level 1, of all intervals are those of the whole. */
static void intervals_add_up(const struct csv *whole, const struct csv *timeline)
{
    static const char *const names[] = {"slots", "tma_retiring", "tma_bad_speculation", "tma_frontend_bound", "tma_backend_bound"};
    const double slots = csv_number(whole, 1, "slots");
    CHECK(timeline->rows > 5);
    for (int k = 0; k < 5; k++) {
        double sum = 0;
        for (int row = 1; row < timeline->rows; row++)
            sum += csv_number(timeline, row, "slots") > 0 ? csv_number(timeline, row, names[k]) : 0;
        CHECK_NEAR(sum / slots, k == 0 ? 1 : csv_number(whole, 1, names[k]), k == 0 ? 0 : 1e-6);
    }
}

/* Each row of -I is true of its time. The count began before the program did, and ended after it. */
static void rows_are_true(const struct csv *csv)
{
    const double earliest = ran.begin[ran.phases] - csv_number(csv, csv->rows - 1, "time"), latest = ran.begin[0];
    int below = 0, rows = 0;
    fprintf(stderr, "%d rows; the start is known within %.3f s\n", csv->rows - 1, latest - earliest);
    CHECK(latest >= earliest && csv->rows > 2);
    for (int row = 1; row < csv->rows; row++) {
        const double to = csv_number(csv, row, "time"), from = row > 1 ? csv_number(csv, row - 1, "time") : 0;
        double share[OFFSETS + 1][SHARES];
        if (csv_number(csv, row, "slots") == 0 || latest + from > ran.begin[ran.phases] || earliest + to < ran.begin[0])
            continue;
        for (int k = 0; k <= OFFSETS; k++)
            truth_between(earliest + (latest - earliest) * k / OFFSETS + from, earliest + (latest - earliest) * k / OFFSETS + to, share[k]);
        rows++;
        for (uint32_t id = TD_NODE_RETIRING; id < SHARES; id++) {
            const char *name = td_node_name(id);
            if (name == NULL || !csv_has(csv, name) || *csv_text(csv, row, name) == 0 || !is_a_sum(id))
                continue;
            double bound = csv_number(csv, row, is_level_1(id) ? "error_1" : "error_2");
            if (!is_level_1(id) && csv_has(csv, "error_3") && *csv_text(csv, row, "error_3") && csv_number(csv, row, "error_3") > bound)
                bound = csv_number(csv, row, "error_3"); /* (the column does not say of which level a node is) */
            double low = 1, high = 0;
            for (int k = 0; k <= OFFSETS; k++) {
                low = share[k][id] < low ? share[k][id] : low;
                high = share[k][id] > high ? share[k][id] : high;
            }
            const double is = csv_number(csv, row, name);
            fprintf(stderr, "row %d, %s: %.4f, truth %.4f to %.4f, within %.4f\n", row, name, is, low, high, bound);
            CHECK(low - bound <= is && is <= high + bound);
            /* (level 1 is exact but for what passed uncounted, whatever that was) */
            const double near = 1 - csv_number(csv, row, "running") + 0.01;
            CHECK(!is_level_1(id) || (low - near <= is && is <= high + near));
            below += !is_level_1(id);
        }
    }
    CHECK(rows >= 2 && below >= 4);
}

/* CPU 1 goes, and comes back, and the program runs there. */
static void hotplug(const char *level, char *r)
{
    static const char cpu[] = "/sys/devices/system/cpu/cpu1/online";
    static struct csv csv;
    double share[SHARES], work = 0;
    char *script, *all[] = {beside("../release/topdown"), strdup("stat"), strdup("-a"), strdup("--td-level"), strdup(level), strdup("-o"), r,
                            strdup("--"), strdup("sh"), strdup("-c"), NULL, NULL};
    CHECK_EQ(chmod(cpu, 0666), 0);
    CHECK(asprintf(&script, "echo 0 > %s; sleep 2.5; echo 1 > %s; sleep 2.5; exec taskset -c 1 %s phases %s %s 500 0", cpu, cpu, own_path(),
                   in_scratch("core"), in_scratch("truth")) > 0);
    all[10] = script;
    CHECK_EQ(system("echo 0 > /proc/sys/kernel/perf_event_paranoid"), 0);
    CHECK_EQ(WEXITSTATUS(run_alone(all)), 5);
    fprintf(stderr, "%s", stat_said());
    get(in_scratch("truth"), &ran, sizeof ran);
    for (uint64_t k = 0; k < ran.phases; k++)
        work += ran.length[k] * info.slots_per_cycle;
    csv_read(&csv, r);
    const double slots = csv_number(&csv, 1, "slots"), far = csv_number(&csv, 1, "tma_retiring");
    truth_between(ran.begin[0], ran.begin[ran.phases], share);
    fprintf(stderr, "off and on again: %.3f of the work, retiring %.3f, truth %.3f\n", slots / work, far, share[TD_NODE_RETIRING]);
    CHECK(slots > 0.7 * work && slots < 1.05 * work);
    CHECK_NEAR(far, share[TD_NODE_RETIRING], 0.05);
}

int main(int count, char **arguments)
{
    td_t *td;
    if (count > 5)
        return phases(arguments[2], arguments[3], arguments[4], atoi(arguments[5]));
    stat_begins();
    td_must(td_open(&td, NULL));
    info = info_of(td);
    td_close(td);
    put(in_scratch("core"), &info, sizeof info);
    watchdog_is(0);
    const char *level = strstr(info.core, "mont (") != NULL ? "3" : "2";
    char *r = in_scratch("r.csv"), *t = in_scratch("t.csv");
    if (strstr(info.core, "Tremont") != NULL) {
        char *const all[] = {beside("../release/topdown"), strdup("stat"), strdup("--td-level"), strdup("2"), strdup("true"), NULL};
        run_alone(all);
        CHECK(strstr(stat_said(), "level") != NULL); /* it has no parts of a level */
        return 0;
    }
    if (count == 2 && strcmp(arguments[1], "hotplug") == 0) {
        hotplug(level, r);
        return 0;
    }
    static struct csv csv, timeline;
    runs((const char *const[]){"stat", "--td-level", level, "--timeline", t, "-o", r, NULL}, many(1000));
    csv_read(&csv, r);
    csv_read(&timeline, t);
    fprintf(stderr, "running %.3f, %d intervals\n", whole_is_true(&csv, 0.8), timeline.rows - 1);
    intervals_add_up(&csv, &timeline);

    char interval[24];
    snprintf(interval, sizeof interval, "%d", (int)(1000 * (ran.begin[ran.phases] - ran.begin[0])));
    runs((const char *const[]){"stat", "--td-level", level, "-I", interval, "-o", r, NULL}, many(1500));
    csv_read(&csv, r);
    rows_are_true(&csv);

    /* (Runs so short that nothing below level 1 is measured.) */
    runs((const char *const[]){"stat", "--td-level", level, "-r", "2", "-o", r, NULL}, "2");
    CHECK(strstr(stat_said(), "fewer than 8 turns") != NULL);
    csv_read(&csv, r);
    CHECK_EQ(csv.rows, 5);
    for (int row = 1; row <= 2; row++)
        CHECK(csv_number(&csv, row, "slots") > 0.9 * (ran.length[0] + ran.length[1]));
    CHECK_NEAR(csv_number(&csv, 3, "tma_retiring"), (csv_number(&csv, 1, "tma_retiring") + csv_number(&csv, 2, "tma_retiring")) / 2, 1e-9);

    char *const refused[] = {beside("../release/topdown"), strdup("stat"), strdup("--td-level"), strdup(level), strdup("--per-process"), strdup("true"), NULL};
    CHECK_EQ(WEXITSTATUS(run_alone(refused)), 125);
    CHECK(strstr(stat_said(), "not with rows of parts") != NULL);

    runs((const char *const[]){"run", "--td-level", level, "-o", r, NULL}, many(1000));
    CHECK(strstr(stat_said(), "without regions") != NULL);
    csv_read(&csv, r);
    whole_is_true(&csv, 0.8);

    /* (Threads on both CPUs: a switch waits for either.) */
    runs_with((const char *const[]){"stat", "--td-level", level, "-o", r, NULL}, "500", "4");
    csv_read(&csv, r);
    whole_is_true(&csv, 0.7);
    return 0;
}
