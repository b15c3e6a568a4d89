#!/usr/bin/env bash
# `topdown check` tells how many general counters there are, how many of them are free, and who has perf events open.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

reports 0 general_counters good "[0-9]* on CPU [0-9]*, all of them free" "${check[@]}"
command -v perf > /dev/null || skip "perf is not installed"
there=$("$topdown" check | sed -n 's/^general_counters  *good  *\([0-9]*\) .*/\1/p')
event=$device/event=0xc4/
reports 0 general_counters note "$there on CPU [0-9]*, $((there - 3)) of them free; perf events are open in perf (" \
  perf stat -o /dev/null -a -e "{$event,$event,$event}" "${check[@]}"
