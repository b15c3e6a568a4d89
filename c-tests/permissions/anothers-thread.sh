#!/usr/bin/env bash
# A thread of another user is forbidden, and the text says so.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

sets $kernel/perf_event_paranoid 2
user "$open_says" EACCES "another user" target=1 id=parent
