#!/usr/bin/env bash
# `topdown check` where there are no counters: what stands in the way is the check that finds it.
# needs: no-counters
. "$(dirname "$0")/../include/case.sh"

reports 1 td_open wall "$said" "${check[@]}"
reports 1 "$found_by" wall '' user "${check[@]}"
