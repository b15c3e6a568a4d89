#!/usr/bin/env bash
# perf stat and the library, over the same run, agree on every level 1 share within one point. The kernel rotates
# their groups on the counters, so it is shares that are compared; the program's are the same throughout.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

command -v perf > /dev/null || { echo "perf is not installed" >&2; exit 77; }
events=
for event in slots topdown-retiring topdown-bad-spec topdown-fe-bound topdown-be-bound; do events+=,$device/$event/u; done
told=$(mktemp)
finally 'rm -f "$told"'
for mix in "40 8 8" "4 20 8"; do
  # shellcheck disable=SC2086
  ours=$(perf stat -x, -o "$told" -e "{${events#,}}" -- "$programs/pmu_shares" $mix) || { cat "$told" >&2; exit 1; }
  awk -F, -v mix="$mix" -v ours="$ours" '
    /topdown-/ { count[n++] = $1; sum += $1 }
    END {
      if (n != 4 || sum == 0) { print "perf stat told nothing"; exit 1 }
      split(ours, share, " ")
      for (k = 0; k < 4; k++) {
        off = count[k] / sum - share[k + 1]
        if (off > 0.01 || off < -0.01) { printf "mix %s: perf says %s, the library %s\n", mix, count[k] / sum, share[k + 1]; bad = 1 }
      }
      exit bad
    }' "$told" || { cat "$told"; exit 1; }
done
