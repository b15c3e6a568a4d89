#!/usr/bin/env bash
# What holds of handles on P-cores holds of those on cores without PERF_METRICS: signals, forks, threads, leaks, random regions,
# regions of programs. (In the gate without what by-counters has there, and leaks.)
# needs: other-core
. "$(dirname "$0")/../include/case.sh"

export TEST_SOURCE=counters
case $MACHINE in
  # the emulated machine counts some of their events at rates of its own, or slots of another thread
  tnt-* | skx-* | zen5-*) truth=();;
  *) truth=("$programs"/pmu_{random,regions,switched_off,task,cpu,stat})
    [ -n "${GATE:-}" ] || truth+=("$programs"/pmu_signal_between);;
esac
[ -n "${GATE:-}" ] || truth+=("$programs"/pmu_no_leak)
c-tests/run --limit 120 ${truth[@]+"${truth[@]}"} "$programs"/pmu_{signal_handler,signal_reset,read_in_reset,left_by_longjmp} \
  "$programs"/pmu_{fork_child,vfork_clone,close_in_use,close_twice,wrong_thread,thread_end,segv,unload} > /tmp/other-cores || { cat /tmp/other-cores; exit 1; }
! grep -q '^skip' /tmp/other-cores || { cat /tmp/other-cores; exit 1; }
