#!/usr/bin/env bash
# The PMU has events, and none of them is called slots: general counters serve, unless registers are asked for.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

without_slots="mount -t tmpfs none $pmu/events; echo event=0x3c > $pmu/events/cpu-cycles"
in_container "$without_slots" "$open_says" ENODEV "no event 'slots'" flags=16
in_container "$without_slots" "$open_says" 0 '' path=1
