#!/usr/bin/env bash
# A real Prometheus scrapes two hosts (network namespaces), each with another CPU and load; it evaluates the rules of examples/fleet. Their
# shares are the quotients of the slots that both have had, each host's last sample is no more than its own report in the end, and the
# scraper is answered in OpenMetrics.
# needs: nothing
set -euo pipefail
skip() {
  echo "skip: $1"
  echo "0 passed, 0 failed, 1 skipped"
  exit
}
if [ "${1:-}" != inside ]; then
  for tool in prometheus curl ip; do
    command -v "$tool" > /dev/null || skip "$tool is not installed: apt-get install prometheus curl iproute2"
  done
  unshare -rn ip link set lo up 2> /dev/null || skip "no network namespace can be made here"
  exec unshare -rnpf --kill-child --mount-proc "$0" inside
fi

cd "$(dirname "$0")/../../examples/fleet"
topdown=$PWD/../../target/release/topdown
rules=$PWD/prometheus-rules.yml
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
ip link set lo up

# host NUMBER CPU: 10.0.NUMBER.2 is a machine whose CPU is this one; it computes until it is told to end
host() {
  mkfifo "$scratch/end$1" "$scratch/made$1" "$scratch/up$1"
  # shellcheck disable=SC2016   # the host's own
  unshare -n bash -c 'echo > "$0/made$1"; read -r < "$0/up$1"; shift; exec "$@"' "$scratch" "$1" \
    env TOPDOWN_SIMULATE="$2" "$topdown" stat --td-level 2 --open-metrics "10.0.$1.2:9410" -o "$scratch/$1.json" -- \
    bash -c 'end=$1; (while :; do :; done) & read -r < "$end"; kill $!' host "$scratch/end$1" 2> "$scratch/$1.said" &
  read -r < "$scratch/made$1"
  ip link add "host$1" type veth peer name eth0 netns $!
  ip address add "10.0.$1.1/24" dev "host$1"
  ip link set "host$1" up
  nsenter -t $! -n sh -c "ip link set lo up; ip address add 10.0.$1.2/24 dev eth0; ip link set eth0 up"
  echo > "$scratch/up$1"
}
host 1 'Golden or Raptor Cove'
one=$!
host 2 'Zen 4'
two=$!

cat > "$scratch/prometheus.yml" << Y
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: ["$rules"]
scrape_configs:
  - job_name: topdown
    static_configs: [{targets: ['10.0.1.2:9410', '10.0.2.2:9410']}]
Y
prometheus --config.file="$scratch/prometheus.yml" --storage.tsdb.path="$scratch/data" --web.listen-address=127.0.0.1:9090 \
  --log.level=warn 2> "$scratch/prometheus.said" &

python3 - "$scratch" "$one" "$two" << 'P' || { cat "$scratch"/*.said; exit 1; }
import json, os, sys, time, urllib.parse, urllib.request
scratch = sys.argv[1]

def query(text, at=None):
    address = "http://127.0.0.1:9090/api/v1/query?" + urllib.parse.urlencode({"query": text, **({"time": at} if at else {})})
    return json.load(urllib.request.urlopen(address))["data"]["result"]

# until both have been scraped three times, and the rules evaluated after that
deadline = time.monotonic() + 120
while True:
    assert time.monotonic() < deadline, "Prometheus has no samples"
    try:
        scraped = query("min(count_over_time(topdown_slots_total[1m]))")
        shares = query("job_category:topdown_slots:share1m")
        if scraped and float(scraped[0]["value"][1]) >= 3 and shares and len(query("instance:topdown_slots:bound1m")) == 2:
            break
    except OSError:
        pass  # it does not listen yet
    time.sleep(0.1)
assert {each["metric"]["instance"]: each["value"][1] for each in query("up")} == {"10.0.1.2:9410": "1", "10.0.2.2:9410": "1"}

# at one instant: what the rule says, and the quotient of the rates of both hosts' slots
at = float(query("timestamp(job_category:topdown_slots:share1m)")[0]["value"][1])
rates = {}
for each in query("rate(topdown_slots_total[1m])", at):
    key = each["metric"]["category"], each["metric"]["instance"]
    rates[key] = rates.get(key, 0) + float(each["value"][1])
total = sum(rates.values())
assert len({instance for _, instance in rates}) == 2 and total > 0, rates
shares = {each["metric"]["category"]: float(each["value"][1]) for each in query("job_category:topdown_slots:share1m", at)}
for category in {category for category, _ in rates}:
    quotient = sum(rate for (name, _), rate in rates.items() if name == category) / total
    assert abs(shares[category] - quotient) < 1e-9, (category, shares[category], quotient)
    of_hosts = [rates.get((category, host), 0) / sum(rate for (_, of), rate in rates.items() if of == host) for host in ("10.0.1.2:9410", "10.0.2.2:9410")]
    print(f"{category}: {quotient:.4f} of both, {of_hosts[0]:.4f} and {of_hosts[1]:.4f} of one")

# what each had at its last scrape is no more than its own report has in the end, and most of it
last = {}
for each in query("topdown_slots_total"):
    host = each["metric"]["instance"][5]
    last.setdefault(host, {})[each["metric"]["category"]] = float(each["value"][1])
for host, pid in zip("12", sys.argv[2:]):
    open(f"{scratch}/end{host}", "w").write("\n")
for host in "12":
    while not os.path.exists(f"{scratch}/{host}.json"):
        assert time.monotonic() < deadline, f"host {host} has not ended"
        time.sleep(0.01)
    whole = json.load(open(f"{scratch}/{host}.json"))["whole"]["inclusive"]
    for category, slots in last[host].items():
        most = whole["tree"]["tma_" + category]["high"] * whole["slots"]
        assert 0 < slots <= most, (host, category, slots, most)
    assert sum(last[host].values()) > 0.3 * whole["slots"], (host, last[host], whole["slots"])
P

# the scraper asks for OpenMetrics, and has been answered so
curl -s 'http://127.0.0.1:9090/api/v1/targets/metadata?metric=topdown_slots' | grep -q '"type":"counter"'
echo "1 passed, 0 failed, 0 skipped"
