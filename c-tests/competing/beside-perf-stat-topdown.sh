#!/usr/bin/env bash
# Beside `perf stat --topdown` of the same program the two share the time.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

perf stat --topdown -o /dev/null -- "$programs/pmu_beside" 0.4 0.6
