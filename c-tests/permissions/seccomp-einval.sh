#!/usr/bin/env bash
# The kernel lists the events and does not open them: EINVAL.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

"$open_says" ENODEV "does not open it" seccomp=EINVAL
