/* A signal handler runs at each instruction of td_sum_begin and td_sum_end, as a breakpoint is there, and executes the very sum
 * that it interrupts, or leaves by siglongjmp: each execution whose end returns 0 is in the sum, with all of its slots, and the
 * truth is in the intervals of all nodes.
 * needs: counters or other-core */
#define _GNU_SOURCE
#include "truth.h"
#include <dlfcn.h>
#include <link.h>
#include <linux/hw_breakpoint.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ioctl.h>

enum { REGION = 20000, OF_HANDLER = REGION / 50, BEFORE = 6 };
enum { EXECUTES, LEAVES, ACTIONS };
/* struct perf_event_attr.sigtrap and .remove_on_exec, which not every libc's header has; bits from that of `disabled` */
enum { REMOVE_ON_EXEC = 36, SIGTRAP_BIT = 37 };

static td_t *td;
static struct td_sum sum;
static int breakpoint, action, ended, told;
static volatile int hits;
static sigjmp_buf out;

static void on_trap(int signal)
{
    CHECK_EQ(signal, SIGTRAP);
    CHECK_EQ(ioctl(breakpoint, PERF_EVENT_IOC_DISABLE, 0), 0);
    hits++;
    if (action == LEAVES)
        siglongjmp(out, 1);
    td_must(td_sum_begin(td, &sum));
    work(OF_HANDLER); /* so little that it does not make up for an execution of the program that is lost */
    td_must(td_sum_end(td, &sum));
    ended++;
}

static int breakpoint_at(const char *at)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT, .size = sizeof attr, .sample_period = 1};
    uint64_t flags;
    attr.bp_type = HW_BREAKPOINT_X;
    attr.bp_addr = (uint64_t)at;
    attr.bp_len = sizeof(long);
    attr.disabled = attr.exclude_kernel = attr.exclude_hv = 1;
    char *const at_flags = (char *)&attr + offsetof(struct perf_event_attr, read_format) + sizeof attr.read_format;
    memcpy(&flags, at_flags, sizeof flags);
    flags |= 1ull << REMOVE_ON_EXEC | 1ull << SIGTRAP_BIT;
    memcpy(at_flags, &flags, sizeof flags);
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void executions(int count)
{
    for (int i = 0; i < count; i++) {
        td_must(td_sum_begin(td, &sum));
        work(REGION);
        td_must(td_sum_end(td, &sum));
    }
}

static void nodes_hold(const double *share)
{
    struct td_node node[MOST_NODES];
    uint32_t count;
    const int code = td_sum_decode_tree(&sum, node, MOST_NODES, &count);
    if (code == TD_ENOTCOUNTING && sum.measured == 0)
        return; /* by registers, of a few executions */
    td_must(code);
    CHECK(count > 0);
    told++;
    for (uint32_t k = 0; k < count; k++)
        if (node[k].measured && node[k].id < SHARES)
            CHECK(node[k].low <= share[node[k].id] + 1e-9 && share[node[k].id] - 1e-9 <= node[k].high);
}

/* Whether the breakpoint was hit. */
static int struck_once(const struct known_mix *known, const double *share)
{
    volatile int begun = -1, done = -1;
    memset(&sum, 0, sizeof sum);
    executions(BEFORE);
    const struct td_sum before = sum;
    hits = ended = 0;
    if (!sigsetjmp(out, 1)) {
        CHECK_EQ(ioctl(breakpoint, PERF_EVENT_IOC_ENABLE, 0), 0);
        begun = td_sum_begin(td, &sum);
        work(REGION);
        done = td_sum_end(td, &sum);
    }
    CHECK_EQ(ioctl(breakpoint, PERF_EVENT_IOC_DISABLE, 0), 0);
    const int left = hits && action == LEAVES;
    const uint64_t more = sum.executions - before.executions;
    CHECK(left || begun == 0);
    CHECK(left || done == 0 || (hits && done == -EINVAL)); /* the handler's execution was the last that began */
    if (left)
        CHECK(more <= 1);
    else
        CHECK_EQ(more, (uint64_t)ended + (done == 0));
    const double least = left ? 0 : known->slots_per_instruction * (ended * OF_HANDLER + (done == 0) * REGION);
    CHECK((double)(sum.slots - before.slots) >= least);
    CHECK((double)(sum.slots - before.slots) < least + known->slots_per_instruction * 10 * REGION);
    executions(3);
    CHECK_EQ(sum.executions - before.executions, more + 3);
    CHECK(sum.slots - before.slots >= (uint64_t)(known->slots_per_instruction * 3 * REGION));
    nodes_hold(share);
    return hits;
}

static int at_each_instruction_of(const char *name, const struct known_mix *known, const double *share)
{
    Dl_info found;
    const ElfW(Sym) * symbol;
    const char *const begin = (const char *)dlsym(RTLD_DEFAULT, name);
    int instructions = 0;
    CHECK(begin && dladdr1(begin, &found, (void **)&symbol, RTLD_DL_SYMENT) && symbol && symbol->st_size > 0);
    for (size_t offset = 0; offset < symbol->st_size; offset++) { /* (none is hit where no instruction begins) */
        breakpoint = breakpoint_at(begin + offset);
        CHECK(breakpoint >= 0);
        for (action = 0; action < ACTIONS && struck_once(known, share); action++)
            instructions += action == 0;
        close(breakpoint);
    }
    return instructions;
}

/* By general counters; or by registers where the core has these: the more overhead, the more executions are measured. */
static void by(uint32_t flags, uint32_t overhead)
{
    double share[RATES];
    struct td_options options = options_of(flags, 0);
    options.max_overhead_ppm = overhead;
    if (flags && td_open(&td, &options) != 0)
        return;
    if (!flags)
        td = measured(&options);
    const struct td_info info = info_of(td);
    const struct known_mix known = known_mix(MIXES[2], &info, -1);
    struct node_truth truth = {.slots = 0};
    add_stretch(&truth, &known, 1);
    node_shares(&truth, &info, share);
    runs_at(&known);
    td_must(td_reset(td));
    told = 0;
    const int begins = at_each_instruction_of("td_sum_begin", &known, share);
    const int ends = at_each_instruction_of("td_sum_end", &known, share);
    printf("%s, flags %#x: at %d instructions of td_sum_begin, %d of td_sum_end; %d sums told nodes\n", info.core, flags,
           begins, ends, told);
    CHECK(begins > 0 && ends > 0 && told > 0);
    td_close(td);
}

int main(void)
{
    needs_known_mix();
    breakpoint = breakpoint_at((const char *)dlsym(RTLD_DEFAULT, "td_close"));
    if (breakpoint < 0)
        SKIP("no breakpoints here");
    close(breakpoint);
    CHECK(signal(SIGTRAP, on_trap) != SIG_ERR);
    by(0, 0);
    by(TD_FLAG_REGISTERS, 0);
    by(TD_FLAG_REGISTERS, 900000);
    return 0;
}
