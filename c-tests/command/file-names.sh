#!/usr/bin/env bash
# Names of files in which patterns say who wrote them; a report does not overwrite what another command wrote meanwhile; `-o -` without
# standard output fails before the command runs; rows in a .json file are one document; a missing TMPDIR keeps no program from running.
# needs: counters or general-counters or no-counters
. "$(dirname "$0")/../include/case.sh"
dir=$(mktemp -d)
cd "$dir"
fail() { echo "$*"; ls; exit 1; }

for rank in 0 1; do
  OMPI_COMM_WORLD_RANK=$rank "$topdown" run -o 'r.%r.%n.json' -- /bin/true
  [ -s r.$rank.true.json ] || fail "no report of rank $rank"
done
"$topdown" stat -o 'p.%p.%h.json' -- /bin/true
[ -s p.*."$(hostname)".json ] || fail "no report with process id and host"
code=0
"$topdown" stat -o '%r.json' -- touch ran 2> said || code=$?
[ $code = 125 ] && [ ! -e ran ] && grep -q SLURM_PROCID said || fail "without a rank: exit status $code: $(cat said)"

for k in 1 2; do
  TOPDOWN_SIMULATE=1 TOPDOWN_OUTPUT='l.%p.%n.%r.json' SLURM_PROCID=$k LD_PRELOAD=$(dirname "$topdown")/libtopdown-preload.so \
    sh -c 'echo $$ > pid; :'
  grep -q '"pid": '"$(cat pid)" "l.$(cat pid).sh.$k.json" || fail "no report of process $(cat pid), rank $k"
done
code=0
"$topdown" record -o '%r.json' -- touch ran 2> said || code=$?
[ $code = 125 ] && [ ! -e ran ] && grep -q SLURM_PROCID said || fail "record without a rank: exit status $code: $(cat said)"
if [[ " $has " != *no-counters* ]]; then
  SLURM_PROCID=3 "$topdown" record -o 'c.%r.%n.recording' -- true
  [ -s c.3.true.recording ] || fail "no recording of rank 3"
  SLURM_PROCID=3 "$topdown" record --from c.3.true.recording -o 'c.%r.csv'
  [ -s c.3.csv ] || fail "no profile of rank 3"
fi

for subcommand in run stat; do
  rm -f same.*
  "$topdown" $subcommand -o same.json -- "$topdown" $subcommand -o same.json -- sh -c 'exit 7' 2> said || [ $? = 7 ]
  [ "$(ls same.* | wc -l)" = 2 ] && grep -q 'written by another command meanwhile' said || fail "$subcommand: $(cat said)"
done

# the library alone: both begin before one ends
for k in 1 2; do
  TOPDOWN_SIMULATE=1 TOPDOWN_OUTPUT=alone.json LD_PRELOAD=$(dirname "$topdown")/libtopdown-preload.so \
    sh -c 'echo begun > begun.'$k'; until [ -e go ]; do :; done' 2>> said.alone &
done
until [ -s begun.1 ] && [ -s begun.2 ]; do :; done
touch go
wait
[ "$(ls alone.* | wc -l)" = 2 ] && grep -q 'written by another command meanwhile' said.alone || fail "the library alone: $(cat said.alone)"

for subcommand in run stat; do
  code=0
  "$topdown" $subcommand -o - -- touch ran >&- 2> said || code=$?
  [ $code = 125 ] && [ ! -e ran ] && grep -q 'standard output' said || fail "$subcommand -o -: exit status $code: $(cat said)"
done

code=0
TMPDIR=/nowhere/at/all "$topdown" run -o t.json -- sh -c 'exit 7' || code=$?
[ $code = 7 ] || fail "TMPDIR: exit status $code"

if "$topdown" stat --per-process -o rows.json -- sh -c '/bin/true; /bin/true' 2> said && [ -s rows.json ]; then
  head -c 1 rows.json | grep -q '\[' && tail -n 1 rows.json | grep -qx ']' || fail "rows: $(cat rows.json)"
fi
rm -r "$dir"
