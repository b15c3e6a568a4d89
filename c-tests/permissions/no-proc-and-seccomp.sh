#!/usr/bin/env bash
# A seccomp filter, and no /proc to tell it from perf_event_paranoid.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

in_container 'mount -t tmpfs none /proc' "$open_says" EPERM "most likely by the seccomp" seccomp=EPERM
