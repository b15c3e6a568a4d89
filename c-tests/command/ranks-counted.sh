#!/usr/bin/env bash
# Four ranks with a mix of their own each, as variables tell of them, and by mpirun of MPICH where it is: the one report has each rank's
# shares within its bound, and the whole is their sum, and its bound theirs, in slots.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

plain=$PWD/target/c-tests/lib/plain
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat > "$scratch/rank" << 'S'
rank=$PMI_RANK
"$1" $((40 * (rank + 1))) $((4 + 6 * rank)) 8 8 4 4 4 4
[ $? = 7 ]
S
check() {
  python3 - "$1" << 'P'
import json, sys
report = json.load(open(sys.argv[1]))
ranks, whole = report["ranks"], report["whole"]["inclusive"]
assert [rank["rank"] for rank in ranks] == [0, 1, 2, 3] and report["outside"], report["ranks"]
slots = retiring = error = 0
for rank in ranks:
    one, own = rank["inclusive"]["level_1"], rank["inclusive"]["slots"]
    # (the shell before the program has the machine's mix, 26 of 64)
    truth = (4 + 6 * rank["rank"]) / 64
    assert abs(one["retiring"] - truth) <= one["error"] + 0.03, (rank["rank"], truth, one)
    slots, retiring, error = slots + own, retiring + own * one["retiring"], error + own * one["error"]
assert slots == whole["slots"] == sum(core["slots"] for core in report["outside"]["cores"])
assert abs(retiring / slots - whole["level_1"]["retiring"]) < 1e-6, whole
assert abs(error / slots - whole["level_1"]["error"]) < 1e-6, (error / slots, whole)
P
}
cd "$scratch"
for rank in 0 1 2 3; do
  PMI_RANK=$rank PMI_SIZE=4 PMI_JOBID=j1 "$topdown" run -o job.json -- sh rank "$plain" 2>> said &
done
wait
check job.json || { cat said; exit 1; }
if command -v mpirun.mpich > /dev/null; then
  mpirun.mpich -n 4 "$topdown" run -o mpi.json -- sh rank "$plain" 2>> said
  check mpi.json || { cat said; exit 1; }
fi
