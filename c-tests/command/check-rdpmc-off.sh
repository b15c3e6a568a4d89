#!/usr/bin/env bash
# `topdown check` where the PMU's `rdpmc` file is 0.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

sets $pmu/rdpmc 0
reports 0 rdpmc note "write 1 to" "${check[@]}"
reports 0 td_open note "read(2)" "${check[@]}"
