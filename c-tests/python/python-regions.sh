#!/usr/bin/env bash
# Regions of a Python program: the true shares of threads, forked children and regions that exceptions end are within the bounds, by registers
# and by general counters.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

[ $level != 1 ] || skip "this core's published shares are not the mix that was set (include/truth.h)"
python=/usr/bin/python3
[ -x $python ] || python=$(command -v python3) || skip "python3 is not installed"
site=$(mktemp -d)
finally "rm -rf $site"
cp -r python/topdown "$site"
cp target/release/libtopdown.so.0 "$site/topdown/libtopdown.so"
PYTHONPATH=$site $python -B python/tests/truth.py auto registers counters
