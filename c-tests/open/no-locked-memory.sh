#!/usr/bin/env bash
# No locked memory is left for the control page: td_open says which limit to raise; with TD_FLAG_NO_RDPMC it needs none.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

sets $kernel/perf_event_paranoid 2
sets $kernel/perf_event_mlock_kb 0
user "$open_says" ENOMEM perf_event_mlock_kb memlock=0
user "$open_says" 0 NO_RDPMC memlock=0 flags=4 path=2
