#!/usr/bin/env bash
# The same of handles that count registers, with a general counter beside them on cores whose published metrics take one: signals between
# two registers or their counter, marks of readings on the slow path, forks, longjmp, random regions. (In the gate a part of it.)
# needs: counters, not-hybrid
. "$(dirname "$0")/../include/case.sh"

export TEST_SOURCE=registers TOPDOWN_SOURCE=registers
again=("$programs"/pmu_{inline,signal_reset})
[ -n "${GATE:-}" ] || again+=("$programs"/pmu_{signal_between,read_in_reset,fork_child,close_in_use,tree,phases,random,signal_handler,left_by_longjmp} \
  "$programs"/pmu_{vfork_clone,close_twice,switched_off,no_leak,kernel})
c-tests/run --limit 120 "${again[@]}" > /tmp/by-registers || { cat /tmp/by-registers; exit 1; }
