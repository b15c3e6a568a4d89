/* truth.h: the true share of each node of a core's tree on the emulated machine, of code that runs at mixes which the program has
 * set (vm/mix.h). What a core counts adds up over several mixes; shares are what the published formula makes of the sums. Most
 * formulas give the mix back; where events count at made-up rates, or a formula corrects by other events, they do not. */
#ifndef TRUTH_H
#define TRUTH_H
#include "perf.h"
#include "pmu.h"

/* Shares of all slots, by the ids of their nodes; then events in a cycle, of which formulas take quotients. */
enum { SHARES = TD_NODE_BACKEND_CORE_BOUND + 1, MOST_NODES = 24 };
enum { COUNT_MISPREDICTS = SHARES, COUNT_CLEARS, COUNT_STALLS_FRONTEND, COUNT_STALLS_BACKEND, COUNT_STALLS, COUNT_RETIRED,
       COUNT_DISPATCHED, COUNT_WAITS, COUNT_WAITS_FOR_LOADS, RATES };

/* A mix that this core can be set to, and what the core counts meanwhile. */
struct known_mix {
    struct vm_mix mix;
    uint64_t phase; /* its number, by which a thread sets it */
    double slots_per_instruction, rate[RATES];
};

/* What a core counts in stretches of several mixes. */
struct node_truth {
    double slots, rate[RATES];
};

/* A core, known by a part of td_info.core. `least`: changes a mix so that no node is below zero. `counts`: what is not as the
 * mix says. `formula`: shares that are no sum. `ratio_of`: the root that divides among its children as two events do. */
struct core_truth {
    const char *name;
    void (*least)(struct vm_mix *mix, const struct td_info *info);
    void (*counts)(struct known_mix *known, uint32_t slots_per_cycle);
    void (*formula)(const double *rate, double *share, const struct td_info *info);
    uint32_t ratio_of;
};

#if defined(__x86_64__)
/* The machine's property smt-contention, as a share; counted by perf events, while the backend has slots enough. */
static double contention;
static inline void contention_is_known(const struct td_info *info)
{
    struct perf_group group = {.count = 0};
    uint64_t slots, cycles;
    const int fd = add_event(&group, in_user_mode(event_of(PERF_TYPE_RAW, 0x1000060a0)), 0, -1, -1);
    const int clock = add_event(&group, in_user_mode(event_of(PERF_TYPE_RAW, 0x76)), 0, -1, -1);
    mix_is((struct vm_mix){.retiring = 1});
    group_runs(&group);
    work(1000000);
    group_stops(&group);
    CHECK(read(fd, &slots, sizeof slots) == sizeof slots && read(clock, &cycles, sizeof cycles) == sizeof cycles);
    group_ends(&group);
    contention = round(64.0 * (double)slots / (double)cycles / info->slots_per_cycle) / 64;
}

/* What an event that is none of the emulated machine's topdown events counts in a cycle of an instruction (event_rate in
 * vm/qemu-intel-pmu.patch). */
static inline double made_up(uint32_t event, uint32_t umask)
{
    return ((event * 2654435761u) ^ (umask * 40503u)) % 613 / 1024.0;
}

/* Bad speculation is what was issued, and recovery, less retiring: 27/64 in all. */
static inline void least_of_skylake(struct vm_mix *mix, const struct td_info *info)
{
    (void)info;
    mix->retiring %= 27, mix->frontend %= 37;
}

static inline void counts_of_skylake(struct known_mix *known, uint32_t slots_per_cycle)
{
    double *rate = known->rate;
    const double bad = made_up(0x0e, 1) / slots_per_cycle + made_up(0x0d, 1) - rate[TD_NODE_RETIRING];
    rate[TD_NODE_BAD_SPECULATION] = bad;
    rate[TD_NODE_BACKEND_BOUND] = 1 - rate[TD_NODE_RETIRING] - bad - rate[TD_NODE_FRONTEND_BOUND];
    rate[COUNT_MISPREDICTS] = floor(known->mix.bad * known->mix.mispredicts / 8.0) / 1024;
    rate[COUNT_CLEARS] = made_up(0xc3, 1);
}

