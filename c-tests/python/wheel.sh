#!/usr/bin/env bash
# The Python wheel is built without network, says what it needs, and is installed into a clean environment, where regions by simulated
# counters have their truth, in threads, forked children and beside exceptions.
# needs: nothing
set -euo pipefail
cd "$(dirname "$0")/../.."
skip() { echo "skip: $*"; echo "0 passed, 0 failed, 1 skipped"; exit; }
python=''
for found in python3 /usr/bin/python3; do
  [ -n "$python" ] || ! "$found" -c 'import pip, venv' 2> /dev/null || python=$found
done
[ -n "$python" ] || skip "no python3 with pip and venv (Debian: apt-get install python3-pip python3-venv)"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
code=0
TO=$scratch/wheel packaging/wheel > "$scratch/said" 2>&1 || code=$?
[ $code != 77 ] || skip "$(sed 's/^skip wheel: //' "$scratch/said")"
[ $code = 0 ] || { cat "$scratch/said"; exit 1; }
wheel=$(echo "$scratch"/wheel/*.whl)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

# no newer glibc than the tag says, and no library besides
glibc=$(readelf -W -V target/release/libtopdown.so.0 | grep -oE 'Name: GLIBC_[0-9.]+' | sed 's/.*_//' | sort -V | tail -n 1)
[[ $wheel = */topdown-$version-py3-none-manylinux_${glibc/./_}_$(uname -m).whl ]] || { echo "glibc $glibc, and $wheel"; exit 1; }

"$python" -m venv --without-pip "$scratch/clean"
"$python" -m pip -q --disable-pip-version-check --python "$scratch/clean/bin/python" install --no-index "$wheel"
mkdir "$scratch/elsewhere"
cd "$scratch/elsewhere" # (nothing of the tree is found)
"$scratch/clean/bin/python" "$OLDPWD/python/tests/regions.py" > "$scratch/said" 2>&1 || { cat "$scratch/said"; exit 1; }
"$scratch/clean/bin/python" "$OLDPWD/examples/regions.py" | grep '^solve (MainThread): 1 executions' > /dev/null
awk '/^```python$/ { shown = 1; next } /^```$/ { shown = 0 } shown' "$OLDPWD/docs/python.md" | diff - "$OLDPWD/examples/regions.py"
[ "$("$scratch/clean/bin/python" -c 'import topdown; print(topdown.__version__)')" = "$version" ]
echo "1 passed, 0 failed, 0 skipped"
