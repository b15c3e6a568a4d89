#!/usr/bin/env bash
# What `topdown check` says can be done here is done, as far as it says, and what it says cannot be done is not: as root, and as an ordinary
# user at each level of perf_event_paranoid, and with the NMI watchdog on and off; and what it says permits the rest does.
# needs: any
. "$(dirname "$0")/../include/case.sh"

scratch=$(mktemp -d)
finally "rm -rf $scratch"
chmod 777 "$scratch"
sets $kernel/perf_event_paranoid 2
work() { echo "i=0; while [ \$i -lt $1 ]; do i=\$((i + 1)); done"; }
short=$(work 3000) some=$(work 60000) long=$(work 700000) # (of level 6 dozens of groups take turns)
as=()
situation=''
# (what goes down to the last level takes long: a user has it as root has, and in the gate `run` as `stat`)
deep='stat run drill'
[ -z "${GATE:-}" ] || deep='stat drill'
# (the whole of a hybrid CPU's E-cores may have fewer levels)
[ $device = cpu ] || taskset -cp "$(cat $pmu/../cpu_atom/cpus)" $$ > /dev/null

# one_a_line : of the last check each ability
one_a_line() { tr -d '\n' < "$scratch/check.json" | sed 's/"findings".*//; s/{ *"name"/\n&/g'; echo; }

# abilities : a line for each: its name, whether it can be done, level, how
abilities() {
  one_a_line | sed -nE 's/.*"name": "([a-z_]*)", *"can": ([a-z]*), *"level": ([a-z0-9]*), *"how": "?([a-z]*).*/\1 \2 \3 \4/p'
}

# remedy NAME REACH : what the last check says to do
remedy() { one_a_line | grep "\"name\": \"$1\"" | sed -nE "s/.*\"reach\": \"$2\", *\"what\": \"(([^\"\\]|\\\\.)*)\".*/\1/p" | sed 's/\\"/"/g; s/\\u0026/\&/g'; }

check() { "${as[@]}" "$topdown" check --json > "$scratch/check.json" || true; }

# ends STATUS WORD ARGUMENT... : topdown ends so ("no": not with 0), and says this ("": whatever)
ends() {
  local status=$1 word=$2 code=0
  shift 2
  rm -f "$scratch"/r.*
  "${as[@]}" "$topdown" "$@" > /dev/null 2> "$scratch/said" || code=$?
  [[ $code = "$status" || $status = no && $code != 0 ]] && { [ -z "$word" ] || grep -q -- "$word" "$scratch/said"; } && return
  echo "$situation: topdown $*: exit status $code, not $status, or not '$word': $(cat "$scratch/said")"
  abilities
  return 1
}

# times COMMAND... : the report has times of threads, and no slots
times() {
  ends 123 'no slots of the whole' "$@" --require slots -o "$scratch/r.csv" -- sh -c "$some"
  sed -n 2p "$scratch/r.csv" | grep -q ',yes,[1-9][0-9]*,' || { echo "$situation: $*: no times: $(cat "$scratch/r.csv")"; return 1; }
}

# counts COMMAND CAN LEVEL : down to this level, and not further
counts() {
  local command=$1 level=$3 asked=$3 work=$short
  [ "$2" = true ] || { ends 123 'no slots of the whole' "$command" --require slots -o "$scratch/r.json" -- sh -c "$short"; return; }
  [[ $level -lt 3 || " $deep " = *" $command "* ]] || asked=2
  case $asked in 1) ;; 2) work=$some;; *) work=$long;; esac
  ends 0 '' "$command" --td-level "$asked" --require "$asked" -o "$scratch/r.json" -- sh -c "$work"
  [ "$level" -ge 6 ] ||
    ends 123 "measured down to level $level" "$command" --td-level 6 --require $((level + 1)) -o "$scratch/r.json" -- sh -c "$work"
}

# records CAN HOW OPTION... : slots, time alone, or nothing
records() {
  local can=$1 how=$2
  shift 2
  case $can-$how in
    true-slots) ends 0 '' record "$@" --require slots -o "$scratch/r.csv" -- sh -c "$some";;
    true-time)
      ends 123 'slots are not told' record "$@" --require slots -o "$scratch/r.csv" -- sh -c "$some"
      [ "$(wc -l < "$scratch/r.csv")" -gt 1 ] || { echo "$situation: no function has time: $(cat "$scratch/r.csv")"; return 1; };;
    *) ends no '' record "$@" --require slots -o "$scratch/r.csv" -- sh -c "$short";;
  esac
}

