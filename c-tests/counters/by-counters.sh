#!/usr/bin/env bash
# What holds of handles that count registers holds of those that count general counters: signals, forks, threads, totals,
# random regions.
# needs: counters, not-hybrid
. "$(dirname "$0")/../include/case.sh"

export TEST_SOURCE=counters TOPDOWN_SOURCE=counters
c-tests/run --limit 120 "$programs"/pmu_{inline,phases,random,exact,regions,signal_handler,signal_reset,read_in_reset,signal_between,left_by_longjmp} \
  "$programs"/pmu_{fork_child,vfork_clone,close_in_use,close_twice,switched_off,no_leak,kernel,tree} > /tmp/by-counters ||
  { cat /tmp/by-counters; exit 1; }
