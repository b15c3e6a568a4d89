#!/usr/bin/env bash
# `topdown check` where nothing is mounted at /sys.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

reports 1 pmu wall "mount /sys" unshare -m sh -c "mount -t tmpfs t /sys && $topdown check --json"
