#!/usr/bin/env bash
# Where one more process may be started (`ulimit -u`), `topdown stat`, `run` and `record` run the command, with its exit status; where
# none may, they say so. At no limit does one of them panic or wait for ever.
# needs: counters or general-counters
. "$(dirname "$0")/../include/case.sh"
dir=$(mktemp -d)
uid=54321 # of each case its own: nothing of one before is left
chmod 777 "$dir"

# The exit status of a command under such a subcommand, of a user who may have so many processes and threads.
at() {
  local limit=$1 code=0
  shift
  timeout 100 setpriv --reuid $uid --regid $uid --clear-groups bash -c "cd '$dir'; ulimit -u $limit; exec \"\$@\"" - "$topdown" "$@" > "$dir/said" 2>&1 || code=$?
  if [ $code = 101 ] || [ $code = 124 ] || grep -q panicked "$dir/said"; then
    echo "limit $limit, $*: exit status $code: $(cat "$dir/said")"
    exit 1
  fi
  echo $code
}

for subcommand in stat "stat --td-level 1 -I 10" "stat --per-process" run "run --inside" record; do
  for limit in 1 2 3 4 5 6; do
    uid=$((uid + 1))
    code=$(at $limit $subcommand -- /bin/sh -c 'exit 7') || { echo "$code"; exit 1; }
    [ "$code" = $((limit > 1 ? 7 : 126)) ] || { echo "limit $limit, $subcommand: exit status $code: $(cat "$dir/said")"; exit 1; }
  done
done
rm -r "$dir"
