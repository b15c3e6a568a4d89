#!/usr/bin/env bash
# Nothing is mounted at /sys.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

in_container 'mount -t tmpfs none /sys' "$open_says" ENODEV 'mount /sys'
