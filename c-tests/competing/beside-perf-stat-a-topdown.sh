#!/usr/bin/env bash
# Beside `perf stat -a --topdown`, whose group comes before those of threads at every rotation, level 1 is counted by general counters.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

perf stat -a --topdown -o /dev/null -- "$programs/pmu_beside" 0 0
