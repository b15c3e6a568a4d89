#!/usr/bin/env bash
# `topdown check` where nothing is wrong.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

reports 0 td_open good "works by RDPMC, level $level" "${check[@]}"
reports 0 other_users good none "${check[@]}"
"$topdown" check | grep -qx "td_open  *good  *works by RDPMC, level $level"
