#!/usr/bin/env bash
# What -o FILE.parquet writes, read by DuckDB: sums over the files of several runs are what topdown report makes of all their tables, and
# each query of docs/lake.md answers.
# needs: nothing
set -euo pipefail
cd "$(dirname "$0")/../.."
topdown=$PWD/target/release/topdown
tools=$PWD/target/c-tests/duckdb
python=python3
if ! python3 -c 'import duckdb' 2> /dev/null; then
  python=$tools/bin/python3
  if ! "$python" -c 'import duckdb' 2> /dev/null && ! { python3 -m venv "$tools" && "$tools/bin/pip" -q install 'duckdb>=1.1'; } > /dev/null 2>&1; then
    echo "skip: DuckDB is not installed, and cannot be had: pip install duckdb"
    echo "0 passed, 0 failed, 1 skipped"
    exit
  fi
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat > "$scratch/work.c" << 'C'
#include <stdlib.h>
static volatile unsigned long sum;
#define WORK(name) __attribute__((noinline)) void name(long n) { for (long i = 0; i < n; i++) sum += i; }
WORK(work_inner) WORK(work_other)
__attribute__((noinline)) void work_outer(long n) { work_inner(n); work_inner(n / 2); sum++; }
int main(int count, char **words)
{
	for (int k = 0; k < 20; k++) {
		work_outer(count > 1 ? atol(words[1]) : 100000);
		work_other(200000);
	}
}
C
"${CC:-cc}" -g -O1 -o "$scratch/work" "$scratch/work.c"
mkdir "$scratch/lake"
export TOPDOWN_SIMULATE=1
for k in 1 2 3; do
  mkdir "$scratch/tables$k"
  for n in 1 2; do
    PMI_RANK=$n TOPDOWN_FUNCTIONS='work_*' TOPDOWN_OUTPUT="$scratch/tables$k/work.topdown" LD_PRELOAD=$PWD/target/release/libtopdown-preload.so \
      "$scratch/work" $((k * n * 100000))
  done
  "$topdown" report -o "$scratch/$k.parquet" "$scratch/tables$k" 2> /dev/null
done
"$topdown" report -o "$scratch/all.json" "$scratch"/tables? 2> /dev/null
"$topdown" run --functions 'work_*' -o "$scratch/lake/run.%p.parquet" -- "$scratch/work" 3000000 2> /dev/null
"$topdown" run --functions 'work_*' -o "$scratch/lake/run.%p.parquet" -- "$scratch/work" 1000000 2> /dev/null
"$topdown" stat -o "$scratch/lake/stat.%p.parquet" -- "$scratch/work" 1000000 2> /dev/null

"$python" - "$scratch" docs/lake.md << 'P'
import json, os, re, sys, duckdb
scratch, page = sys.argv[1], open(sys.argv[2]).read()
os.chdir(scratch)
sql = duckdb.connect().execute
report = json.load(open("all.json"))
sql("CREATE VIEW merged AS SELECT * FROM read_parquet('?.parquet')")

def compare(name, of, figures, part):
    rows = sql(f"SELECT node, level, SUM(slots), SUM(total), SUM(low), SUM(high), SUM(time_ns) FROM merged WHERE {of} AND part = '{part}' GROUP BY ALL").fetchall()
    rows = {row[0]: row[1:] for row in rows}
    _, slots, *_, time_ns = rows.pop("slots")
    assert (slots, time_ns) == (figures["slots"], figures["time_ns"]), (name, part, slots, figures["slots"])
    assert rows.keys() == figures["tree"].keys() and len(rows) >= 12, (name, rows.keys())
    for node, (level, slots, total, low, high, _) in rows.items():
        told = figures["tree"][node]
        share, low, high = slots / total, low / total, high / total
        rounding = 1e-6
        assert low - rounding <= told["value"] <= high + rounding, (name, node, low, told, high)
        assert told["low"] - rounding <= share <= told["high"] + rounding, (name, node, share, told)
        assert abs(share - told["value"]) < 1e-3, (name, node, share, told)

for part in "inclusive", "exclusive":
    for what in "process", "thread", "whole":
        compare(what, f"what = '{what}'", report["whole"][part], part)
    assert len(report["regions"]) == 3
    for region in report["regions"]:
        compare(region["name"], f"what = 'region' AND region = '{region['name']}'", region[part], part)
assert sql("SELECT COUNT(DISTINCT pid), COUNT(DISTINCT path), MIN(path) FROM merged WHERE what = 'process'").fetchall() == [(6, 1, "simulated")]

setup, = re.findall(r"```sql setup\n(.*?)```", page, re.S)
sql(setup)
queries = re.findall(r"```sql\n(.*?)```", page, re.S)
assert len(queries) == 10, len(queries)
for query in queries:
    done = sql(query)
    names = [column[0] for column in done.description]
    rows = done.fetchall()
    assert rows, query
    for row in rows:
        row = dict(zip(names, row))
        for name, cell in row.items():
            assert cell is not None, (query, row)
            assert name not in ("share", "low", "high") or 0 <= cell <= 1, (query, row)
# (labels that only a run has)
host = os.uname().nodename
assert sql("SELECT host, rank, COUNT(DISTINCT pid) FROM merged WHERE what = 'thread' GROUP BY ALL ORDER BY rank").fetchall() == [(host, "1", 3), (host, "2", 3)]
assert sql("SELECT COUNT(DISTINCT host), MIN(host), COUNT(DISTINCT pid) FROM lake WHERE what = 'whole'").fetchall() == [(1, host, 3)]
sql("CREATE VIEW stat AS SELECT * FROM 'lake/stat.*.parquet' WHERE node = 'slots' AND part = 'inclusive'")
whole, parts = sql("SELECT SUM(slots) FILTER (what = 'whole'), SUM(slots) FILTER (what = 'interval') FROM stat").fetchone()
assert whole == parts, (whole, parts)
P
echo "1 passed, 0 failed, 0 skipped"
