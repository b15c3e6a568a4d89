#!/usr/bin/env bash
# A seccomp filter answers perf_event_open with EPERM, as Docker's does.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

"$open_says" EPERM seccomp seccomp=EPERM
