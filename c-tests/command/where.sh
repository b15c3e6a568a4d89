#!/usr/bin/env bash
# `topdown record --where`: of functions with known instructions per cycle exactly those have samples whose ratio is on the wanted side of the
# limit, and as many as they had stretches; by ipc, by terms, in perf's form; in threads, with sleeps, by an ordinary user; and what can hold
# nowhere has none. With -a and -C: of two programs on two CPUs, and of two that take turns on one, that in which it holds has its samples and
# the other one none, also where each stretch has a part of both, and after records were lost.
# needs: counters, reload
. "$(dirname "$0")/../include/case.sh"

cores=$(dirname "$(grep -ls . /sys/bus/event_source/devices/cpu*/format/acr_mask | head -n 1)")/..
name=$(basename "$(realpath "$cores")")
move=()
[ ! -e "$cores/cpus" ] || move=(taskset -c "$(cat "$cores/cpus")")
# (the kernel lowers its limit of samples, since interrupts take long here, and would throttle)
sets $kernel/perf_event_max_sample_rate 100000
sets $kernel/perf_cpu_time_max_percent 0
scratch=$(mktemp -d)
chmod 777 "$scratch"
finally "rm -rf $scratch"

# where CONDITION PERIOD SHAPE : records functions half, one, two and four, of so many instructions per cycle, in runs of 1,000,000 cycles.
where() {
  user "${move[@]}" "$topdown" record --where "$1" --period "$2" -o "$scratch/r.csv" -- "$programs/paces" 1000000 30 "$3" "$scratch/spent"
}

# has FUNCTION LOW HIGH : the counts of its samples are such a part of those that the function had of the event; INSTRUCTIONS: the event
has() {
  awk -F , -v name="$1" -v low="$2" -v high="$3" -v instructions="${instructions:-}" '
    NR == FNR { cycles[FNR] = $1; next }
    $2 == "\"" name "\"" && $4 == "own" { counted = $5 }
    END {
      k = name == "half" ? 1 : name == "one" ? 2 : name == "two" ? 3 : 4
      all = cycles[k] * (instructions == "" ? 1 : k == 1 ? 0.5 : k == 4 ? 4 : k - 1)
      part = counted / all
      if (part < low || part > high) { print name ": " part ", not " low " to " high; exit 1 }
    }' "$scratch/spent" "$scratch/r.csv"
}

# (of each run the stretches at its two ends may be in part another function's; those in which a thread was descheduled are left out)
where 'ipc<0.75' 40000 plain
has half 0.92 1; has one 0 0.04; has two 0 0.02; has four 0 0.02
where "$name/event=0x3c//$name/event=0xc0/>1.3333333333" 40000 threads
has half 0.7 1; has one 0 0.04; has two 0 0.02; has four 0 0.02
where 'ipc<0.75' 40000 sleeps
has half 0.5 1; has one 0 0.04; has two 0 0.02; has four 0 0.02
instructions=yes
where 'ipc>1.5' 60000 plain
has half 0 0.04; has one 0 0.04; has two 0.92 1.02; has four 0.92 1.02
where 'instructions/period=60000/,cycles/ratio-to-prev=0.4/' 60000 plain
has half 0 0.02; has one 0 0.02; has two 0 0.04; has four 0.92 1.02

record() { user "${move[@]}" "$topdown" record -o - "$@"; }
text=$(record --where 'ipc>7' --period 40000 -- "$programs/paces" 1000000 10 plain "$scratch/spent")
grep -q 'ipc > 7 held in 0 stretches of 40,000 instructions each: 0.0' <<< "$text"

# refused FROM CONDITION... : with these words, before the program runs
refused() {
  local words=$1 code=0
  shift
  text=$(record "$@" echo ran 2>&1) || code=$?
  [[ $code == 125 && $text == *"$words"* && $text != *$'\nran'* && $text != ran* ]] || { echo "status $code: $text; not '$words'"; return 1; }
}
refused 'nothing is no event of' --where 'cycles/nothing<1'
refused 'is a software event' --where 'page-faults/instructions>1'
refused 'too long' --where 'ipc<1' --period 140737488355328
refused 'a number above 0' --where 'instructions/period=20000/,cycles/ratio-to-prev=-1/'
refused 'and no frequency' --where 'instructions/freq=4000/,cycles/ratio-to-prev=2/'

