#!/usr/bin/env bash
# The system has no descriptor left: ENFILE.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

"$open_says" ENFILE fs.file-max seccomp=ENFILE
