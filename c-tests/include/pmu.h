/* pmu.h: what the tests share that need real counters (x86-64 only). The truth is known on the emulated machine,
 * where the program itself says how its slots divide (vm/mix.h). */
#ifndef PMU_H
#define PMU_H
#include "check.h"
#include "vm/mix.h"
#include <sched.h>
#include <sys/stat.h>

static inline int exists(const char *path)
{
    struct stat unused;
    return stat(path, &unused) == 0;
}

/* Whether the kernel shows topdown counters: the test of what td_open says, so not by asking td_open. */
static inline int pmu_there(void)
{
    return exists("/sys/bus/event_source/devices/cpu/events/slots") ||
           exists("/sys/bus/event_source/devices/cpu_core/events/slots");
}

static inline int has_word(const char *path, const char *word)
{
    char line[4096];
    int found = 0;
    FILE *file = fopen(path, "r");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL)
        found = strstr(line, word) != NULL;
    if (file != NULL)
        fclose(file);
    return found;
}

/* The emulated machine calls itself QEMU and, unlike a guest of KVM, hides that it is a virtual one. */
static inline int emulated(void)
{
    return has_word("/sys/class/dmi/id/sys_vendor", "QEMU") && !has_word("/proc/cpuinfo", " hypervisor");
}

static inline void needs_known_mix(void)
{
    if (!emulated())
        SKIP("the true mix is known on the emulated machine only");
}

static inline struct td_options options_of(uint32_t flags, uint32_t level)
{
    struct td_options options;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.flags = flags;
    options.level = level;
    return options;
}

/* Whether user space may execute RDPMC: 0 nobody, 1 who has an event mapped. */
static inline void rdpmc_is(int value)
{
    const char *file = exists("/sys/bus/event_source/devices/cpu_core/rdpmc") ? "/sys/bus/event_source/devices/cpu_core/rdpmc"
                                                                              : "/sys/bus/event_source/devices/cpu/rdpmc";
    FILE *out = fopen(file, "w");
    if (out == NULL)
        SKIP("%s cannot be written here", file);
    CHECK(fprintf(out, "%d\n", value) > 0);
    CHECK_EQ(fclose(out), 0);
}

/* The kernel's NMI watchdog counts cycles of each CPU, or not. */
static inline void watchdog_is(int on)
{
    FILE *file = fopen("/proc/sys/kernel/nmi_watchdog", "w");
    CHECK(file != NULL && fprintf(file, "%d\n", on) > 0);
    CHECK_EQ(fclose(file), 0);
}

/* Whether two threads share a core. AMD's parts of bad speculation and of backend bound are refused then: no counter tells whose slots were
 * lost. */
static inline int smt_is_on(void)
{
    FILE *file = fopen("/sys/devices/system/cpu/smt/active", "r");
    int on = 0;
    CHECK(file == NULL || (fscanf(file, "%d", &on) == 1 && fclose(file) == 0));
    return on;
}

/* The test in either order, each in a process of its own: handlers of signals are installed once a process. */
static inline void in_both_orders(int argc, char **argv, void (*test)(int other_first))
{
    const pid_t child = argc > 1 ? 0 : fork();
    if (argc == 1 && child == 0) {
        execl(argv[0], argv[0], "other first", (char *)NULL);
        _exit(1);
    }
    if (argc == 1)
        child_is_well(child);
    test(argc > 1);
}

/* These options, with the source that the variable TEST_SOURCE names, if it does: so tests are run once for each. */
static inline struct td_options with_source(const struct td_options *options)
{
    struct td_options chosen = options != NULL ? *options : options_of(0, 0);
    const char *source = getenv("TEST_SOURCE");
    const int chosen_already = chosen.source || chosen.core_type || chosen.flags & (TD_FLAG_REGISTERS | TD_FLAG_COUNTERS | TD_FLAG_E_CORES);
    if (source != NULL && !chosen_already)
        chosen.flags |= strcmp(source, "counters") == 0 ? TD_FLAG_COUNTERS
                        : strcmp(source, "bare") == 0   ? TD_FLAG_REGISTERS | TD_FLAG_BARE
                                                        : TD_FLAG_REGISTERS;
    return chosen;
}

