#!/usr/bin/env bash
# perf_event_paranoid 3 in a container.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

sets $kernel/perf_event_paranoid 3
in_container "$masks" "$open_says" EACCES "is 3" user=65534
