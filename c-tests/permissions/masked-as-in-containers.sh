#!/usr/bin/env bash
# What Docker and Podman hide or make read-only does not stand in the way.
# needs: counters
. "$(dirname "$0")/../include/case.sh"

in_container "$masks" "$open_says" 0 "" path=1
