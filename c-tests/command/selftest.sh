#!/usr/bin/env bash
# `topdown check --selftest`: what it says here of kernel and plumbing holds, and it says where here is.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

report=/tmp/selftest-report
"$topdown" check --selftest > $report && grep -q "^\*\*\* EMULATED" $report && grep -q "^wrong-mix: holds" $report ||
  { cat $report; exit 1; }