static inline void counts_of_tremont(struct known_mix *known, uint32_t slots_per_cycle)
{
    double *rate = known->rate;
    rate[TD_NODE_RETIRING] = made_up(0xc2, 0) / slots_per_cycle;
    rate[TD_NODE_FRONTEND_BOUND] = made_up(0x71, 0) / slots_per_cycle;
    rate[TD_NODE_BACKEND_BOUND] = made_up(0x74, 0) / slots_per_cycle;
    rate[TD_NODE_BAD_SPECULATION] = 1 - rate[TD_NODE_RETIRING] - rate[TD_NODE_FRONTEND_BOUND] - rate[TD_NODE_BACKEND_BOUND];
}

/* Backend bound has five slots for each INT_MISC.CLEARS_COUNT, which bad speculation has not. */
static inline void least_of_sunny(struct vm_mix *mix, const struct td_info *info)
{
    const unsigned clears = 1 + (unsigned)(64 * 5 * made_up(0x0d, 1) / info->slots_per_cycle);
    CHECK(clears <= 24);
    mix->retiring %= 20, mix->frontend %= 20;
    mix->bad = clears + mix->bad % (64 - clears - mix->retiring - mix->frontend);
}

static inline void counts_of_sunny(struct known_mix *known, uint32_t slots_per_cycle)
{
    const double clears = 5 * made_up(0x0d, 1) / slots_per_cycle;
    known->rate[TD_NODE_BAD_SPECULATION] -= clears;
    known->rate[TD_NODE_BACKEND_BOUND] += clears;
}

/* Slots of the other thread are from the backend's part. */
static inline void counts_of_zen(struct known_mix *known, uint32_t slots_per_cycle)
{
    double *rate = known->rate;
    (void)slots_per_cycle;
    rate[TD_NODE_SMT_CONTENTION] = fmin(contention, rate[TD_NODE_BACKEND_BOUND]);
    rate[TD_NODE_BACKEND_BOUND] -= rate[TD_NODE_SMT_CONTENTION];
}

/* The same where the core runs no other thread, as the machine says: what goes to one is the backend's. */
static inline void counts_of_zen_alone(struct known_mix *known, uint32_t slots_per_cycle)
{
    (void)slots_per_cycle;
    double *rate = known->rate;
    rate[TD_NODE_SMT_CONTENTION] = fmin(contention, rate[TD_NODE_BACKEND_BOUND]);
    rate[COUNT_WAITS] = rate[TD_NODE_BACKEND_BOUND] - rate[TD_NODE_SMT_CONTENTION];
    rate[COUNT_WAITS_FOR_LOADS] = rate[COUNT_WAITS] * known->mix.memory / 16;
}

/* Backend bound divides as the cycles that it waits do. */
static inline void formula_of_zen_alone(const double *rate, double *share, const struct td_info *info)
{
    const double backend = share[TD_NODE_BACKEND_BOUND];
    (void)info;
    share[TD_NODE_MEMORY_BOUND] = rate[COUNT_WAITS] > 0 ? backend * rate[COUNT_WAITS_FOR_LOADS] / rate[COUNT_WAITS] : 0;
    share[TD_NODE_CORE_BOUND] = backend - share[TD_NODE_MEMORY_BOUND];
}
#endif

/* Bad speculation divides as two events do. */
static inline void divides_by_events(const double *rate, double *share, const struct td_info *info)
{
    const double bad = share[TD_NODE_BAD_SPECULATION], events = rate[COUNT_MISPREDICTS] + rate[COUNT_CLEARS];
    (void)info;
    share[TD_NODE_BRANCH_MISPREDICTS] = events > 0 ? bad * rate[COUNT_MISPREDICTS] / events : 0;
    share[TD_NODE_MACHINE_CLEARS] = bad - share[TD_NODE_BRANCH_MISPREDICTS];
}

#if defined(__x86_64__)
static const struct core_truth CORE_TRUTHS[] = {
    {"Skylake", least_of_skylake, counts_of_skylake, divides_by_events, TD_NODE_BAD_SPECULATION},
    {"Sunny", least_of_sunny, counts_of_sunny, NULL, TD_NODE_NONE},
    {"Tremont", NULL, counts_of_tremont, NULL, TD_NODE_NONE},
    {", bad speculation", NULL, NULL, NULL, TD_NODE_BAD_SPECULATION},
    {", backend bound", NULL, counts_of_zen_alone, formula_of_zen_alone, TD_NODE_BACKEND_BOUND},
    {"Zen", NULL, counts_of_zen, NULL, TD_NODE_NONE},
    {"", NULL, NULL, NULL, TD_NODE_NONE}, /* E-cores, and P-cores by counters: the mix itself */
};
#endif

