#!/usr/bin/env bash
# `topdown record` that cannot write its profile says what is kept: of a FIFO that nobody reads, whose wait a signal ends, a recording beside
# it; of a device, and on a disk that was full before anything was written, nothing. Without a command it has failed then.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

scratch=$(mktemp -d)
mount -t tmpfs -o size=64k none /mnt
finally "umount /mnt; rm -rf $scratch"
mkfifo "$scratch/fifo.csv"
busy=(timeout 0.5 sh -c 'while :; do :; done')

# within PATTERN FILE: a line like this comes to the file.
within() {
  for _ in {1..300}; do ! grep -q "$1" "$2" || return 0; sleep 0.1; done
  cat "$2"
  return 1
}

# unread SIGNAL ARGUMENT... : records into the FIFO; while its reader is waited for this signal comes.
unread() {
  rm -f "$scratch/said" "$scratch"/*.recording
  "$topdown" record -o "$scratch/fifo.csv" "${@:2}" 2> "$scratch/said" &
  within 'waiting for somebody to read this FIFO' "$scratch/said"
  kill "-$1" $!
  status=0
  wait $! || status=$?
  [ $status = "$ends" ]
  cat "$scratch/said"
  kept=$(echo "$scratch"/fifo.csv.*.recording)
  grep -q "^topdown: the profile cannot be written: $scratch/fifo.csv: .* a signal ended .*; what was recorded is in $kept (--from)" "$scratch/said"
  "$topdown" record --from "$kept" -o "$scratch/r.csv"
  [ -s "$scratch/r.csv" ]
}
ends=124 unread TERM -- "${busy[@]}"
sleep 600 & sleeper=$!
finally "kill $sleeper"
ends=125 unread TERM --duration 0.5 -a
ends=125 unread HUP --duration 0.5 -p $sleeper

full() {
  text=$("$topdown" record -o "$1" -- "${busy[@]}" 2>&1) || true
  echo "$text"
  grep -q "the profile cannot be written: $1: .*No space left on device.*; nothing of what was recorded is kept" <<< "$text"
}
full /dev/full
[ -z "$(ls /dev/full.* 2> /dev/null)" ]
head -c 64k /dev/zero > /mnt/fill || true
full /mnt/r.csv
[ "$(ls /mnt)" = fill ]
