#!/usr/bin/env bash
# `topdown stat --subtree` counts what is below a node, of a command and of a CPU, true to the mix, on cores that hold the level in
# parts alone; on others it says what can be named.
# needs: other-core
. "$(dirname "$0")/../include/case.sh"

finally "rm -f /tmp/by-subtree.csv"
sets $kernel/nmi_watchdog 0
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } NR == 2 && c { print $c }' /tmp/by-subtree.csv; }
case $MACHINE in
  tnt-*) node=frontend_bound refused=yes;;
  # (of 64 slots 6 are frontend bound, and half of these by latency: MIX in command/lib/shapes.h)
  zen*) node=frontend_bound level=2 truth='tma_fetch_latency=0.046875 tma_fetch_bandwidth=0.046875';;
  srf-* | cwf-*) node=tma_ifetch_latency level=3 truth='tma_ifetch_latency=0.046875 tma_resource_bound=';;
  skx-*) node=frontend_bound refused=yes;;
esac
if [ -n "${refused:-}" ]; then
  said=$("$topdown" stat --subtree $node -x , -o /tmp/by-subtree.csv true 2>&1)
  echo "$said"
  grep -q -e '--subtree' <<< "$said" && ! grep -q td_options <<< "$said"
  exit
fi
for whom in '' '-C 0'; do
  # shellcheck disable=SC2086
  taskset -c 0 "$topdown" stat --subtree $node $whom -x , -o /tmp/by-subtree.csv -- "$programs/lib/shapes" plain || true # (the shape has a status of its own)
  cat /tmp/by-subtree.csv
  for node_is in $truth; do
    name=${node_is%=*} is=${node_is#*=} share=$(column "${node_is%=*}")
    awk -v share="$share" -v is="$is" -v error="$(column error_$level)" 'BEGIN {
      exit !(is == "" ? share == "" : share != "" && error < 0.05 && share - is < error + 0.002 && is - share < error + 0.002)
    }' || { echo "$name: $share, not ${is:-empty}, within $(column error_$level)"; exit 1; }
  done
done
