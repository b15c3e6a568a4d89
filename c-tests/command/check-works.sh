#!/usr/bin/env bash
# `topdown check` where nothing is wrong.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

counters=$((level == 2 ? 7 : 5)) # with what corrects them, up to Redwood Cove
[[ $MACHINE != @(spr|gnr|adl|mtl)-* ]] || counters=8
works="works by RDPMC of $counters general counters, level $level"
reports 0 td_open good "$works" "${check[@]}"
reports 0 other_users good none "${check[@]}"
"$topdown" check | grep -qx "td_open  *good  *$works"
