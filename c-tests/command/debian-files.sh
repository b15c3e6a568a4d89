#!/usr/bin/env bash
# debian/ is of this tree: its version, the names that the libraries export, and the licences of what they are linked with. (`make check-deb`
# builds, installs and removes the packages.)
# needs: nothing
set -euo pipefail
cd "$(dirname "$0")/../.."
pass() { echo "pass $1"; }

version=$(sed -n 's/^version = "\(.*\)"/\1/p;T;q' Cargo.toml)
[ "$(sed -n 's/^libtopdown (\(.*\)) .*/\1/p;T;q' debian/changelog)" = "$version" ] || { echo "debian/changelog begins with another version than $version"; exit 1; }
for file in Cargo.toml */Cargo.toml; do # (fuzz is shipped by nobody)
  [ "$file" = fuzz/Cargo.toml ] || grep -qxF "version = \"$version\"" "$file" || { echo "$file has another version than $version"; exit 1; }
done
for named in "docs/python.md topdown-$version-" "examples/fleet/kubernetes.yaml topdown:$version "; do
  grep -qF "${named#* }" "${named%% *}" || { echo "${named%% *} names another version than $version"; exit 1; }
done
pass version

for library in topdown0:symbols topdown-record0:record-symbols jevents1:jevents-symbols; do
  names=abi/${library#*:}.txt symbols=debian/lib${library%:*}.symbols
  sed 's/@@.*//' "$names" | diff - <(sed -n 's/^ \([a-z][^@]*\)@.*/\1/p' "$symbols") ||
    { echo "$symbols has other names than $names; a new one has the version that it comes with"; exit 1; }
done
pass symbols

packaging/debian-copyright | diff debian/copyright - || { echo "the crates' licences are others; \`make copyright\`"; exit 1; }
pass copyright
echo "3 passed, 0 failed, 0 skipped"
