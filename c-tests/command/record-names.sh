#!/usr/bin/env bash
# `topdown record` names functions by the file that ran, or not at all: of a program in a mount namespace of its own, beside another one at
# its path; of one that is removed while it runs; by `--from`, when another one is at its path; and code of no file by the map in the /tmp and of the number that its process has.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

scratch=$(mktemp -d)
finally "rm -rf $scratch"
mkdir "$scratch/root"
app=$scratch/root/app
arguments=(4 5000 400 plain "$scratch/spent")
record=("$topdown" record -F 2000 --budget 50)
has() { grep -qF "\"$1\",\"app\",own," "$scratch/r.csv"; }
fails() { echo "$*"; cat "$scratch/r.csv"; exit 1; }

cp "$(command -v sleep)" "$app"
"${record[@]}" -o "$scratch/r.csv" -- unshare -m --propagation private sh -c \
  "mount -t tmpfs none $scratch/root && cp $programs/lib/functions $app && exec $app ${arguments[*]}"
has f0 || fails "in a mount namespace: no names"
! grep -qF '[unknown in app:' "$scratch/r.csv" || fails "in a mount namespace: unknown"

truncate -s 1M "$scratch/storm"
exec 3<> "$scratch/storm" 4< "$programs/lib/storms" # (which may be in /tmp)
finally "rm -f /tmp/perf-1.map"
echo "0 fffffffffffff other" > /tmp/perf-1.map
"${record[@]}" -o "$scratch/r.csv" -- unshare -m -p -f --propagation private sh -c \
  "mount -t tmpfs none /tmp && exec /proc/self/fd/4 jit /dev/fd/3" || [ $? = 25 ]
grep -qF '"j0","[jit]",own,' "$scratch/r.csv" || fails "in a process namespace: no names"
! grep -qF '"other"' "$scratch/r.csv" || fails "in a process namespace: names of another one"

cp "$programs/lib/functions" "$app"
"${record[@]}" -o "$scratch/r.csv" -- sh -c "$app ${arguments[*]} & while [ ! /proc/\$!/exe -ef $app ]; do :; done; rm $app; wait"
has f0 || fails "removed while it runs: no names"

cp "$programs/lib/functions" "$app"
"${record[@]}" -o "$scratch/r.recording" -- "$app" "${arguments[@]}"
"$topdown" record --from "$scratch/r.recording" -o "$scratch/r.csv"
has f0 || fails "of a recording: no names"
cp "$(command -v sleep)" "$scratch/other"
mv "$scratch/other" "$app"
"$topdown" record --from "$scratch/r.recording" -o "$scratch/r.csv"
has "[unknown in app: another file is at its path]" || fails "of another file: not said"
! has f0 || fails "of another file: names"