/* A handle on real counters. Skips where there are none, or where they are forbidden; on the emulated machine
 * nothing is forbidden, so there that is a failure. */
static inline td_t *measured(const struct td_options *options)
{
    td_t *td = NULL;
    char text[1024] = "";
    const struct td_options chosen = with_source(options);
    int code = td_open(&td, &chosen);
    if (code == 0)
        return td;
    td_last_error(text, sizeof text);
    if (code == -ENODEV && !pmu_there())
        SKIP("no topdown counters: %s", text);
    if ((code == -EACCES || code == -EPERM || code == -ENOSYS) && !emulated())
        SKIP("counters forbidden: %s", text);
    FAIL("td_open: %d (%s): %s", code, td_strerror(code), text);
    return NULL;
}

/* A handle on general counters. Skips where the core is none whose events are known. */
static inline td_t *counted(void)
{
    td_t *td = NULL;
    char text[1024] = "";
    const struct td_options options = options_of(TD_FLAG_COUNTERS, 0);
    const int code = td_open(&td, &options);
    td_last_error(text, sizeof text);
    if (code == -ENODEV && strstr(text, "knows no such events"))
        SKIP("%s", text);
    if (code != 0)
        FAIL("td_open: %d: %s", code, text);
    return td;
}

/* Shares of all slots, in the order of td_l1 and td_l2. */
struct truth {
    double l1[4], l2[8];
};

static inline struct truth truth_of(struct vm_mix mix)
{
    struct truth truth;
    const unsigned parent[4] = {mix.retiring, mix.bad, mix.frontend, 64 - mix.retiring - mix.bad - mix.frontend};
    const unsigned part[4] = {mix.heavy, mix.mispredicts, mix.latency, mix.memory};
    for (int k = 0; k < 4; k++) {
        truth.l1[k] = parent[k] / 64.0;
        truth.l2[2 * k] = truth.l1[k] * part[k] / 16.0;
        truth.l2[2 * k + 1] = truth.l1[k] - truth.l2[2 * k];
    }
    return truth;
}

/* Four mixes that differ in every share. */
static const struct vm_mix MIXES[4] = {
    {40, 8, 8, 4, 12, 8, 8},
    {8, 32, 8, 8, 4, 12, 4},
    {8, 4, 40, 2, 8, 6, 12},
    {4, 4, 8, 15, 1, 3, 14},
};

/* any mix that can be asked for; `seed` as that of next_random */
static inline struct vm_mix random_mix(uint64_t *seed)
{
    struct vm_mix mix;
    mix.retiring = (unsigned)(next_random(seed) % 64);
    mix.bad = (unsigned)(next_random(seed) % (64 - mix.retiring));
    mix.frontend = (unsigned)(next_random(seed) % (64 - mix.retiring - mix.bad));
    mix.heavy = (unsigned)(next_random(seed) % 16);
    mix.mispredicts = (unsigned)(next_random(seed) % 16);
    mix.latency = (unsigned)(next_random(seed) % 16);
    mix.memory = (unsigned)(next_random(seed) % 16);
    return mix;
}

/* Whether the published metrics of this core (td_info.core) take INT_MISC.UOP_DROPPING. */
static inline int core_drops_slots(const char *core)
{
    return strstr(core, "Sunny") != NULL || strstr(core, "Golden") != NULL || strstr(core, "Redwood") != NULL;
}

/* Ice Lake's published backend bound has 5 slots for each INT_MISC.CLEARS_COUNT, which counts a made-up number unless it is told. */
enum { CLEARS_COUNT = 0x104010d };
#if defined(__x86_64__)
static inline int is_ice_lake(void)
{
    static int known; /* 1: no, 2: yes */
    if (known == 0) {
        unsigned a = 1, b, c = 0, d;
        __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
        const unsigned family = a >> 8 & 15, model = (a >> 4 & 15) | (a >> 12 & 0xf0);
        known = family == 6 && (model == 0x6a || model == 0x6c || model == 0x7d || model == 0x7e) ? 2 : 1;
    }
    return known == 2;
}
#endif

