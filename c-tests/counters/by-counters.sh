#!/usr/bin/env bash
# What holds of handles that count registers holds of those that count general counters: signals, forks, threads, totals,
# random regions. (In the gate a part of it: other cores have counters alone.)
# needs: counters, not-hybrid
. "$(dirname "$0")/../include/case.sh"

export TEST_SOURCE=counters TOPDOWN_SOURCE=counters
again=("$programs"/pmu_{inline,regions,fork_child})
[ -n "${GATE:-}" ] || again+=("$programs"/pmu_{signal_between,close_in_use,tree,phases,random,exact,signal_handler,signal_reset,read_in_reset,left_by_longjmp} \
  "$programs"/pmu_{vfork_clone,close_twice,switched_off,no_leak,kernel})
c-tests/run --limit 120 "${again[@]}" > /tmp/by-counters || { cat /tmp/by-counters; exit 1; }
