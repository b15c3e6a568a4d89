#!/usr/bin/env bash
# With the NMI watchdog and without, a handle counts all of the time.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

sets $kernel/nmi_watchdog 0
"$programs/pmu_beside" 0.99 1
echo 1 > $kernel/nmi_watchdog
[ "$(cat $kernel/nmi_watchdog)" = 1 ]
"$programs/pmu_beside" 0.99 1
