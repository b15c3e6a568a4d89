#!/usr/bin/env bash
# A seccomp filter, or a kernel without perf events, answers with ENOSYS.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

"$open_says" ENOSYS perf_event_open seccomp=ENOSYS
