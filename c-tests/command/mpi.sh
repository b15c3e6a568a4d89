#!/usr/bin/env bash
# `mpirun -n 4 topdown run -o FILE` of Open MPI and of MPICH leaves one report, with each rank and with time in MPI as regions: how often is
# known, also by Fortran's names and where MPI calls itself; MPI_Pcontrol is honoured, and a rank that is killed is said.
# needs: nothing
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
topdown=$root/target/release/topdown
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export TOPDOWN_SIMULATE=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 MPI_JOB_FILE=$scratch/file
passed=0 skipped=0
for mpi in openmpi mpich; do
  if ! command -v mpirun.$mpi > /dev/null || ! command -v mpicc.$mpi > /dev/null; then
    echo "skip: $mpi is not installed: apt-get install $([ $mpi = openmpi ] && echo openmpi-bin libopenmpi-dev || echo mpich libmpich-dev)"
    skipped=$((skipped + 1))
    continue
  fi
  fortran=$([ $mpi = openmpi ] && echo -lmpi_mpifh || echo -lmpichfort)
  mpicc.$mpi -O1 -I"$root/include" -o job "$root/c-tests/command/lib/mpi_job.c" $fortran
  rm -f file
  timeout 120 mpirun.$mpi -n 4 "$topdown" run --inside -o job.json -- ./job > out 2> said || { cat said; exit 1; }
  grep -qx "6 of 4 ranks, 0123" out
  [ "$(cat file)" = 00000000000000010000000200000003 ]
  grep -q "report is in job.json, of 4 ranks" said
  [ "$(ls)" = "$(printf 'file\njob\njob.json\nout\nsaid')" ]
  timeout 120 mpirun.$mpi -n 4 "$topdown" run --inside -o killed.txt -- ./job 2 > /dev/null 2>&1 && exit 1
  grep -q "rank 2 of 4: killed by signal 9" killed.txt || { cat killed.txt; exit 1; }
  rm -rf killed.txt*
  python3 - << 'P'
import json
report = json.load(open("job.json"))
regions = {region["name"]: region for region in report["regions"]}
ranks = report["ranks"]
assert [(rank["rank"], rank["ended"], rank["status"]) for rank in ranks] == [(n, "exited", 0) for n in range(4)], ranks
for name in "slots", "time_ns":
    assert sum(rank["inclusive"][name] for rank in ranks) == report["whole"]["inclusive"][name]
wanted = {"MPI_Init": 1, "MPI_Finalize": 1, "MPI_Allreduce": 10, "MPI_Barrier": 3, "MPI_File_open": 1,
          "MPI_File_write_at_all": 1, "MPI_File_close": 1, "MPI_Alltoallv": 1}
found = {name: region["executions"] for name, region in regions.items() if name.startswith("MPI_")}
assert found == {name: 4 * times for name, times in wanted.items()}, found
assert regions["MPI"]["executions"] == sum(found.values()), regions["MPI"]["executions"]
assert all(region[odd] == 0 for region in regions.values() for odd in ("nested", "unended", "unbalanced")), regions
work, mpi = regions["work"]["over_ranks"], regions["MPI"]["over_ranks"]
assert (work["slowest"], work["fastest"], work["ranks"], mpi["ranks"]) == (3, 0, 4, 4), work
assert abs(work["imbalance"] - (1 - work["mean_ns"] / work["max_ns"])) < 1e-6, work
P
  passed=$((passed + 1))
done
echo "$passed passed, 0 failed, $skipped skipped"
