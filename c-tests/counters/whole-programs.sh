#!/usr/bin/env bash
# Whole programs, as Debian ships them, under `topdown run` by general counters and under `topdown stat`: each share is within a
# point of what `perf stat` counts of the same events, and of the truth. Each process has a mix of its own, which a preloaded
# library sets.
# needs: counters, not-hybrid
. "$(dirname "$0")/../include/case.sh"

case $MACHINE in dmr-*) skip "the events of this core are not known";; esac
for command in perf gcc bzip2 sqlite3; do command -v $command > /dev/null || skip "$command is not installed"; done
scratch=$(mktemp -d)
finally "rm -rf $scratch"
cp "$(command -v perf)" "$scratch/perf" # (which is slow to load from where it is)
cat > "$scratch/mix.c" << 'C'
#include <stdlib.h>
#include "vm/mix.h"
static __attribute__((constructor)) void mix_of_process(void)
{
    static const struct vm_mix mixes[] = {{40, 8, 8, 4, 12, 8, 8}, {8, 32, 8, 8, 4, 12, 4}, {8, 4, 40, 2, 8, 6, 12}};
    const char *mix = getenv("MIX");
    if (mix)
        vm_mix_set(mixes[atoi(mix)], 0, 0, 0);
}
C
gcc -shared -fPIC -Ic-tests "$scratch/mix.c" -o "$scratch/mix.so"
awk 'BEGIN { srand(1); for (n = 0; n < 50000; n++) printf "%07d\n", int(rand() * 9999999) }' > "$scratch/data"
bzip2="bzip2 -kc $scratch/data"
sqlite3="sqlite3 :memory: 'create table t (n); with recursive c (n) as (select 1 union all select n + 1 from c where n < 30000)
  insert into t select n from c; select count(*), sum(n) from t;'"

events=slots
for event in c2,umask=2 a4,umask=2 9c,umask=1; do events+=,cpu/event=0x$event/; done
[ "$level" = 1 ] || for event in c2,umask=1 a4,umask=8 9c,umask=1,cmask=6 a4,umask=0x10; do events+=,cpu/event=0x$event/; done

agree() { # agree NAME COMMAND [RETIRING BAD FRONTEND] : as sh runs it; the truth, in 1/64 of slots
  local name=$1 command=$2 way
  "$scratch/perf" stat -x, -o "$scratch/told" -e "{$events}:u" -- env LD_PRELOAD="$scratch/mix.so" sh -c "$command" > /dev/null || return
  for way in run stat; do
    TOPDOWN_SOURCE=counters LD_PRELOAD="$scratch/mix.so" "$topdown" $way -o "$scratch/report.csv" -- sh -c "$command" > /dev/null || return
    as_perf "$name, topdown $way" "${3:-}" || { cat "$scratch/told"; return 1; }
  done
}

as_perf() { # as_perf NAME TRUTH : what the report says is what perf told
  awk -F, -v name="$1" -v level="$level" -v truth="$2" '
    function is(what, ours, theirs) {
      if (ours == "" || ours - theirs > 0.01 || theirs - ours > 0.01) { print name ": " what ": " ours ", but " theirs; bad = 1 }
    }
    FNR == NR { if ($1 + 0 > 0 && $2 == "") count[++n] = $1; next }
    FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $1 == "" && $2 == "" && $3 == "" {
      found = 1
      slots = count[1]
      bad_slots = slots - count[2] - count[3] - count[4]
      is("retiring", $at["retiring"], count[2] / slots)
      is("backend bound", $at["backend_bound"], count[3] / slots)
      is("frontend bound", $at["frontend_bound"], count[4] / slots)
      is("bad speculation", $at["bad_speculation"], bad_slots / slots)
      if (level == 2) {
        is("heavy operations", $at["heavy_operations"], count[5] / slots)
        is("branch mispredicts", $at["branch_mispredicts"], count[6] / slots)
        is("fetch latency", $at["fetch_latency"], 6 * count[7] / slots)
        is("memory bound", $at["memory_bound"], count[8] / slots)
      }
      if (truth != "") {
        split(truth, of, " ")
        is("retiring, in truth", $at["retiring"], of[1] / 64)
        is("bad speculation, in truth", $at["bad_speculation"], of[2] / 64)
        is("frontend bound, in truth", $at["frontend_bound"], of[3] / 64)
      }
      if ($at["running"] < 0.999) { print name ": it ran " $at["running"] " of the time"; bad = 1 }
      printf "%s: %.0f slots by perf, %.0f by the library; retiring %.4f, %.4f\n", name, slots, $at["slots"], count[2] / slots, $at["retiring"]
    }
    END { if (!found || n != (level == 2 ? 8 : 4)) { print name ": no figures"; bad = 1 }; exit bad }
  ' "$scratch/told" "$scratch/report.csv"
}

agree bzip2 "MIX=0 exec $bzip2" "40 8 8"
agree sqlite3 "MIX=1 exec $sqlite3" "8 32 8"
agree "both of them" "MIX=0 $bzip2; MIX=1 $sqlite3; MIX=2 sort $scratch/data"
