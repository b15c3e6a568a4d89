#!/usr/bin/env bash
# What README and docs show of commands on a machine without counters is what they write, but for numbers and where lines are broken (the table c-tests/pages).
# needs: no-counters
. "$(dirname "$0")/../include/case.sh"
command -v python3 > /dev/null || skip "python3 is not installed"
hostname vm
sets $kernel/perf_event_paranoid 2
c-tests/tools/shown run "$MACHINE"
