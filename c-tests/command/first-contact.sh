#!/usr/bin/env bash
# What an ordinary user sees first, on a terminal of 80 columns: each command has figures or says why it has none and what has them, and none
# ends with 0 and says nothing; what it says to type next works. Also where perf_event_open is refused, as in a container. `first-contact.sh WHOM`:
# what WHOM (a user, a container) types, and all that is seen.
# needs: any
. "$(dirname "$0")/../include/case.sh"

# (that takes a minute; in the gate those are tried that count nothing, and little)
[[ -z ${GATE:-} || $MACHINE = none-* || $MACHINE = zen4-* ]] || skip "in the gate, on other rows"
scratch=$(mktemp -d)
finally "rm -rf $scratch"
chmod 777 "$scratch"
if [ -n "${PROGRAM:-}" ]; then cp "$PROGRAM" "$scratch/memory"; else cc -O1 -g -o "$scratch/memory" examples/guide/memory.c; fi
shown=$PWD/cli/tests/terminal/shown.py
PATH=$(dirname "$topdown"):$PATH
cd "$scratch"
terminal=(python3 -I -S "$shown" 80)
command -v python3 > /dev/null || terminal=() # (then nothing is wrapped)
exec 3> /dev/null
[ -z "${1:-}" ] || exec 3>&1
as=(setpriv --reuid 65534 --regid 65534 --clear-groups env NO_COLOR=1 TERM=xterm)

# A figure: a percentage, or a time or a slot with its unit.
figure='[0-9]( %|± [0-9]| [num]?s\b| [kMG]? ?slots)'
# What has to be there where there is none.
reason='nothing is (measured|recorded): |not (measured|counted|permitted)|needs |no topdown counters|paranoid|P-cores alone'

# Whether what was seen fits the terminal, if there is one, but for words that cannot be broken.
# (Not every machine has a locale in which these letters are one each.)
fits() { [ ${#terminal[@]} = 0 ] || ! sed 's/±/+/g; s/…/./g; s/≤/</g; s/–/-/g' "$scratch/seen" | grep -E '^.{81}' | grep -q '[^ ] '; }

# sees STATUS COMMAND... : it ends so (or with any of STATUS, as 0|125), and has figures, or a reason
sees() {
  local statuses=$1 code=0
  shift
  "${terminal[@]}" "${as[@]}" "$@" > "$scratch/seen" 2>&1 < /dev/null || code=$?
  { echo "\$ $*"; cat "$scratch/seen"; echo "[exit status $code]"; echo; } >&3
  [[ $code =~ ^($statuses)$ ]] && grep -qE "$figure|$reason" "$scratch/seen" && fits && return
  echo "$*: exit status $code (not $statuses), no figure and no reason, or wider than 80 columns: $(cat "$scratch/seen")"
  exit 1
}

# follows : what the last one says to type next, without its reason
follows() {
  sed -nE 's/^ +((topdown|perf) [^#]*) # .*/\1/p' "$scratch/seen" > "$scratch/next"
  while read -r next; do
    case $next in
      *COMMAND* | topdown\ check) ;;
      topdown\ *) eval "sees 0 $next";;
    esac
  done < "$scratch/next"
}

types() { # whatever comes to mind first
  sees '0|1' topdown check
  sees 0 topdown stat ./memory
  follows
  [ -s "$scratch/next" ] || { echo "stat says nothing to type next: $(cat "$scratch/seen")"; exit 1; }
  sees 0 topdown record ./memory
  follows
  sees 0 topdown run -- ./memory
  sees '0|125' topdown stat --drill ./memory # (no tree of AMD's cores is published)
  sees '0|125' topdown record --drill --lines ./memory
  sees '0|125' topdown stat -a ./memory
  sees '0|125' topdown record -a ./memory
}

case ${1:-} in container) ;; *) types;; esac
if [[ ${1:-} = container || -z ${1:-} && ( -z ${GATE:-} || $MACHINE = zen4-* ) ]]; then
  as+=("$programs/in_container")
  types
fi
