#!/usr/bin/env bash
# `topdown check` on the E-cores, on all cores, and on the P-cores of a hybrid CPU.
# needs: counters, hybrid
. "$(dirname "$0")/../include/case.sh"

p_cores=$(cat $pmu/cpus) e_cores=$(cat $pmu/../cpu_atom/cpus)
reports 0 hybrid good "both kinds are counted" taskset -c "$e_cores" "${check[@]}"
reports 0 hybrid good "both kinds are counted" taskset -c "$p_cores,$e_cores" "${check[@]}"
reports 0 hybrid good "stays on P-cores" taskset -c "$p_cores" "${check[@]}"
