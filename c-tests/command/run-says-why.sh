#!/usr/bin/env bash
# `topdown run` where there are no counters: the program runs as ever, and the report says why there is time alone.
# needs: no-counters
. "$(dirname "$0")/../include/case.sh"

for output in text csv; do
  code=0
  out=$("$topdown" run -o /tmp/run.$output -- sh -c 'echo as ever; exit 3' 2>&1 > /tmp/said) || code=$?
  [ $code = 3 ] && [ "$(cat /tmp/said)" = "as ever" ] || { echo "exit status $code: $(cat /tmp/said)"; exit 1; }
  [ $output != text ] || out=$(tr -s ' \n' ' ' < /tmp/run.text)
  grep -q "How slots divide cannot be told here, and this is time alone: .*$said" <<< "$out" || { echo "$output: $out"; exit 1; }
done
