#!/usr/bin/env bash
# `--require` of `topdown run` and `stat`: a command that succeeds has exit status 123 where its slots, or a level of them, are not
# measured, and a line says what is missing; the report is written all the same, and a command that fails keeps its status.
# needs: counters or other-core or no-counters
. "$(dirname "$0")/../include/case.sh"

scratch=$(mktemp -d)
finally "rm -rf $scratch"
loop='i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done'

ends() { # ends STATUS WORD ARGUMENT... : the exit status of topdown, and a word of what it says ('': any)
  local status=$1 word=$2 code=0
  shift 2
  rm -f "$scratch/r.json"
  "$topdown" "$@" > /dev/null 2> "$scratch/said" || code=$?
  [ $code = "$status" ] && { [ -z "$word" ] || grep -q -- "$word" "$scratch/said"; } || { echo "$*: exit status $code, not $status, or not '$word': $(cat "$scratch/said")"; exit 1; }
}

for command in stat run; do
  if [ "$has" = no-counters ]; then
    ends 123 "--require: no slots of the whole are measured: .*$said" $command --require slots -o "$scratch/r.json" -- sh -c "$loop"
    ends 123 "--require: no slots" $command --require 1 -o "$scratch/r.json" -- sh -c "$loop"
  else
    ends 0 '' $command --require slots -o "$scratch/r.json" -- sh -c "$loop"
    ends 0 '' $command --require 1 -o "$scratch/r.json" -- sh -c "$loop"
    ends 123 "--require: the whole is measured down to level [12]," $command --require 6 -o "$scratch/r.json" -- sh -c "$loop"
  fi
  [ -s "$scratch/r.json" ] || { echo "$command: no report"; exit 1; }
  ends 3 '' $command --require 6 -o "$scratch/r.json" -- sh -c "$loop; exit 3"
  ends 125 "neither slots nor a level" $command --require 9 -- true
done
ends 125 "--require looks at what a report has" stat --require 1 -x, -- true
