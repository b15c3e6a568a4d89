#!/usr/bin/env bash
# `topdown check` and a default td_open where there is no PERF_METRICS, as in virtual machines: general counters serve, down to
# the level that they have room for, and whose events are where they can count.
# needs: general-counters
. "$(dirname "$0")/../include/case.sh"

case $MACHINE in
  # a kernel that does not know the CPU, and its rules of which counter counts what
  gnr-bookworm) works="of 4 general counters, level 1 (level 1 alone: 'TOPDOWN.BR_MISPREDICT_SLOTS' opened but counts in counter [1-9]";;
  guest-sid) works="of 4 general counters, level 1 (level 1 alone: 'UOPS_RETIRED.HEAVY' does not fit into the group";;
  *) works="of 8 general counters, level 2";;
esac
reports 0 td_open good "works by RDPMC $works" "${check[@]}"
reports 0 topdown_events note "general counters count the slots" "${check[@]}"
reports 0 other_users good none user "${check[@]}"
"$open_says" 0 "" path=1
user "$open_says" 0 "" path=1
# the self-test runs by counters then (elsewhere it does not know that the machine is emulated, and takes minutes)
[[ $MACHINE = gnr-bookworm ]] || exit 0
report=/tmp/selftest-report
"$topdown" check --selftest > $report && grep -q "^retiring: holds" $report && grep -q "counters alone can be opened" $report ||
  { cat $report; exit 1; }
