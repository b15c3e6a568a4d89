#!/usr/bin/env bash
# `topdown record --where`: of functions with known instructions per cycle exactly those have samples whose ratio is on the wanted side of the
# limit, and as many as they had stretches; by ipc, by terms, in perf's form; in threads, with sleeps, by an ordinary user; and what can hold
# nowhere has none.
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

if [ $device = cpu_core ]; then
  refused 'cpu_core has no auto counter reload' --where 'cpu_core/instructions//cycles>1'
  text=$(taskset -c "$(cat $pmu/cpus)" "$topdown" record --where 'ipc<0.75' -o - -- "$programs/paces" 1000000 10 plain "$scratch/spent")
  grep -q 'What ran on cpu_core is not in this' <<< "$text"
  grep -q 'a part that cannot be told' <<< "$text"
fi
