#!/usr/bin/env bash
# A hybrid CPU whose list of P-cores cannot be read.
# needs: counters, hybrid
. "$(dirname "$0")/../include/case.sh"

in_container "f=\$(mktemp); chmod 0 \$f; mount --bind \$f $pmu/cpus" \
  setpriv --reuid 65534 --regid 65534 --clear-groups "$open_says" EACCES "cpus cannot be read"
