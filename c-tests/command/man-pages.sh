#!/usr/bin/env bash
# Man pages: their examples run and say something, and `mandoc -T lint` has nothing to say of pages that are not made by the command.
# needs: nothing
set -euo pipefail
cd "$(dirname "$0")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 skipped=0
pass() { echo "pass $1"; passed=$((passed + 1)); }

for source in examples/man/*.c; do
  target/"${source%.c}" > "$scratch/said" || { echo "$source: exit status $?"; cat "$scratch/said"; exit 1; }
  [ -s "$scratch/said" ] || { echo "$source says nothing"; exit 1; }
  awk 'length > 76 { print FILENAME ": " FNR ": too long for a page"; long = 1 } END { exit long }' "$source"
  pass "$source"
done

if command -v mandoc > /dev/null; then
  # (whether the pages that they refer to are there c-tests/command/installed.sh looks, where they are installed)
  mandoc -T lint man/*.[137] > "$scratch/said" 2> "$scratch/errors" || true
  if grep -v 'STYLE: referenced manual not found' "$scratch/said"; then exit 1; fi
  pass 'mandoc -T lint'
else
  echo "skip mandoc -T lint: mandoc is not installed"
  skipped=1
fi
echo "$passed passed, 0 failed, $skipped skipped"
