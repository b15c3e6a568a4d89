#!/usr/bin/env bash
# pmu_rdpmc_taken in a program without restartable sequences.
# needs: counters, not-hybrid
. "$(dirname "$0")/../include/case.sh"

GLIBC_TUNABLES=glibc.pthread.rseq=0 "$programs/pmu_rdpmc_taken"
