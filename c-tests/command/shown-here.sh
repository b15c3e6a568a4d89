#!/usr/bin/env bash
# What docs show of commands that need no counters is what they write here (the table c-tests/pages).
# needs: nothing
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v python3 > /dev/null || { echo "skip: python3 is not installed"; echo "0 passed, 0 failed, 1 skipped"; exit; }
c-tests/tools/shown run here
echo "1 passed, 0 failed, 0 skipped"
