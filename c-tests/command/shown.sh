#!/usr/bin/env bash
# What README, docs/check.md and docs/library.md show of a command on Sapphire Rapids is what it writes, but for numbers and where lines are broken; `...`
# in a page stands for anything.
# needs: counters
. "$(dirname "$0")/../include/case.sh"
case $MACHINE in spr-trixie) ;; *) skip "the pages show another machine" ;; esac

place=$(mktemp -d)
finally "rm -rf '$place'"
chmod 755 "$place"
printf '#!/bin/sh\nexec %s 16 4 8 4 12 8 13\n' "$programs/at_mix" > "$place/prog"
chmod +x "$place/prog"
hostname vm
sets $kernel/perf_event_paranoid 2

compared() { # compared PAGE COMMAND : what the page shows below `$ COMMAND`, and standard input
  cat > "$place/wrote"
  python3 - "$1" "$2" "$place/wrote" << 'P'
import re, sys
page, command, file = sys.argv[1:]
lines = open(page).read().split("\n")
at = [k for k, line in enumerate(lines) if line.startswith("    $ " + command)]
assert len(at) == 1, f"{page}: no single {command}"
shown = []
for line in lines[at[0] + 1:]:
    if line and not line.startswith("    "):
        break
    shown.append(line)

def words(text):
    # (a time that is too short to be told has another word before it)
    text = re.sub(r"\bunder (?=[0-9])", "", text)
    text = re.sub(r"[0-9][0-9,.:+-]*", "N", text)
    text = re.sub(r"\bN (ns|us|ms|s|k|M|G)\b", "N UNIT", text)
    return text.split()

wrote = words(open(file).read())
at = 0
parts = [words(part) for part in re.split(r"^ *\.\.\.$", "\n".join(shown), flags=re.M)]
for k, part in enumerate(parts):
    found = next((n for n in range(at, len(wrote)) if wrote[n:n + len(part)] == part and (k > 0 or n == 0)), None)
    if found is None:
        sys.exit(f"{page}: this is not what `{command}` writes:\n{' '.join(part)}\nbut\n{' '.join(wrote)}")
    at = found + len(part)
if parts[-1] and at != len(wrote):
    sys.exit(f"{page}: `{command}` writes more: {' '.join(wrote[at:])}")
P
}

# (what comes next depends on what is installed, as perf)
(cd "$place" && user env PATH="$(dirname "$topdown")" topdown stat ./prog 2>&1) | compared README.md 'topdown stat ./prog'
# (in a container remedies say so, and have a way more)
{ user "$topdown" check 2>&1 || :; } | tr -s '\n ' ' ' | sed 's/ (on the host)//g; s/ container docker run.* for root in it / /' |
  compared docs/check.md 'topdown check'
target/examples/loop | grep -xE 'retiring [0-9.]+ % within [0-9.]+ points'
target/examples/region | compared docs/library.md 'cc examples/region.c'
