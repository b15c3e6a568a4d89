/* pmu_beside LEAST MOST: what a handle says of itself beside whatever the caller has put on the counters (perf stat --topdown,
 * say) is right, and it runs for between LEAST and MOST of the time. MOST 0: by registers it cannot be opened, and says so; by default
 * general counters count level 1, all the time.
 * Without arguments, beside others of its own: another process on the same CPU, another copy of the library in the same
 * thread, and events that hold every general counter and the one for cycles, as the NMI watchdog does. */
#include "competing.h"
#include <dlfcn.h>
#include <sys/wait.h>

enum { REGION = 2000000 };
static const uint32_t FLAGS[] = {0, TD_FLAG_NO_RDPMC};

static void runs(uint32_t flags, double least, double most)
{
    const struct td_options options = options_of(flags, 0), by_registers = options_of(flags | TD_FLAG_REGISTERS, 0);
    td_t *td = NULL;
    if (most == 0) {
        CHECK_EQ(td_open(&td, &by_registers), TD_ENOTCOUNTING);
        CHECK(last_error_with("perf stat -a"));
        least = 0.99, most = 1;
        td = measured(&options);
        CHECK_EQ(info_of(td).level, 1);
        CHECK(strstr(info_of(td).note, flags == 0 ? "others hold" : "TD_FLAG_NO_RDPMC") != NULL);
    } else {
        td = measured(&options);
    }
    const struct td_l1 l1 = regions(td, 40, REGION);
    printf("running %.3f, error %.3f\n", l1.running, l1.error);
    CHECK(l1.running >= least && l1.running <= most);
    CHECK_NEAR((double)l1.slots / info_of(td).slots_per_cycle / (40.0 * REGION), l1.running, 0.05);
    td_close(td);
}

/* a process is taken off the CPU with its counters: neither notices the other */
static void beside_another_process(void)
{
    int status;
    const pid_t other = fork();
    CHECK(other >= 0);
    for (int k = 0; k < 2; k++)
        runs(FLAGS[k], 0.99, 1);
    if (other == 0)
        exit(0);
    CHECK_EQ(waitpid(other, &status, 0), other);
    CHECK_EQ(status, 0);
}

static void copy(const char *from, const char *to)
{
    char buffer[1 << 16];
    size_t got;
    FILE *in = fopen(from, "r"), *out = fopen(to, "w");
    CHECK(in != NULL && out != NULL);
    while ((got = fread(buffer, 1, sizeof buffer, in)) > 0)
        CHECK_EQ(fwrite(buffer, 1, got, out), got);
    fclose(in);
    CHECK_EQ(fclose(out), 0);
}

/* As when a plugin brings its own, which reads registers, too: they take turns. */
static void beside_another_copy(void)
{
    char path[] = "/tmp/libtopdown-XXXXXX";
    const int unused = mkstemp(path);
    Dl_info here;
    struct td_sample first, last, now;
    struct td_l1 l1;
    const struct td_options options = options_of(TD_FLAG_REGISTERS, 0);
    td_t *td = measured(&options), *other = NULL;
    CHECK(dladdr((void *)(uintptr_t)td_open, &here) != 0);
    close(unused);
    copy(here.dli_fname, path);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    unlink(path);
    if (library == NULL)
        FAIL("dlopen: %s", dlerror());
#define OTHERS(function) ((__typeof__(&function))(uintptr_t)dlsym(library, #function))
    const __typeof__(&td_read) other_read = OTHERS(td_read);
    CHECK(other_read != NULL && other_read != td_read);
    CHECK_EQ(OTHERS(td_open)(&other, &options), 0);
    CHECK_EQ(other_read(other, &first), 0);
    last = first;
    double running = 0;
    for (int i = 0; i < 5; i++) {
        l1 = regions(td, 8, REGION);
        running += l1.running / 5;
        CHECK_EQ(other_read(other, &now), 0);
        goes_on(&last, &now);
        last = now;
    }
    CHECK_EQ(td_decode_l1(&first, &last, &l1), 0);
    printf("running %.3f and %.3f\n", running, l1.running);
    CHECK_NEAR(running, 0.5, 0.15);
    CHECK_NEAR(running + l1.running, 1, 0.1);
    const struct truth truth[] = {truth_of(MIXES[0]), truth_of(MIXES[1]), truth_of(MIXES[2]), truth_of(MIXES[3])};
    double share[4];
    l1_array(&l1, share);
    for (int k = 0; k < 4; k++)
        CHECK_NEAR(share[k], (truth[0].l1[k] + truth[1].l1[k] + truth[2].l1[k] + truth[3].l1[k]) / 4, l1.error);
    OTHERS(td_close)(other);
    work(10 * REGION);
    l1 = regions(td, 4, REGION);
    CHECK_NEAR(l1.running, 1, 0.01);
    td_close(td);
}

/* SLOTS and PERF_METRICS are no general counters: who holds those does not compete */
static void beside_full_counters(int cpu)
{
    struct perf_group group = {{0}, 0};
    add_event(&group, pinned_event(0x3c), -1, cpu, -1); /* the watchdog's: cycles, pinned */
    group_runs(&group);
    runs(0, 0.99, 1);
    runs(TD_FLAG_NO_RDPMC, 0.99, 1);
    for (int i = 0; i < 12; i++) /* more than there can be; those that find no place go to an error state */
        add_event(&group, pinned_event(0xc5), -1, cpu, -1);
    group_runs(&group);
    runs(0, 0.99, 1);
    group_ends(&group);
}

int main(int argc, char **argv)
{
    const int cpu = stay_on_a_cpu();
    if (argc == 3) {
        needs_known_mix();
        for (int k = 0; k < 2; k++)
            runs(FLAGS[k], atof(argv[1]), atof(argv[2]));
        return 0;
    }
    td_close(measured(NULL));
    needs_known_mix();
    beside_another_process();
    beside_another_copy();
    beside_full_counters(cpu);
    return 0;
}
