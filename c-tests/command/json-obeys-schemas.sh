#!/usr/bin/env bash
# What `topdown stat`, `run`, `record` and `compare` write in JSON obeys docs/schema: of all levels, metrics, threads, processes, CPUs and
# cgroups, of what is located, and of regions.
# needs: counters, explore
. "$(dirname "$0")/../include/case.sh"

python3 -c 'import jsonschema, referencing' 2> /dev/null || skip "needs Python's jsonschema"
scratch=$(mktemp -d)
finally "rm -rf $scratch"
root=/sys/fs/cgroup
[ -e $root/cgroup.procs ] || mount -t cgroup2 none $root
mkdir -p $root/one $root/two
finally "rmdir $root/one $root/two"
program=(sh -c 'i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); done')
written=0

# writes SCHEMA FILE WORDS... : what the command of these words writes, if it can, into FILE
writes() {
  local file=$scratch/$1.${2/%jsonl/json} lines=$scratch/$1.$2
  shift 2
  "$topdown" "${@//FILE/$file}" -- "${program[@]}" > "$scratch/said" 2>&1 || true
  [ "$file" = "$lines" ] || mv "$file" "$lines" 2> /dev/null || true
  if [ -s "$lines" ]; then written=$((written + 1)); else echo "not here: $*: $(tail -n 1 "$scratch/said")"; fi
}

for level in 1 2 3 4 5 6; do writes report $level.json stat --td-level $level -o FILE; done
writes report drill.json stat --drill -o FILE
writes report metrics.json stat --metrics ipc -o FILE
writes report processes.json run --per-process -o FILE
writes report all.json stat -a --kernel -o FILE
writes report inside.json run -o FILE
writes row threads.jsonl stat --per-thread -j -o FILE
writes row processes.json stat --per-process -o FILE
writes row cores.jsonl stat -a --per-core --kernel -j -o FILE
writes row cgroups.json stat -G one,two -o FILE
writes row intervals.jsonl stat -I 100 --td-level 2 -j -o FILE
writes row runs.json stat -r 2 -o FILE
writes timeline t.json stat -I 100 --timeline FILE
writes recording lines.json record --lines -o FILE
writes recording cpus.json record -a -o FILE
writes recording stops.json record --ptrace -o FILE
writes recording where.json record --where 'ipc<1' -o FILE
writes recording node.json record --locate l1_bound -o FILE
writes drill d.json record --drill -o FILE
"$topdown" compare -o "$scratch/comparison.c.json" "$scratch"/report.{1,2}.json
"$topdown" compare -o "$scratch/recording-comparison.c.json" "$scratch"/recording.{lines,cpus}.json
[ $written -ge 20 ] # (not all CPUs have all)

status=0
for schema in report row timeline recording drill comparison recording-comparison; do
  files=("$scratch/$schema".*)
  [ ! -e "${files[0]}" ] || c-tests/tools/schema $schema.schema.json "${files[@]}" || status=1
done
exit $status
