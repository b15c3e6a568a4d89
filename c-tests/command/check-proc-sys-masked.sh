#!/usr/bin/env bash
# `topdown check` where the kernel's settings cannot be read.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

masked=(unshare -m sh -c "mount -t tmpfs t /proc/sys && $topdown check --json")
reports 0 nmi_watchdog unknown "cannot be read" "${masked[@]}"
reports 0 perf_event_paranoid good unreadable "${masked[@]}"
