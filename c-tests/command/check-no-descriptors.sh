#!/usr/bin/env bash
# `topdown check` where `ulimit -n` leaves too few descriptors.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

reports 1 td_open wall "ulimit -n" sh -c "ulimit -n 5; $topdown check --json"
