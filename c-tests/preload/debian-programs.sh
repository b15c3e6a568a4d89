#!/usr/bin/env bash
# Programs that nobody recompiled, as Debian ships them, and two of our own, under `topdown run`: same output, same exit
# status, and a plausible report. With counters on the emulated machine, else (TOPDOWN_SIMULATE=1) with made-up ones. What is
# not there is installed, if this is root and not the emulated machine, or skipped by name. The last line counts.
# needs: nothing or counters
. "$(dirname "$0")/lib/programs.sh"

# The same with and without, and what the report has to have: lines of its CSV (docs/report-formats.md) in which shares add up,
# threads' times are within the wall time, and there are so many threads.
same() { # same THREADS REGIONS COMMAND...
  local threads=$1 regions=$2 without with started ended wanted=()
  shift 2
  [ -z "$regions" ] || wanted=(--regions "$regions")
  "$@" < /dev/null > "$scratch/without.out" 2> "$scratch/without.err"
  without=$?
  started=$(date +%s%N)
  "$topdown" run -o "$scratch/report.csv" "${wanted[@]}" -- "$@" < /dev/null > "$scratch/with.out" 2> "$scratch/with.err"
  with=$?
  ended=$(date +%s%N)
  [ $with = $without ] || { echo "exit status $with, not $without"; cat "$scratch/with.err"; return 1; }
  cmp "$scratch/without.out" "$scratch/with.out" && diff "$scratch/without.err" "$scratch/with.err" || return
  awk -F, -v wall=$((ended - started)) -v threads="$threads" '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    function near(a, b) { return a > b - 1e-6 && a < b + 1e-6 }
    function wrong(what) { print "line " NR ": " what ": " $0; bad = 1 }
    $at["region"] == "" && $at["pid"] != "" && $at["tid"] != "" { found++; if ($at["time_ns"] > wall) wrong("longer than the wall time") }
    $at["slots"] > 0 && $at["retiring"] != "" {
      sum = 0
      for (i = at["retiring"]; i <= at["backend_bound"]; i++) { sum += $i; if ($i < 0 || $i > 1) wrong("no share") }
      if (!near(sum, 1)) wrong("shares that add up to " sum)
      shares++
    }
    END {
      if (found < threads) { print "only " found " threads of " threads; bad = 1 }
      if (!shares) { print "no shares at all"; bad = 1 }
      exit bad
    }' "$scratch/report.csv" || { cat "$scratch/report.csv"; return 1; }
}

# Executions of a region of the last report, in all.
executions() { awk -F, -v name="$1" '$1 == name && $2 == "" { print $6 }' "$scratch/report.csv"; }

executed() { # executed NAME LEAST MOST
  local found
  found=$(executions "$1")
  if [ "${found:-0}" -lt "$2" ] || [ "${found:-0}" -gt "$3" ]; then
    echo "$1: '$found' executions, not $2 to $3"
    cut -d, -f1-12 "$scratch/report.csv"
    return 1
  fi
}

# On the emulated machine the gate has an eighth of the work.
share=1
[ -z "${GATE:-}" ] || [ -z "${MACHINE:-}" ] || share=8

bzip2_packs() {
  local bytes=$((4000000 / share))
  head -c $bytes /dev/zero | openssl_like > "$scratch/data"
  same 1 'libbz2*:BZ2_bzWrite' bzip2 -kc "$scratch/data" || return
  # it writes in pieces of 5,000 bytes
  executed BZ2_bzWrite $((bytes / 5000)) $((bytes / 5000 + 1)) || return
  same 1 '' bzip2 -t "$scratch/nowhere.bz2"
}
# bytes that do not pack to nothing, the same each time
openssl_like() { awk 'BEGIN { srand(1); for (n = 0; n < '$((4000000 / share))' / 8; n++) printf "%07d\n", int(rand() * 9999999) }'; }

sqlite3_asks() {
  same 1 'libsqlite3*:sqlite3_step' sqlite3 :memory: 'create table t (n);
    with recursive c (n) as (select 1 union all select n + 1 from c where n < '$((100000 / share))') insert into t select n from c;
    select count(*), sum(n) from t; select n from t where n % '$((25000 / share))' = 0;' || return
  # at least a step for each statement, and one for each row that comes out
  executed sqlite3_step 8 100 || return
  same 1 '' sqlite3 :memory: 'select nonsense'
}

python=$(for one in /usr/bin/python3 python3; do command -v $one; done | head -n 1)
python_calls() {
  cat > "$scratch/program.py" << 'P'
import math, subprocess, sys, threading
total = []
def work(n):
    total.append(sum(math.exp(k / 1000) for k in range(20000 // int(sys.argv[1]))))
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print(len(total), round(total[0]))
print(subprocess.run(["sh", "-c", "echo child; exit 5"], capture_output=True))
print(subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True).stdout)
sys.exit(9)
P
  same 7 'libm.so*:exp' "$python" "$scratch/program.py" $share && executed exp $((80000 / share)) $((80000 / share))
}

cxx_throws() {
  cat > "$scratch/program.cpp" << 'P'
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
static int deeper(int n) { if (n == 0) throw std::runtime_error("deep"); return deeper(n - 1) + 1; }
int main()
{
    std::map<std::string, int> words;
    std::vector<std::thread> threads;
    int caught[3] = {};
    for (int t = 0; t < 3; t++)
        threads.emplace_back([&caught, t] {
            for (int k = 0; k < 1000; k++)
                try { deeper(k % 20); } catch (const std::exception &) { caught[t]++; }
        });
    for (auto &thread : threads)
        thread.join();
    for (int k = 0; k < 100000; k++)
        words[std::to_string(k % 1000)]++;
    std::printf("%d %zu\n", caught[0] + caught[1] + caught[2], words.size());
    return 17;
}
P
  g++ -O1 -pthread "$scratch/program.cpp" -o "$scratch/program" && same 4 '' "$scratch/program"
}

threads_wait() {
  cat > "$scratch/program.c" << 'P'
#include <pthread.h>
#include <stdio.h>
static pthread_barrier_t barrier;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long long sum;
static void *work(void *unused)
{
    for (int turn = 0; turn < 100; turn++) {
        pthread_barrier_wait(&barrier);
        for (volatile int k = 0; k < 10000; k++) {}
        pthread_mutex_lock(&lock);
        sum += turn;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}
int main(void)
{
    pthread_t threads[8];
    pthread_barrier_init(&barrier, NULL, 8);
    for (int k = 0; k < 8; k++)
        pthread_create(&threads[k], NULL, work, NULL);
    for (int k = 0; k < 8; k++)
        pthread_join(threads[k], NULL);
    printf("%lld\n", sum);
    return sum == 8 * 4950 ? 0 : 1;
}
P
  gcc -O1 -pthread "$scratch/program.c" -o "$scratch/program" && same 9 '' "$scratch/program"
}

program bzip2 bzip2 bzip2 bzip2_packs
program sqlite3 sqlite3 sqlite3 sqlite3_asks
program python3 "${python:-python3}" python3 python_calls
program "a C++ program" g++ g++ cxx_throws
program "a pthread program" gcc gcc threads_wait

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
