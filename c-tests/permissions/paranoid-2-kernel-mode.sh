#!/usr/bin/env bash
# perf_event_paranoid 2 forbids TD_FLAG_KERNEL, which needs 1.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

sets $kernel/perf_event_paranoid 2
user "$open_says" EACCES "needs 1" flags=1
