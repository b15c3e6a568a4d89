#!/usr/bin/env bash
# `topdown check` where no locked memory is left.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

sets $kernel/perf_event_paranoid 2
sets $kernel/perf_event_mlock_kb 0
ulimit -l 0
reports 1 locked_memory wall "perf_event_mlock_kb is 0" user "${check[@]}"
