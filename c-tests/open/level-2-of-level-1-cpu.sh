#!/usr/bin/env bash
# A CPU with level 1 alone refuses level 2.
# needs: counters, level-1
. "$(dirname "$0")/../include/case.sh"

"$open_says" ENOTSUP "level 2" level=2
