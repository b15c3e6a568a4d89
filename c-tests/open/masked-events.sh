#!/usr/bin/env bash
# The PMU's events are hidden.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

in_container "mount -t tmpfs none $pmu/events" "$open_says" ENODEV 'mount /sys'
