#!/usr/bin/env bash
# perf_event_paranoid 4, Ubuntu's: the same.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

sets $kernel/perf_event_paranoid 4
user "$open_says" EACCES "perf_event_paranoid is 4"