#if defined(__aarch64__)
enum { EVENT_CYCLES = 0x11, EVENT_MISPREDICTS = 0x10, EVENT_FRONTEND = 0x3e, EVENT_BACKEND = 0x3d, EVENT_STALLS = 0x3f,
       EVENT_RETIRED = 0x3a, EVENT_DISPATCHED = 0x3b, EVENT_FRONTEND_CYCLES = 0x23 };

static inline int is_v1(const struct td_info *info) { return strncmp(info->core, "Neoverse V1", 11) == 0; }
/* Neoverse N3 and V3: cycles of flushes take the place of mispredicts; the machine has one for each. */
static inline int is_by_flushes(const struct td_info *info)
{
    return strncmp(info->core, "Neoverse N3", 11) == 0 || strncmp(info->core, "Neoverse V3", 11) == 0;
}
static inline int is_ampere(const struct td_info *info) { return strncmp(info->core, "AmpereOne", 9) == 0; }
static inline int is_early(const struct td_info *info) { return strstr(info->core, "before r0p3") != NULL; }

/* How often an event happens in so many instructions of this phase. The machine is asked by a register of the CPU, which another thread may
 * have set in between: so until it says the same twice. */
static inline uint64_t told_rate(uint64_t phase, uint64_t event)
{
    uint64_t rate = vm_rate_get(phase, event), again;
    while ((again = vm_rate_get(phase, event)) != rate)
        rate = again;
    return rate;
}

/* How often an event happens in a cycle of this phase. */
static inline double rate(uint64_t phase, uint64_t event)
{
    const uint64_t rate = told_rate(phase, event);
    CHECK(rate != UINT64_MAX);
    return (double)rate / (double)told_rate(phase, EVENT_CYCLES);
}

/* Something retires, or a cycle would have no instruction, and no more than the phase can be told. */
static inline void least_of_arm64(struct vm_mix *mix, const struct td_info *info)
{
    (void)info;
    mix->retiring += mix->retiring == 0;
    mix->retiring -= mix->retiring > 56 ? 8 : 0;
    if (mix->retiring + mix->bad + mix->frontend > 64)
        mix->bad -= mix->bad > 0 ? 1 : 0, mix->frontend = 64 - mix->retiring - mix->bad;
}

/* The cycles of mispredicts are taken from the frontend's slots and the backend's: there are as many. */
static inline double to_frontend(const struct td_info *info) { return is_v1(info) ? 4 : 1; }
static inline double to_backend(const struct td_info *info) { return is_v1(info) || is_by_flushes(info) ? 0 : 3; }
static inline void least_of_neoverse(struct vm_mix *mix, const struct td_info *info)
{
    least_of_arm64(mix, info);
    const double backend = 64.0 - mix->retiring - mix->bad - mix->frontend;
    for (; mix->mispredicts > 0; mix->mispredicts--) {
        const double cycles = info->slots_per_cycle * mix->bad * mix->mispredicts / 16.0 / 20;
        /* (rates are whole numbers: a little has to be left) */
        if (to_frontend(info) * cycles < mix->frontend - 0.01 && to_backend(info) * (cycles + 0.01) <= backend)
            break;
    }
}

/* The rest of backend bound is another resource's (qemu-arm-pmu.patch). */
static inline void counts_of_hip08(struct known_mix *known, uint32_t slots_per_cycle)
{
    (void)slots_per_cycle;
    known->rate[TD_NODE_RESOURCE_BOUND] = known->rate[TD_NODE_CORE_BOUND] / 4;
    known->rate[TD_NODE_CORE_BOUND] *= 3.0 / 4;
}

static inline void counts_of_neoverse(struct known_mix *known, uint32_t slots_per_cycle)
{
    (void)slots_per_cycle;
    known->rate[COUNT_MISPREDICTS] = rate(known->phase, EVENT_MISPREDICTS);
    known->rate[COUNT_STALLS_FRONTEND] = rate(known->phase, EVENT_FRONTEND);
    known->rate[COUNT_STALLS_BACKEND] = rate(known->phase, EVENT_BACKEND);
    known->rate[COUNT_STALLS] = rate(known->phase, EVENT_STALLS);
    known->rate[COUNT_RETIRED] = rate(known->phase, EVENT_RETIRED);
    known->rate[COUNT_DISPATCHED] = rate(known->phase, EVENT_DISPATCHED);
}

