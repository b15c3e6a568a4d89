#!/usr/bin/env bash
# Four ranks by LD_PRELOAD alone, as variables tell of them, leave one report; of one that is killed the report says so, and the directory
# beside it has the rest.
# needs: nothing
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
release=$root/target/release
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export TOPDOWN_SIMULATE=1 TOPDOWN_OUTPUT=job.json PMI_SIZE=4 PMI_JOBID=j1
ranks() {
  for rank in 0 1 2 3; do
    PMI_RANK=$rank LD_PRELOAD=$release/libtopdown-preload.so sh -c "$1" 2>> said &
  done
  wait
}
of() {
  python3 -c 'import json, sys; print([rank["rank"] for rank in json.load(sys.stdin)["ranks"]])'
}
ranks 'i=0; while [ $i -lt $((1000 * (PMI_RANK + 1))) ]; do i=$((i + 1)); done'
[ "$(of < job.json)" = "[0, 1, 2, 3]" ]
[ "$(grep -c "report is in .*job.json, of 4 ranks" said)" = 1 ]
[ "$(ls)" = "$(printf 'job.json\nsaid')" ]

export TOPDOWN_OUTPUT=killed.json
ranks '[ $PMI_RANK != 2 ] || kill -9 $$' 2> /dev/null
[ "$(of < killed.json | tr -cd , | wc -c)" -ge 1 ]
"$release/topdown" report -o again.json killed.json.ranks-j1 2> /dev/null
[ "$(of < again.json)" = "[0, 1, 3]" ]
"$release/topdown" report killed.json.ranks-j1 | grep -q "! rank 2 of 4: not measured"
echo "1 passed, 0 failed, 0 skipped"
