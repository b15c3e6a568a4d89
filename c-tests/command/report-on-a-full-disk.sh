#!/usr/bin/env bash
# A disk that is full when the report is written: the old report stays, alone, and the exit status is the program's.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

mount -t tmpfs -o size=64k none /mnt
finally "umount /mnt"
echo "the old one" > /mnt/r.html
head -c 56k /dev/zero > /mnt/fill
code=0
out=$(TMPDIR=/tmp "$topdown" run -o /mnt/r.html -- sh -c "exit 3" 2>&1) || code=$?
[ $code = 3 ] && grep -q "^topdown: no report: /mnt/r.html: cannot write the report: No space left on device" <<< "$out" &&
  [ "$(cat /mnt/r.html)" = "the old one" ] && [ "$(ls -A /mnt)" = $'fill\nr.html' ] ||
  { echo "exit status $code: $out"; ls -lA /mnt; exit 1; }
tables=$(sed "s/.*figures are in \(.*\): .*/\1/" <<< "$out")
rm /mnt/fill
"$topdown" report -o /mnt/r.html $tables
grep -q "<!DOCTYPE html>" /mnt/r.html
rm $tables
