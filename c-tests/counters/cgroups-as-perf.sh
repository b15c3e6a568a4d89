#!/usr/bin/env bash
# Slots and level 1 of two cgroups are those of `perf stat --for-each-cgroup`, of the same programs, one run after the other.
# needs: counters, not-hybrid
. "$(dirname "$0")/../include/case.sh"

perf=${TOPDOWN_VM:-}/perf-trixie
[ -x "$perf/perf" ] || skip "perf of Debian 13 is not here: c-tests/vm/setup"
scratch=$(mktemp -d)
finally "rm -rf $scratch"
cp -r "$perf" "$scratch/perf" # (which is slow to load from where it is)
[ -e /sys/fs/cgroup/cgroup.procs ] || mount -t cgroup2 none /sys/fs/cgroup
# (before the first controller is switched on here, cgroups have none for perf events, either)
echo +cpu > /sys/fs/cgroup/cgroup.subtree_control
for group in as-perf-a as-perf-b; do
  finally "rmdir /sys/fs/cgroup/$group"
  mkdir "/sys/fs/cgroup/$group"
done

# shellcheck disable=SC2016   # the command's own
both=(bash -c '
  works() { echo 0 > "/sys/fs/cgroup/$1/cgroup.procs"; shift; exec "$at_mix" "$@"; }
  (works as-perf-a 20 12 14) & (works as-perf-b 12 4 34) & wait')
export at_mix=$programs/at_mix

"$topdown" stat --td-level 1 -G as-perf-a,as-perf-b -o "$scratch/ours.csv" -- "${both[@]}"
"$scratch/perf/perf" stat -a --for-each-cgroup as-perf-a,as-perf-b -x , -o "$scratch/perf.csv" \
  -e '{slots,topdown-retiring,topdown-bad-spec,topdown-fe-bound,topdown-be-bound}:u' -- "${both[@]}"

# Slots differ by what ran from a record of the kernel to the next, of 4 M slots, while tasks moved there; shares by what so differs, by our
# bound, and by half of what a field of PERF_METRICS can tell (1/255) on either side.
awk -F , -v OFS=, '
  function far(a, b) { return a > b ? a - b : b - a }
  FNR == NR && /^#|^$/ { next }
  FNR == NR { perf[$4, $3] = $1; next }
  FNR == 1 { for (k = 1; k <= NF; k++) column[$k] = k; next }
  $column["cgroup"] ~ /as-perf/ {
    group = $column["cgroup"]; sub("^/", "", group)
    slots = $column["slots"]; of_perf = perf[group, "slots"]; lost = 4e6
    printf "%s: %d slots, perf %d\n", group, slots, of_perf
    bad += !(of_perf > 0 && far(slots, of_perf) <= lost)
    split("tma_retiring tma_bad_speculation tma_frontend_bound tma_backend_bound", node, " ")
    split("retiring bad-spec fe-bound be-bound", event, " ")
    for (k = 1; k <= 4; k++) {
      share = perf[group, "topdown-" event[k]] / of_perf
      most = $column["error_1"] + 1 / 255 + far(slots, of_perf) / slots
      printf "%s: %s %.4f, perf %.4f\n", group, node[k], $column[node[k]], share
      bad += !(far($column[node[k]], share) <= most)
    }
    found++
  }
  END { exit bad || found != 2 }' "$scratch/perf.csv" "$scratch/ours.csv" || { cat "$scratch"/*.csv; exit 1; }
