#!/usr/bin/env bash
# `topdown record -G` records the processes of a cgroup and of its descendants, and no others; it says where none runs, and where there is no
# such cgroup.
# needs: no-counters
. "$(dirname "$0")/../include/case.sh"

root=/sys/fs/cgroup
[ -e $root/cgroup.procs ] || mount -t cgroup2 none $root
scratch=$(mktemp -d)
finally "rm -rf $scratch"
for group in recorded recorded/below recorded/empty other; do
  finally "rmdir $root/$group"
  mkdir $root/$group
done
for group in recorded recorded/below other; do
  program=$scratch/in-${group##*/}
  cp "$programs/record_time" "$program"
  "$program" program alone 1000000000 &
  finally "kill -9 $!; wait $! || :"
  echo $! > "$root/$group/cgroup.procs"
done

"$topdown" record -G recorded --duration 1 -o "$scratch/r.csv"
cat "$scratch/r.csv"
for module in in-recorded in-below; do
  grep -q "\"much\",\"$module\"" "$scratch/r.csv"
done
! grep in-other "$scratch/r.csv" || exit 1
"$topdown" record -G recorded --duration 0.2 -o "$scratch/r.txt"
grep -q 'topdown .* -G recorded' "$scratch/r.txt" # (what to run next)

refused() { # refused WORDS ARGUMENTS...
  ! "$topdown" record "${@:2}" --duration 1 2> "$scratch/said" && grep -q "$1" "$scratch/said" || { cat "$scratch/said"; return 1; }
}
refused 'no process runs in /recorded/empty' -G recorded/empty
refused 'there is no cgroup /nowhere' -G recorded,nowhere
