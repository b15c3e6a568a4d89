#!/usr/bin/env bash
# The PMU has events, and none of them is called slots.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

in_container "mount -t tmpfs none $pmu/events; echo event=0x3c > $pmu/events/cpu-cycles" "$open_says" ENODEV "no event 'slots'"
