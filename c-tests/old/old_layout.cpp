// Structures and constants of today's headers are where, and what, they were in the headers beside this file, but for what is
// opaque now. (That constants are the same the preprocessor checks: it would warn of a macro with two values.)
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace old {
#include "topdown.h"
}
#undef TOPDOWN_H
#include <topdown_inline.h>

#define SIZE(type) static_assert(sizeof(type) == sizeof(old::type), #type)
#define SAME(type, field) \
    static_assert(offsetof(type, field) == offsetof(old::type, field) && \
                      std::is_same<decltype(type::field), decltype(old::type::field)>::value, \
                  #type "." #field)

SIZE(td_options);
SAME(td_options, size);
SAME(td_options, flags);
SAME(td_options, target);
SAME(td_options, id);
SAME(td_options, level);
SAME(td_options, max_error_ppm);
SAME(td_options, max_overhead_ppm);
static_assert(offsetof(td_options, subtree) == offsetof(old::td_options, reserved), "td_options.subtree");

SIZE(td_sample);
SAME(td_sample, size);
SAME(td_sample, flags);
SAME(td_sample, slots);
SAME(td_sample, time_enabled_ns);
SAME(td_sample, time_running_ns);
static_assert(offsetof(td_sample, opaque) == offsetof(old::td_sample, slots_before), "td_sample.opaque");

SIZE(td_l1);
SAME(td_l1, size);
SAME(td_l1, flags);
SAME(td_l1, slots);
SAME(td_l1, retiring);
SAME(td_l1, bad_speculation);
SAME(td_l1, frontend_bound);
SAME(td_l1, backend_bound);
SAME(td_l1, error);
SAME(td_l1, running);
static_assert(offsetof(td_l1, smt_contention) == offsetof(old::td_l1, reserved), "td_l1.smt_contention");

SIZE(td_l2);
SAME(td_l2, size);
SAME(td_l2, flags);
SAME(td_l2, slots);
SAME(td_l2, heavy_operations);
SAME(td_l2, light_operations);
SAME(td_l2, branch_mispredicts);
SAME(td_l2, machine_clears);
SAME(td_l2, fetch_latency);
SAME(td_l2, fetch_bandwidth);
SAME(td_l2, memory_bound);
SAME(td_l2, core_bound);
SAME(td_l2, error);
SAME(td_l2, running);
SAME(td_l2, reserved);

SIZE(td_info);
SAME(td_info, size);
SAME(td_info, path);
SAME(td_info, level);
SAME(td_info, slots_per_cycle);
SAME(td_info, cpu);
SAME(td_info, pmu);
SAME(td_info, core);
SAME(td_info, note);
SAME(td_info, max_error_ppm);
SAME(td_info, max_overhead_ppm);
SAME(td_info, windows);
SAME(td_info, windows_ns);
/* (zero of old where registers are counted) */
static_assert(offsetof(td_info, counters) == offsetof(old::td_info, reserved), "td_info.counters");

SIZE(td_node);
SAME(td_node, size);
SAME(td_node, flags);
SAME(td_node, id);
SAME(td_node, parent);
SAME(td_node, level);
SAME(td_node, unit);
SAME(td_node, measured);
SAME(td_node, reserved0);
SAME(td_node, value);
SAME(td_node, low);
SAME(td_node, high);
SAME(td_node, running);
SAME(td_node, whole);
SAME(td_node, reserved);

SIZE(td_sum);
SAME(td_sum, size);
SAME(td_sum, flags);
SAME(td_sum, executions);
SAME(td_sum, slots);
SAME(td_sum, time_enabled_ns);
SAME(td_sum, time_running_ns);
SAME(td_sum, measured);
SAME(td_sum, measured_slots);
SAME(td_sum, unbalanced);
SAME(td_sum, unseen);
static_assert(offsetof(td_sum, opaque) == offsetof(old::td_sum, level), "td_sum.opaque");

SIZE(td_mix);
SAME(td_mix, size);
SAME(td_mix, reserved);
SAME(td_mix, retiring);
SAME(td_mix, bad_speculation);
SAME(td_mix, frontend_bound);
SAME(td_mix, backend_bound);
SAME(td_mix, heavy_operations);
SAME(td_mix, branch_mispredicts);
SAME(td_mix, fetch_latency);
SAME(td_mix, memory_bound);

// (today's marks are longer; old programs' functions take the old ones)
SAME(td_mark, slots);
SAME(td_mark, metrics);
SAME(td_mark, sequence);
SAME(td_mark, window);

// inlined readings are compiled into programs (today's look for the reader elsewhere)
static_assert(TD_INLINE_RSEQ == offsetof(old::td_hot, rseq), "TD_INLINE_RSEQ");
static_assert(TD_INLINE_LIMIT == offsetof(old::td_hot, limit), "TD_INLINE_LIMIT");
static_assert(TD_INLINE_STAMP == offsetof(old::td_hot, start) + offsetof(old::td_sample, base.sequence), "TD_INLINE_STAMP");

int main()
{
    return 0;
}
