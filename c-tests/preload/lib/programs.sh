# shellcheck shell=bash disable=SC2034
# programs.sh : what the tests of programs that Debian ships share. Sets `topdown`, `scratch`; counts in passed, failed, skipped.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.." || exit 1
topdown=$PWD/target/release/topdown
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 skipped=0
[ -n "${MACHINE:-}" ] || export TOPDOWN_SIMULATE=1
install_packages=yes # whether what is not there is installed, if this is root and not the emulated machine

need() { # need COMMAND PACKAGE
  command -v "$1" > /dev/null && return
  [ -n "$install_packages" ] && [ "$(id -u)" = 0 ] && [ -z "${MACHINE:-}" ] &&
    { apt-get -qq update; apt-get -qq install -y --no-install-recommends "$2"; } > /dev/null 2>&1
  command -v "$1" > /dev/null
}

program() { # program NAME COMMAND PACKAGE TEST...
  local name=$1 command=$2 package=$3
  shift 3
  if ! need "$command" "$package"; then
    echo "skip $name: $command is not installed: apt-get install $package"
    skipped=$((skipped + 1))
  elif "$@" > "$scratch/said" 2>&1; then
    echo "pass $name"
    passed=$((passed + 1))
  else
    echo "FAIL $name"
    sed 's/^/    /' "$scratch/said"
    failed=$((failed + 1))
  fi
}
