#!/usr/bin/env bash
# perf_event_paranoid 2 permits an ordinary user to measure its own thread in user mode, by RDPMC.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

sets $kernel/perf_event_paranoid 2
user "$open_says" 0 "" path=1
