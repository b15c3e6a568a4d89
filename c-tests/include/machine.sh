# shellcheck shell=bash disable=SC2034
# machine.sh : what this machine has, as the table c-tests/rows says (vm/run puts the name, spr-trixie, into MACHINE). To be read
# in the project's directory. On another machine, what the kernel shows.
has=counters level=2 found_by='' said=''
if [ -n "${MACHINE:-}" ]; then
  while read -r row_cpu row_kernel _ _ row_check row_words; do
    [ "${row_cpu%%,*}-$row_kernel" != "$MACHINE" ] || found_by=$row_check said=$row_words # what td_open has to say
  done < c-tests/rows
  case $found_by in '') ;; general) has=general-counters;; other) has=other-core;; *) has=no-counters;; esac
elif [ ! -e /sys/bus/event_source/devices/cpu/events/slots ] && [ ! -e /sys/bus/event_source/devices/cpu_core/events/slots ]; then
  has=no-counters
fi
case ${MACHINE:-} in icl-*) level=1;; esac
device=cpu
[ ! -e /sys/bus/event_source/devices/cpu_core ] || device=cpu_core
pmu=/sys/bus/event_source/devices/$device
reload='' # whether a PMU has auto counter reload
! grep -qs . /sys/bus/event_source/devices/cpu*/format/acr_mask || reload=yes
