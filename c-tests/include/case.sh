# shellcheck shell=bash disable=SC2034
# case.sh : what the shell cases share. A case is a file that begins with
#   . "$(dirname "$0")/../include/case.sh"
# and exits with 0 (right), 1 (wrong), or 77 (not for this machine). It runs as root, on the emulated machine.
set -eu
case=$PWD/$0
[[ $0 != /* ]] || case=$0
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. c-tests/include/machine.sh
programs=$PWD/target/c-tests kernel=/proc/sys/kernel
open_says=$programs/open_says topdown=${TOPDOWN:-$PWD/target/release/topdown}
check=("$topdown" check --json)

at_exit=()
trap 'for line in ${at_exit[@]+"${at_exit[@]}"}; do eval "$line"; done' EXIT
finally() { at_exit=("$1" ${at_exit[@]+"${at_exit[@]}"}); } # finally LINE : what the case does when it ends, the last one first

sets() { finally "echo $(cat "$1") > $1"; echo "$2" > "$1"; } # sets FILE VALUE : until the case ends

user() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; } # user COMMAND... : without any right

# in_container MOUNTS COMMAND...
in_container() { unshare -m --propagation private bash -ec "$1"' && shift && exec "$@"' - "$@"; }

# what Docker and Podman hide or make read-only
masks='mount -o remount,bind,ro /sys; mount -t proc -o ro proc /proc
  for m in /sys/firmware /proc/acpi /proc/scsi; do [ ! -d $m ] || mount -t tmpfs -o ro none $m; done
  for m in /proc/kcore /proc/keys /proc/timer_list; do [ ! -e $m ] || mount --bind /dev/null $m; done'

reports() { # reports STATUS NAME VERDICT WORD COMMAND... : the exit status of a `topdown check --json`, and a finding
  local status=$1 name=$2 verdict=$3 word=$4 out code=0
  shift 4
  out=$("$@") || code=$?
  [ "$code" = "$status" ] && tr -d '\n' <<< "$out" | sed 's/}/}\n/g' | grep -E "\"name\": \"$name\",.*\"verdict\": \"$verdict\"" |
    grep -q -- "$word" || { echo "exit status $code; not $status, or no $verdict of $name with '$word': $out"; return 1; }
}

skip() { echo "$*"; exit 77; }

# The case's line `# needs:` (tools/list-tests has the words).
while read -r line; do
  case $line in
    '# needs: '*)
      IFS=, read -r -a needs <<< "${line#'# needs: '}"
      for need in "${needs[@]}"; do
        need=${need# }
        case " or $need or " in
          *" or $has or "* | ' or any or ' | ' or explore or ') ;;
          ' or hybrid or ') [ $device = cpu_core ] || skip "needs a hybrid CPU";;
          ' or not-hybrid or ') [ $device = cpu ] || skip "needs a CPU that is not hybrid";;
          ' or reload or ') [ -n "$reload" ] || skip "needs auto counter reload";;
          ' or level-1 or ') [ $level = 1 ] || skip "needs a CPU with level 1 alone";;
          *) skip "needs $need, and this machine has $has";;
        esac
      done;;
    '#'*) ;;
    *) break;;
  esac
done < "$case"
[ $EUID = 0 ] || skip "needs root"
