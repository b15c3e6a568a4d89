#!/usr/bin/env bash
# The recipe of the kernel's topdown.txt misses the truth by hundreds of points, and pmu_exact sees it.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

"$programs/pmu_exact" recipe