/* perf's formulas (tools/perf/pmu-events/arch/arm64), with STALL_SLOT as they have it. */
static inline void formula_of_neoverse(const double *rate, double *share, const struct td_info *info)
{
    const double slots = info->slots_per_cycle, m = rate[COUNT_MISPREDICTS], early = is_early(info) ? 1 : 0;
    const double free_slots = 1 - (rate[COUNT_STALLS] - early) / slots, part = rate[COUNT_RETIRED] / rate[COUNT_DISPATCHED];
    share[TD_NODE_RETIRING] = part * free_slots;
    share[TD_NODE_BAD_SPECULATION] = (1 - part) * free_slots + (to_frontend(info) + to_backend(info)) * m;
    share[TD_NODE_FRONTEND_BOUND] = (rate[COUNT_STALLS_FRONTEND] - early) / slots - to_frontend(info) * m;
    share[TD_NODE_BACKEND_BOUND] = rate[COUNT_STALLS_BACKEND] / slots - to_backend(info) * m;
}

static const struct core_truth CORE_TRUTHS[] = {
    {"hip08", least_of_arm64, counts_of_hip08, NULL, TD_NODE_BAD_SPECULATION},
    {"AmpereOne", least_of_arm64, NULL, NULL, TD_NODE_BAD_SPECULATION},
    {"", least_of_neoverse, counts_of_neoverse, formula_of_neoverse, TD_NODE_NONE},
};

/* Phases of a thread: some in turn, and some that stay. */
enum { FIRST_PHASE = 6, PHASES_IN_TURN = 15, PHASES_OF_A_THREAD = 19, MOST_THREADS = 13 };
static inline uint64_t phase_of_this_thread(int kept)
{
    static unsigned threads;
    static __thread unsigned thread, next;
    if (thread == 0)
        thread = 1 + __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED) % MOST_THREADS;
    return FIRST_PHASE + (thread - 1) * PHASES_OF_A_THREAD + (kept < 0 ? next++ % PHASES_IN_TURN : PHASES_IN_TURN + (unsigned)kept);
}

/* AmpereOne counts cycles in which the frontend delivers nothing, and in one of 16 cycles that it did, which it did not. */
static inline void miscounts_frontend(const struct known_mix *known, uint64_t cycles, uint32_t slots_per_cycle)
{
    const double latency = known->mix.frontend / 64.0 * known->mix.latency / 16;
    vm_rate_set(known->phase, EVENT_FRONTEND_CYCLES, (uint64_t)llround((double)cycles * latency) + cycles / 16);
    vm_rate_set(known->phase, EVENT_FRONTEND, told_rate(known->phase, EVENT_FRONTEND) + slots_per_cycle * (cycles / 16));
}

/* The mix becomes a phase; of the core that counts a stalled slot too many in each cycle, so. */
static inline void define_phase(struct known_mix *known, const struct td_info *info, int kept)
{
    const struct vm_mix mix = known->mix;
    const uint64_t phase = known->phase = phase_of_this_thread(kept);
    vm_phase_define(phase, mix.retiring, mix.bad, mix.frontend, mix.mispredicts, mix.latency, mix.memory, 4, 4, 4);
    const uint64_t cycles = told_rate(phase, EVENT_CYCLES);
    if (is_early(info)) {
        vm_rate_set(phase, EVENT_FRONTEND, told_rate(phase, EVENT_FRONTEND) + cycles);
        vm_rate_set(phase, EVENT_STALLS, told_rate(phase, EVENT_STALLS) + cycles);
    }
    if (is_ampere(info))
        miscounts_frontend(known, cycles, info->slots_per_cycle);
    known->slots_per_instruction *= (double)cycles / 65536;
}
#else
static inline void define_phase(struct known_mix *known, const struct td_info *info, int kept)
{
    (void)info, (void)kept;
    known->phase = mix_number(known->mix);
}
#endif

static inline const struct core_truth *core_truth(const struct td_info *info)
{
    const struct core_truth *core = CORE_TRUTHS;
    while (strstr(info->core, core->name) == NULL)
        core++;
    return core;
}

