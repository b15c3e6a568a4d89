#!/usr/bin/env bash
# `topdown check` and a default td_open where there is no PERF_METRICS, as in virtual machines: general counters serve.
# needs: general-counters
. "$(dirname "$0")/../include/case.sh"

reports 0 td_open good "works by RDPMC of [48] general counters, level [12]" "${check[@]}"
reports 0 topdown_events note "general counters count the slots" "${check[@]}"
reports 0 other_users good none user "${check[@]}"
"$open_says" 0 "" path=1
user "$open_says" 0 "" path=1
