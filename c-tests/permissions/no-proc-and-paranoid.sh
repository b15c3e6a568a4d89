#!/usr/bin/env bash
# perf_event_paranoid 3 and no /proc to read it from.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

sets $kernel/perf_event_paranoid 3
in_container 'mount -t tmpfs none /proc' "$open_says" EACCES "cannot be read here" user=65534
