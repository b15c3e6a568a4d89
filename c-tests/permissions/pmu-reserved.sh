#!/usr/bin/env bash
# Another driver has reserved the PMU: EBUSY.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

"$open_says" ENODEV "another driver" seccomp=EBUSY
