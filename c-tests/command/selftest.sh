#!/usr/bin/env bash
# `topdown check --selftest`: what it says here of kernel and plumbing holds, it says where here is, and registers and general
# counters show the same of each microkernel; as JSON, too.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

report=/tmp/selftest-report
"$topdown" check --selftest > $report && grep -q "^\*\*\* EMULATED" $report && grep -q "^wrong-mix: holds" $report ||
  { cat $report; exit 1; }
nodes=$(grep -cE '^ +tma_[a-z_]+ +[0-9.]+ \([0-9.]+\) +[0-9.]+ \([0-9.]+\) +[+-][0-9.]+$' $report) || true
case ${MACHINE%%-*} in
  dmr) expected=0; grep -q "registers alone can be opened" $report || { cat $report; exit 1; };;
  *) expected=$((6 * (level == 1 ? 4 : 12)));;
esac
[ "$nodes" = "$expected" ] || { echo "$nodes nodes by both sources, not $expected"; cat $report; exit 1; }
"$topdown" check --selftest --json > $report && [ "$(grep -c '"verdict": "agree"' $report)" = "$expected" ] ||
  { cat $report; exit 1; }
