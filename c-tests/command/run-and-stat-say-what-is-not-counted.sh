#!/usr/bin/env bash
# What cannot be counted of a command is said, in the report, too: a setuid program of another user's, and whether processes go on,
# where no event tells.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

scratch=$(mktemp -d)
finally "rm -rf $scratch"
chmod 777 "$scratch"
sets $kernel/perf_event_paranoid 2
fails() { echo "$*: $(cat "$scratch"/*)"; exit 1; }

cp "$(command -v sleep)" "$scratch/own"
chmod 4755 "$scratch/own"
for command in run stat; do
  user "$topdown" $command -o "$scratch/r.csv" -- "$scratch/own" 0 2> "$scratch/said" || fails "$command"
  [ "$(sed -n 2p "$scratch/r.csv" | cut -d, -f13)" = 0 ] || fails "$command: slots"
  user "$topdown" $command -o "$scratch/r.json" -- "$scratch/own" 0 2>> "$scratch/said" || fails "$command"
  grep -q '"trouble": ".*setuid or setgid' "$scratch/r.json" || fails "$command: no reason"
  rm "$scratch"/r.*
done

# among others that are counted
cp "$(command -v dash)" "$scratch/loop"
chmod 4755 "$scratch/loop"
loop='i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done'
for command in run stat; do
  user "$topdown" $command -o "$scratch/r.csv" -- sh -c "sh -c '$loop'; $scratch/loop -c '$loop'; exit 3" 2> "$scratch/said" && fails "status"
  sed -n 2p "$scratch/r.csv" | cut -d, -f13,16 | { IFS=, read -r slots running; [ "$slots" -gt 1000000 ] && [ "${running%%.*}" = 0 ]; } \
    || fails "$command: running"
  rm "$scratch"/r.*
done

sets $kernel/perf_event_mlock_kb 0
ulimit -l 0
user "$topdown" stat -o "$scratch/r.txt" -- sh -c 'sleep 0.1 & exit 3' && fails "status"
tr -s ' \n' ' ' < "$scratch/r.txt" | grep -q 'go on is not known' || fails "no remark"
