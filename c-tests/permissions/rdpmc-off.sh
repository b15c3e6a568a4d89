#!/usr/bin/env bash
# The PMU's `rdpmc` file is 0: readings are by read(2), and the note says why.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

sets $pmu/rdpmc 0
"$open_says" 0 rdpmc path=2
