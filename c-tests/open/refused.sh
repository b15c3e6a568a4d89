#!/usr/bin/env bash
# Without counters td_open says -ENODEV and why: to root, to an ordinary user, and by read(2).
# needs: no-counters
. "$(dirname "$0")/../include/case.sh"

"$open_says" ENODEV "$said"
user "$open_says" ENODEV "$said" flags=4
