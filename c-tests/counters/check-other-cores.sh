#!/usr/bin/env bash
# `topdown check`, `topdown run` and a default td_open on cores without PERF_METRICS: they name the core and what is counted, and
# an ordinary user measures.
# needs: other-core
. "$(dirname "$0")/../include/case.sh"

level=1
case $MACHINE in
  skx-*) core=Skylake counters=7 level=2;;
  tnt-*) core=Tremont counters=3;;
  srf-*) core=Crestmont counters=7 level=2;;
  cwf-*) core=Darkmont counters=7 level=2;;
  zen?-*) core="Zen ${MACHINE:3:1}" counters=5;;
  *) echo "which core is that?"; exit 1;;
esac
reports 0 cpu good "$core.* slots per cycle" "${check[@]}"
reports 0 topdown_events good "general counters of slots, down to level $level" "${check[@]}"
reports 0 td_open good "works by RDPMC of $counters general counters, level $level" "${check[@]}"
reports 0 other_users good none user "${check[@]}"
user "$open_says" 0 "" path=1
out=$(user "$topdown" run -- sh -c 'i=0; while [ $i -lt 2000 ]; do i=$((i + 1)); done' 2>&1)
grep -q "$core" <<< "$out" && grep -q retiring <<< "$out" || { echo "$out"; exit 1; }
