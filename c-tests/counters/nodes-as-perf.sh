#!/usr/bin/env bash
# Each node that `topdown stat` counts, at every level and of every subtree, is perf's metric of the same name, of one program at
# each of two mixes (`perf stat -M` of Debian 13; the table is include/as-perf).
# needs: counters or other-core
. "$(dirname "$0")/../include/case.sh"
. c-tests/include/as-perf.sh

cpu=${MACHINE%-*}
grep -qE "^([a-z0-9,]*,)?$cpu[/, ]" c-tests/include/as-perf || skip "include/as-perf has nothing of $cpu"
perf=${TOPDOWN_VM:-}/perf-trixie
[ -x "$perf/perf" ] || skip "perf of Debian 13 is not here: c-tests/vm/setup"
scratch=$(mktemp -d)
finally "rm -rf $scratch"
cp -r "$perf" "$scratch/perf" # (which is slow to load from where it is)
sets $kernel/nmi_watchdog 0 # it holds a counter
nodes_as_perf "$cpu" "$scratch/perf/perf" "$topdown" "$programs/at_mix"
