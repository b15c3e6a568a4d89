#!/usr/bin/env bash
# A seccomp filter, or an LSM, answers with EACCES.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

"$open_says" EACCES "seccomp filter forbids it" seccomp=EACCES
