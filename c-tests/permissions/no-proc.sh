#!/usr/bin/env bash
# Nothing is mounted at /proc.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

in_container 'mount -t tmpfs none /proc' "$open_says" 0 "" path=1
