#!/usr/bin/env bash
# `topdown record` that was stopped for a second says how many records found no room and how much time is untold for that, which is in the interval of
# the time; whose program's file was replaced while it ran has the names of the one that ran. Processes that a command leaves running are said,
# and no others.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

scratch=$(mktemp -d)
finally "rm -rf $scratch"
# number NAME : the first of this name in the profile.
number() { grep -o "\"$1\": [0-9.]*" "$scratch/r.json" | head -n 1 | grep -o '[0-9.]*$'; }

has_names() { grep -q '"name": "f0"' "$scratch/r.json" && ! grep -q "another file" "$scratch/r.json"; }

# record STOPPED REPLACED : a program that runs for half a second, or if it is stopped for one and a half.
record() {
  local millions=500
  [ "$1" = no ] || millions=1500
  cp "$programs/lib/functions" "$scratch/program"
  "$topdown" record -F 2000 --budget 50 -o "$scratch/r.json" -- "$scratch/program" 4 5000 "$millions" plain "$scratch/spent" &
  local recorder=$!
  sleep 0.3
  if [ "$2" = yes ]; then
    cp "$(command -v sleep)" "$scratch/other"
    mv "$scratch/other" "$scratch/program"
  fi
  if [ "$1" = yes ]; then
    kill -STOP $recorder
    sleep 1
    kill -CONT $recorder
  fi
  wait $recorder
  echo "stopped: $1, replaced: $2: lost_records $(number lost_records), time_not_sampled_ns $(number time_not_sampled_ns)"
}
record no no
[ "$(number lost_records)" = 0 ] && [ "$(number time_not_sampled_ns)" -lt 100000000 ] && has_names
record no yes
has_names
record yes no
[ "$(number lost_records)" -gt 0 ] && [ "$(number time_not_sampled_ns)" -gt 500000000 ]

# leaves COMMAND : runs it, in which `idle` is a process that goes on, and says what is told of processes that still ran.
leaves() {
  echo "sleep 600 > /dev/null & echo \$! >> $scratch/idle" > "$scratch/idles"
  "$topdown" record -o "$scratch/r.txt" -- sh -c "idle() { . $scratch/idles; }; $1"
  grep -o '^.* still ran when' "$scratch/r.txt" || echo none
}
finally "kill \$(cat $scratch/idle)"
busy="$scratch/program 4 5000 100 plain $scratch/spent"
[ -n "${GATE:-}" ] || [ "$(leaves "$busy; idle; $busy")" = '1 process still ran when' ]
[ "$(leaves "idle; idle; idle; $busy & $busy; wait \$!")" = '3 processes still ran when' ]
[ "$(leaves "$busy & $busy; wait")" = none ]
