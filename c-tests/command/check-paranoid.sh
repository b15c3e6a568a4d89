#!/usr/bin/env bash
# `topdown check` says what perf_event_paranoid permits, with and without CAP_PERFMON (38) and CAP_SYS_ADMIN.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

sets $kernel/perf_event_paranoid 3
reports 1 perf_event_paranoid wall "perf_event_paranoid is 3" user "${check[@]}"
reports 0 perf_event_paranoid good "3 with CAP_PERFMON and CAP_SYS_ADMIN permits user mode, kernel mode, whole CPUs" "${check[@]}"
sets $kernel/perf_event_paranoid 2
reports 0 perf_event_paranoid note "2 without CAP_PERFMON permits user mode, not kernel mode, whole CPUs" user "${check[@]}"
reports 0 perf_event_paranoid good "2 with CAP_PERFMON permits user mode, kernel mode, whole CPUs" \
  setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps +cap_38 --ambient-caps +cap_38 "${check[@]}"