# Whatever runs on CPUs: two programs, of which the one calls half alone and the other one four.
mapfile -t kind < <(tr , '\n' < <(cat "$cores/cpus" 2> /dev/null || cat /sys/devices/system/cpu/online) | sed 's/-/ /' | while read -r a b; do seq "$a" "${b:-$a}"; done)
first=${kind[0]} second=${kind[1]:-${kind[0]}}
for program in alpha beta; do cp "$programs/paces" "$scratch/$program"; done
mkfifo "$scratch/to-alpha" "$scratch/to-beta"
at_once="taskset -c $first $scratch/alpha 1000000 30 half $scratch/spent & taskset -c OTHER $scratch/beta 1000000 30 four $scratch/beta-spent & wait"
in_turns="taskset -c $first $scratch/alpha LENGTH 30 half-turns $scratch/spent < /dev/null 3< $scratch/to-alpha 4> $scratch/to-beta &
  taskset -c $first $scratch/beta LENGTH 30 four-turns $scratch/beta-spent < /dev/null 4> $scratch/to-alpha 3< $scratch/to-beta & wait"

# anywhere CONDITION PROGRAMS OPTION... : records CPUs while these run.
anywhere() {
  local condition=$1 programs=$2
  shift 2
  "$topdown" record --where "$condition" --period 40000 -o "$scratch/r.csv" "$@" -- bash -c "$programs"
}

# alone_has LOW HIGH [MOST] : such a part of the cycles of half has samples, and there is none of the recorder and of four, or no more
alone_has() {
  has half "$1" "$2"
  awk -F , -v most="${3:-0}" '$3 == "\"topdown\"" || $2 == "\"four\"" && $5 > 40000 * most { print; exit 1 }' "$scratch/r.csv"
}

instructions=''
anywhere 'ipc<0.75' "${at_once//OTHER/$second}" -a
alone_has 0.92 1
anywhere 'ipc<0.75' "${at_once//OTHER/$first}" -a
alone_has 0.85 1
anywhere 'ipc<0.75' "${at_once//OTHER/$second}" -C "$first"
alone_has 0.92 1
# (a stretch and a half at each end of a turn is no sample)
anywhere 'ipc<0.75' "${in_turns//LENGTH/200000}" -a
alone_has 0.6 0.9
# of both together it holds, of four alone not; each stretch is of both (but one that begins before four does)
anywhere 'ipc<2.5' "${in_turns//LENGTH/15000}" -a
alone_has 0 0.01 1
# it holds in both: each process has a row, and as many as it had stretches
anywhere 'ipc<5' "${at_once//OTHER/$first}" -a
awk -F , '$2 ~ /alpha|beta/ && $3 == "\"[process]\"" && $4 == "inclusive" && $6 > 0.45 && $6 < 0.55 { n++ } END { exit n != 2 }' "$scratch/r.csv"
# nobody takes the records of 20,000 switches; what comes then is whose it was
anywhere 'ipc<0.75' "kill -STOP \$PPID; ${in_turns//LENGTH/3000}; kill -CONT \$PPID; ${in_turns//LENGTH/200000}" -a
alone_has 0.6 0.9
if [ $device = cpu_core ]; then
  refused 'cpu_core has no auto counter reload' --where 'cpu_core/instructions//cycles>1'
  text=$(taskset -c "$(cat $pmu/cpus)" "$topdown" record --where 'ipc<0.75' -o - -- "$programs/paces" 1000000 10 plain "$scratch/spent")
  grep -q 'What ran on cpu_core is not in this' <<< "$text"
  grep -q 'a part that cannot be told' <<< "$text"
  refused "none of these CPUs is of $name (CPUs $(cat "$cores/cpus"))" -C "$(cat $pmu/cpus)" --where 'ipc<1'
  text=$("$topdown" record -a --where 'ipc<0.75' -o - true)
  grep -q 'What ran on cpu_core is not in this' <<< "$text"
  text=$("$topdown" record -C "$first" --where 'ipc<0.75' -o - true)
  [[ $text != *cpu_core* ]]
fi

sets $kernel/perf_event_paranoid 1
text=$(user "$topdown" record -C "$first" --where 'ipc<1' true 2>&1)
[[ $text == *'sysctl kernel.perf_event_paranoid=0'*CAP_PERFMON* ]]
