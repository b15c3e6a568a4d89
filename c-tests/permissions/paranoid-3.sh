#!/usr/bin/env bash
# perf_event_paranoid 3, Debian's: an ordinary user gets -EACCES, with the name of the setting.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

sets $kernel/perf_event_paranoid 3
user "$open_says" EACCES perf_event_paranoid
