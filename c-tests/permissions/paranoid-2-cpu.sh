#!/usr/bin/env bash
# perf_event_paranoid 2 forbids TD_TARGET_CPU, which needs 0.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

sets $kernel/perf_event_paranoid 2
user "$open_says" EACCES "needs 0" target=2 id=0
