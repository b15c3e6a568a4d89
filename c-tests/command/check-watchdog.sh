#!/usr/bin/env bash
# `topdown check` with the NMI watchdog on and off.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

sets $kernel/nmi_watchdog 0
reports 0 nmi_watchdog good off "${check[@]}"
sets $kernel/nmi_watchdog 1
reports 0 nmi_watchdog note "one counter" "${check[@]}"
