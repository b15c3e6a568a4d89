#!/usr/bin/env bash
# What examples/fleet has for Prometheus: promtool reads the rules, their test passes (shares are quotients of sums), it reads what /metrics
# answers, and the dashboard asks for what the rules record.
# needs: nothing
set -euo pipefail
cd "$(dirname "$0")/../../examples/fleet"
topdown=$PWD/../../target/release/topdown
if ! command -v promtool > /dev/null; then
  echo "skip: promtool is not installed: apt-get install prometheus"
  echo "0 passed, 0 failed, 1 skipped"
  exit
fi
promtool check rules prometheus-rules.yml
promtool test rules prometheus-rules-test.yml

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# shellcheck disable=SC2016   # the command's own
TOPDOWN_SIMULATE=1 "$topdown" stat --open-metrics 0 -o "$scratch/report.txt" -- bash -c '
  until port=$(sed -n "s,.*http://127.0.0.1:\([0-9]*\)/metrics.*,\1,p" "$0/said") && [ -n "$port" ]; do :; done
  until exec 3<> /dev/tcp/127.0.0.1/$port && printf "GET /metrics HTTP/1.0\r\n\r\n" >&3 && sed "1,/^\r$/d" <&3 > "$0/metrics" && grep -q "^topdown_slots_total" "$0/metrics"; do :; done
' "$scratch" 2> "$scratch/said"
promtool check metrics < "$scratch/metrics"

python3 - << 'P'
import json, re
rules = set(re.findall(r"record: (\S+)", open("prometheus-rules.yml").read()))
asked = [target["expr"] for panel in json.load(open("grafana.json"))["panels"] for target in panel["targets"]]
for expr in asked:
    names = set(re.findall(r"[a-z_]+:topdown[a-z_:0-9]+", expr))
    assert names and names <= rules, expr
P
echo "1 passed, 0 failed, 0 skipped"
