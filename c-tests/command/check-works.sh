#!/usr/bin/env bash
# `topdown check` where nothing is wrong.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

works="works by RDPMC of $((level == 2 ? 7 : 3)) general counters, level $level"
reports 0 td_open good "$works" "${check[@]}"
reports 0 other_users good none "${check[@]}"
"$topdown" check | grep -qx "td_open  *good  *$works"
