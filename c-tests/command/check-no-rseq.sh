#!/usr/bin/env bash
# `topdown check` where glibc registers no restartable sequences.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

reports 0 rseq note "glibc 2.35" env GLIBC_TUNABLES=glibc.pthread.rseq=0 "${check[@]}"