try() { # try NAME CAN LEVEL HOW
  local name=$1 can=$2 level=$3 how=$4
  case $name-$can in
    run-true) if [ "$how" = time ]; then times run; else counts run "$can" "$level"; fi;;
    stat-* | run-*) counts "$name" "$can" "$level";;
    regions-true)
      [ "$how" != time ] || { times run --inside; return; }
      ends 0 '' run --inside --require slots -o "$scratch/r.txt" -- sh -c "$short"
      case $how in rdpmc) how='by RDPMC';; read) how='by read(2)';; esac
      tr -s ' \n' ' ' < "$scratch/r.txt" | grep -qF "read $how" || { echo "$situation: not $how: $(cat "$scratch/r.txt")"; return 1; };;
    regions-false) ends 123 'no slots' run --inside --require slots -o "$scratch/r.txt" -- sh -c "$short";;
    record-*) records "$can" "$how";;
    record_ptrace-*) records "$can" "$how" --ptrace;;
    record_all_cpus-*) records "$can" "$how" -a;;
    drill-true) [[ " $deep " != *' drill '* ]] || ends 0 '' stat --drill --require 3 -o "$scratch/r.json" -- sh -c "$long";;
    drill-false) ends no '' stat --drill --require 3 -o "$scratch/r.json" -- sh -c "$short";;
    record_tpebs-true) ends 0 '' stat --record-tpebs -o "$scratch/r.txt" -- sh -c "$some"; ! grep -q 'cannot be sampled' "$scratch/said";;
    record_tpebs-false) ends 125 '' stat --record-tpebs -- sh -c "$short" || ends 0 'nothing is measured\|cannot be sampled' stat --record-tpebs -o "$scratch/r.txt" -- sh -c "$short" ;;
    kernel-true) ends 0 '' stat --kernel --require slots -o "$scratch/r.json" -- sh -c "$short";;
    kernel-false) ends 123 'no slots' stat --kernel --require slots -o "$scratch/r.json" -- sh -c "$short";;
    all_cpus-true) ends 0 '' stat -a --require slots -o "$scratch/r.json" -- sh -c "$short";;
    all_cpus-false) ends 125 '' stat -a --require slots -o "$scratch/r.json" -- sh -c "$short";;
    *) echo "$situation: what is $name?"; return 1;;
  esac
}

# holds SITUATION : whatever check says there
holds() {
  local name can level how tried=0
  situation=$1
  check
  while read -r name can level how; do
    try "$name" "$can" "$level" "$how"
    tried=$((tried + 1))
  done < <(abilities)
  [ $tried = 10 ] || { echo "$situation: $tried abilities: $(cat "$scratch/check.json")"; exit 1; }
}

holds "root"
deep=''
as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
holds "a user at 2"
if [[ $MACHINE == zen* && $(cat $kernel/nmi_watchdog) = 1 ]]; then # (it has a counter that groups need)
  sets $kernel/nmi_watchdog 0
  holds "a user at 2 without the watchdog"
fi

# What is said to permit it does: once for all, or for this command.
sudo() { "$@"; }
permits() { # permits NAME : the first remedy, from what is refused at 4
  local remedy
  echo 4 > $kernel/perf_event_paranoid
  check
  remedy=$(remedy "$1" once)
  [ -n "$remedy" ] || { echo "no remedy of $1: $(cat "$scratch/check.json")"; return 1; }
  eval "${remedy%% (on the host)}" > /dev/null
  check
  [ "$(abilities | grep "^$1 true" | grep -cvE '^(run|regions) true null time$')" = 1 ] || { echo "$remedy: not $1: $(cat "$scratch/check.json")"; return 1; }
}
echo 4 > $kernel/perf_event_paranoid
holds "a user at 4"
abilities | grep -vE '^(record_ptrace|run|regions) true null time$' | grep -q ' true' && { echo "what is done at 4?"; abilities; exit 1; }
[ "$has" != no-counters ] || exit 0
for name in stat run regions record kernel all_cpus record_all_cpus; do permits $name; done
command -v setcap > /dev/null || exit 0
for level in 2 4; do
  echo $level > $kernel/perf_event_paranoid
  check
  remedy=$(remedy all_cpus 'one command')
  (cd "$scratch" && PATH=$(dirname "$topdown"):$PATH eval "${remedy#*a copy that may: }")
  "${as[@]}" "$scratch/topdown" stat -a --require slots -o "$scratch/r.json" -- sh -c "$short" || { echo "$level: $remedy"; exit 1; }
done
