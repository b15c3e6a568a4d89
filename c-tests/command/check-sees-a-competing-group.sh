#!/usr/bin/env bash
# `topdown check` beside a group that takes the counters some of the time.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

events=
for event in slots topdown-retiring topdown-bad-spec topdown-fe-bound topdown-be-bound; do events+=,$device/$event/u; done
reports 0 other_users note "% of the time" perf stat -o /dev/null -e "{${events#,}}" "${check[@]}"
