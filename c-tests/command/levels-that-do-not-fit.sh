#!/usr/bin/env bash
# `--td-level` of a level that cannot be counted here: one line says so before the command starts, and why, and the deepest level that can be
# is counted; beside the NMI watchdog, with few counters, on a hybrid CPU, and beside others who hold counters. Where the level can be counted,
# whole or in parts, nothing is said.
# needs: any
. "$(dirname "$0")/../include/case.sh"

[ "$has" != no-counters ] || skip "nothing is counted here"
scratch=$(mktemp -d)
finally "rm -rf $scratch"

# counts LEVEL GOT WORD COMMAND... : `topdown COMMAND --td-level LEVEL` counts level GOT, and says why it is no deeper
counts() {
  local level=$1 got=$2 word=$3 code=0 work said
  shift 3
  case $got in 1) work=3000;; 2) work=60000;; *) work=250000;; esac # (groups that take turns need eight of them)
  "$topdown" "$@" --td-level "$level" --require "$got" -o "$scratch/r.json" -- \
    sh -c "echo ran >&2; i=0; while [ \$i -lt $work ]; do i=\$((i + 1)); done" 2> "$scratch/said" || code=$?
  said=$(grep -c -- "level $got is counted, the deepest that can be here: .*$word" "$scratch/said" || true)
  [ $code = 0 ] && ! grep -q 'the tree \(is\|are\) not counted\|is measured' "$scratch/said" &&
    [ "$said" = $((got < level)) ] && ! sed '1,/^ran$/d' "$scratch/said" | grep -q -- --td-level &&
    ! grep -q '"trouble": "[^"]' "$scratch/r.json" || { echo "$* --td-level $level for $got: exit status $code: $(cat "$scratch/said")"; exit 1; }
}

both() { # both LEVEL GOT WORD : by `stat` and by `run`
  counts "$@" stat
  counts "$@" run
}

case $MACHINE-$device in
  zen[45]-*)
    sets $kernel/nmi_watchdog 1
    both 2 1 'NMI watchdog'
    both 3 1 'NMI watchdog'
    sets $kernel/nmi_watchdog 0
    both 2 2 ''
    both 3 2 'no deeper level is published'
    ;;
  guest-sid-*)
    both 2 1 'too few general counters'
    both 6 1 'too few general counters'
    ;;
  *-cpu_core)
    both 2 2 ''
    both 3 2 'P-cores alone'
    ;;
  spr-*)
    both 3 3 ''
    command -v perf > /dev/null || exit 0
    event=cpu/event=0xc4/
    perf stat -o /dev/null -a -e "{$event,$event,$event,$event}:D" & # (with a command it would not end before that)
    finally "kill $!"
    sleep 1
    counts 2 1 'others hold' stat
    counts 2 2 '' run
    ;;
esac
