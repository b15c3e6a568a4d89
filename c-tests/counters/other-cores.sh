#!/usr/bin/env bash
# What holds of handles on P-cores holds of those on cores without PERF_METRICS: signals, forks, threads, leaks, random regions,
# regions of programs.
# needs: other-core
. "$(dirname "$0")/../include/case.sh"

export TEST_SOURCE=counters
c-tests/run --limit 120 "$programs"/pmu_{random,regions,signal_handler,signal_reset,read_in_reset,signal_between,left_by_longjmp} \
  "$programs"/pmu_{fork_child,vfork_clone,close_in_use,close_twice,switched_off,no_leak,wrong_thread,thread_end,segv} \
  "$programs"/pmu_{task,cpu,unload} > /tmp/other-cores || { cat /tmp/other-cores; exit 1; }
! grep -q '^skip' /tmp/other-cores || { cat /tmp/other-cores; exit 1; }
