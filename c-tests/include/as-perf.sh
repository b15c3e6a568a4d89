# shellcheck shell=bash
# as-perf.sh : nodes_as_perf CPU PERF TOPDOWN AT_MIX compares each node that `topdown stat` counts on this CPU with perf's metric of
# the same name, as the table as-perf beside this file says: of one program, at two mixes, in user mode, one after the other; of a hybrid
# CPU on one kind of core at a time.
# On x86_64 and arm64 (whose root has gawk alone).

# In 1/64 of slots retiring, bad speculation and frontend bound; in 1/16 of their parents heavy, mispredicts, latency, memory. No
# formula makes any share less than nothing of these: perf prints it so, where `topdown stat` has 0 and takes it off the others.
as_perf_mixes=('20 12 14 5 6 9 7' '12 4 34 2 3 6 12')

nodes_as_perf() {
  local cpu=$1 perf=$2 topdown=$3 program=$4 table mix cpus tolerance subtree nodes metrics kind failed=0 compared=0
  local of_ours=() of_perf=() on=()
  table=$(dirname "${BASH_SOURCE[0]}")/as-perf
  case $cpu in
    # By default it estimates the cycles of the core from what one thread saw, also where SMT is off.
    skx) of_perf=(-a);;
  esac
  for mix in "${as_perf_mixes[@]}"; do
    while read -r cpus tolerance subtree nodes; do
      [[ ,$cpus, =~ ,$cpu(/([a-z_]+))?, ]] || continue
      kind=${BASH_REMATCH[2]} on=()
      case $cpu,$subtree in
        # Refused while SMT is on: no counter tells whose slots were lost. (perf does not say so)
        zen*,bad_speculation | zen*,backend_bound) [ "$(cat /sys/devices/system/cpu/smt/active)" = 0 ] || continue;;
      esac
      [ -z "$kind" ] || on=(taskset -c "$(cut -d- -f1 "/sys/bus/event_source/devices/$kind/cpus")")
      [ "$subtree" = - ] || of_ours+=(--subtree "$subtree")
      metrics=$(tr ' ' '\n' <<< "$nodes" | sed 's/.*=//; s/[*<]/\n/' | sort -u | paste -sd ,)
      # shellcheck disable=SC2086
      ${on[@]+"${on[@]}"} "$topdown" stat ${of_ours[@]+"${of_ours[@]}"} -x , -o /tmp/as-perf.csv -- $program $mix &&
        ${on[@]+"${on[@]}"} "$perf" stat --all-user ${of_perf[@]+"${of_perf[@]}"} --metric-no-group -j -o /tmp/as-perf.json -M "$metrics" -- $program $mix || return
      [ "$subtree" = - ] || unset 'of_ours[-1]' 'of_ours[-1]'
      as_perf_says "$cpu${kind:+, $kind,} at $mix" "$tolerance" "$nodes" "$kind" || failed=1
      compared=$((compared + $(wc -w <<< "$nodes")))
    done < <(grep -v '^#' "$table")
  done
  echo "$compared nodes compared"
  [ $compared -gt 0 ] && [ $failed = 0 ]
}

as_perf_says() { # as_perf_says WHAT TOLERANCE NODES [PMU] : what both have written says the same of these nodes, on this kind of core
  "$(command -v awk || command -v gawk)" -v what="$1" -v tolerance="$2" -v nodes="$3" -v pmu="$4" '
    function field(name,   value) { # of the JSON line
      value = $0
      if (!sub(".*\"" name "\" : \"?", "", value)) return ""
      sub(/[",}].*/, "", value)
      return value
    }
    FILENAME ~ /json$/ && /"event"/ { other = pmu != "" && index(field("event"), pmu "/") != 1 } # (lines without an event belong to it)
    FILENAME ~ /json$/ && other { next }
    FILENAME ~ /json$/ && /metric-unit/ {
      n = split(field("metric-unit"), word, " ")
      metric[word[n]] = field("metric-value") / (word[1] ~ /^(%|percent)/ ? 100 : 1)
      if (/pcnt-running/ && field("pcnt-running") + 0 != 100) { print "not counted all the time: " $0; wrong = 1 }
      next
    }
    FILENAME ~ /csv$/ {
      m = split($0, cell, ",")
      if (FNR == 1) for (k = 1; k <= m; k++) name[k] = cell[k]
      else if (pmu == "" || index($0, pmu ",") == 1) for (k = 1; k <= m; k++) ours[name[k]] = cell[k]
    }
    function of_perf(expression,   part) {
      n = split(expression, part, /[*<]/)
      for (k = 1; k <= n; k++)
        if (!(part[k] in metric)) { print what ": perf says nothing of " part[k]; wrong = 1; return "nan" }
      if (n == 1) return metric[expression]
      if (expression ~ /\*/) return metric[part[1]] * metric[part[2]]
      return metric[part[1]] < metric[part[2]] ? metric[part[1]] : metric[part[2]]
    }
    END {
      count = split(nodes, all, " ")
      for (i = 1; i <= count; i++) {
        node = expression = all[i]
        sub(/=.*/, "", node)
        sub(/.*=/, "", expression)
        theirs = of_perf(expression)
        far = ours[node] == "" || theirs == "nan" || ours[node] - theirs > tolerance || theirs - ours[node] > tolerance
        printf "%s: %s %.6f, perf %s %.6f%s\n", what, node, ours[node], expression, theirs, far ? ", NOT THE SAME" : ""
        wrong = wrong || far
      }
      exit wrong
    }' /tmp/as-perf.json /tmp/as-perf.csv || { cat /tmp/as-perf.csv /tmp/as-perf.json; return 1; }
}