/* The mix itself, under the names that any core has for its parts. */
static inline void shares_of_mix(struct vm_mix mix, double *share)
{
    static const struct {
        uint32_t id[3];
    } parts[8] = {
        {{TD_NODE_HEAVY_OPERATIONS, TD_NODE_MICROCODE}},        {{TD_NODE_LIGHT_OPERATIONS, TD_NODE_FASTPATH}},
        {{TD_NODE_BRANCH_MISPREDICTS}},                         {{TD_NODE_MACHINE_CLEARS, TD_NODE_PIPELINE_RESTARTS}},
        {{TD_NODE_FETCH_LATENCY, TD_NODE_IFETCH_LATENCY}},      {{TD_NODE_FETCH_BANDWIDTH, TD_NODE_IFETCH_BANDWIDTH}},
        {{TD_NODE_MEMORY_BOUND, TD_NODE_RESOURCE_BOUND}},       {{TD_NODE_CORE_BOUND}},
    };
    const struct truth truth = truth_of(mix);
    memcpy(&share[TD_NODE_RETIRING], truth.l1, sizeof truth.l1);
    for (int k = 0; k < 8; k++)
        for (const uint32_t *id = parts[k].id; *id != TD_NODE_NONE; id++)
            share[*id] = truth.l2[k];
}

/* This mix, or what is left of it where the core's nodes would be below zero. It holds until this thread has made a dozen others, or
 * (`kept`: 0 to 3) another with the same number. */
static inline struct known_mix known_mix(struct vm_mix mix, const struct td_info *info, int kept)
{
    const struct core_truth *core = core_truth(info);
    struct known_mix known = {.slots_per_instruction = info->slots_per_cycle};
    if (core->least != NULL)
        core->least(&mix, info);
    known.mix = mix;
    define_phase(&known, info, kept);
    shares_of_mix(mix, known.rate);
    if (core->counts != NULL)
        core->counts(&known, info->slots_per_cycle);
    return known;
}

static inline struct known_mix random_known_mix(uint64_t *seed, const struct td_info *info)
{
    return known_mix(random_mix(seed), info, -1);
}

/* This thread's code divides so from now on, or but for a few instructions. */
static inline __attribute__((always_inline)) void runs_at(const struct known_mix *known)
{
#if defined(__x86_64__)
    __asm__ volatile(MIX_IN_PLACE("%0") : : "r"(known->phase) : "rax", "rcx", "rdi", "rsi", "r11", "memory");
#else
    vm_phase_set(known->phase);
#endif
}

static inline void add_stretch(struct node_truth *truth, const struct known_mix *known, double slots)
{
    truth->slots += slots;
    for (int k = 0; k < RATES; k++)
        truth->rate[k] += known->rate[k] * slots;
}

/* Shares of all that was added, by the nodes' ids. */
static inline void node_shares(const struct node_truth *truth, const struct td_info *info, double *share)
{
    const struct core_truth *core = core_truth(info);
    double rate[RATES];
    for (int k = 0; k < RATES; k++)
        rate[k] = truth->rate[k] / truth->slots;
    memcpy(share, rate, SHARES * sizeof *share);
    if (core->formula != NULL)
        core->formula(rate, share, info);
}

/* Shares of one mix. */
static inline void shares_of_known(const struct known_mix *known, const struct td_info *info, double *share)
{
    struct node_truth truth = {0};
    add_stretch(&truth, known, 1);
    node_shares(&truth, info, share);
}

/* Whose share is a ratio of two events, which may be rare: of a short region it may be far off. */
static inline int is_ratio(const struct td_node *node, const struct td_info *info)
{
    return node->parent != TD_NODE_NONE && node->parent == core_truth(info)->ratio_of;
}

/* Such a ratio is not measured if there was no event: of less than so many slots of the root there may be none. (AMD's backend does
 * not wait in those of the other thread.) */
enum { SLOTS_OF_AN_EVENT = 4000 };
static inline int may_be_unmeasured(const struct td_node *node, const struct td_info *info, const double *share, double slots)
{
    const double others = node->parent == TD_NODE_BACKEND_BOUND ? share[TD_NODE_SMT_CONTENTION] : 0;
    return is_ratio(node, info) && (share[node->parent] - others) * slots < SLOTS_OF_AN_EVENT;
}
#endif
