#!/usr/bin/env bash
# What a distribution ships: libtopdown.so stripped is no larger than 1,650 kB, needs the C library and libgcc_s alone, and takes no more than
# 128 bytes of thread-local storage, so that ten copies can be loaded. (The size is that of x86-64, in the profile of Cargo.toml.)
# needs: nothing
set -euo pipefail
cd "$(dirname "$0")/../.."
library=target/release/libtopdown.so.0
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
fail() { echo "$library: $1"; exit 1; }

others=$(readelf -dW "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libgcc_s|ld-linux[a-z0-9-]*)\.so\.[0-9]+$' || true)
[ -z "$others" ] || fail "needs $others"
storage=$(readelf -lW "$library" | awk '$1 == "TLS" { print $6 }')
[ $((storage)) -le 128 ] || fail "$((storage)) bytes of thread-local storage"
if [ "$(uname -m)" = x86_64 ] && [ -z "${CARGO_PROFILE_RELEASE_CODEGEN_UNITS:-}" ]; then
  strip -o "$stripped" "$library"
  size=$(stat -c %s "$stripped")
  [ "$size" -le 1650000 ] || fail "$size bytes without symbols"
fi
