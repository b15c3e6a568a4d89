#!/usr/bin/env bash
# `ulimit -n` leaves no descriptor.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

"$open_says" EMFILE "ulimit -n" nofile=3