/* This thread's code divides like this from now on, warped so (vm/mix.h): one instruction is one cycle. (There is room for rates of 64 mixes:
 * those of the last one are forgotten.) */
static inline void mix_at(struct vm_mix mix, unsigned warp)
{
#if defined(__x86_64__)
    if (is_ice_lake())
        vm_rates_clear();
    vm_mix_set(mix, warp, 0, 0);
    if (is_ice_lake())
        CHECK(vm_rate_set(CLEARS_COUNT, 0, VM_PER_CYCLE));
#else
    vm_mix_set(mix, warp, 0, 0);
#endif
}
static inline void mix_is(struct vm_mix mix) { mix_at(mix, 0); }

/* Whether td_decode_l2 has all its shares of this core: others' level 2 has other nodes, or not all of them. */
static inline int has_l2(const struct td_info *info)
{
    return info->level == 2 && strstr(info->core, "mont") == NULL && strstr(info->core, "Zen") == NULL &&
           strstr(info->core, "Skylake") == NULL;
}
/* What `mix_is` sets for this mix, and the same by four instructions in place, which are at the mix before. */
static inline uint64_t mix_number(struct vm_mix m)
{
    return (uint64_t)0x2a << 41 | (uint64_t)m.retiring << 34 | (uint64_t)m.bad << 28 | (uint64_t)m.frontend << 22 |
           m.heavy << 18 | m.mispredicts << 14 | m.latency << 10 | m.memory << 6;
}
#define MIX_IN_PLACE(number) "mov $158, %%eax\n\tmov $0x1001, %%edi\n\tmov " number ", %%rsi\n\tsyscall\n\t"

/* What was decoded is true: within its own bound, and within `within`. */
static inline void l1_is(const struct td_l1 *l1, struct vm_mix mix, double within)
{
    const struct truth truth = truth_of(mix);
    double share[4];
    l1_array(l1, share);
    for (int k = 0; k < 4; k++) {
        CHECK_NEAR(share[k], truth.l1[k], l1->error);
        CHECK_NEAR(share[k], truth.l1[k], within);
    }
}

static inline void l2_is(const struct td_l2 *l2, struct vm_mix mix, double within)
{
    const struct truth truth = truth_of(mix);
    double share[8];
    l2_array(l2, share);
    for (int k = 0; k < 8; k++) {
        CHECK_NEAR(share[k], truth.l2[k], l2->error);
        CHECK_NEAR(share[k], truth.l2[k], within);
    }
}

/* the first CPU in a list of sysfs; -1 if there is no such list */
static inline int first_cpu(const char *path)
{
    int cpu = -1;
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return -1;
    if (fscanf(file, "%d", &cpu) != 1)
        cpu = -1;
    fclose(file);
    return cpu;
}

/* the first P-core of a hybrid CPU, the first E-core; -1 if it is not one */
static inline int p_core(void) { return first_cpu("/sys/bus/event_source/devices/cpu_core/cpus"); }
static inline int e_core(void) { return first_cpu("/sys/bus/event_source/devices/cpu_atom/cpus"); }

/* The calling thread may run on every CPU, from now on. */
static inline void may_run_anywhere(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++)
        CPU_SET((unsigned)cpu, &set);
    CHECK_EQ(sched_setaffinity(0, sizeof set, &set), 0);
}

/* A thread (0: this one) runs on this CPU only, from now on. */
static inline void move_to(pid_t thread, int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    CHECK_EQ(sched_setaffinity(thread, sizeof set, &set), 0);
}

static inline struct td_info info_of(td_t *td)
{
    struct td_info info;
    td_must(td_get_info(td, &info));
    return info;
}

/* Whether it counts general counters. */
static inline int takes_counters(td_t *td) { return info_of(td).counters > 0; }

/* control pages of perf events that are mapped; none where /proc is hidden */
static inline int control_pages(void)
{
    char line[512];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        count += strstr(line, "perf_event") != NULL;
    if (maps != NULL)
        fclose(maps);
    return count;
}
#endif
