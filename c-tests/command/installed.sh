#!/usr/bin/env bash
# What `make install` puts under a prefix serves from there alone, also after the tree was moved: programs in C (gnu99 to C23) and C++ (11 to
# 23), by pkg-config, CMake, Meson and rustc; man pages that `mandoc -T lint` has nothing to say of, and completions. `make uninstall` takes
# all of it away.
# needs: nothing
set -euo pipefail
cd "$(dirname "$0")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 skipped=0
lib=lib/$(gcc -print-multiarch)
to=(DESTDIR="$scratch/made" PREFIX=/opt/topdown LIBDIR="/opt/topdown/$lib")
make -s install "${to[@]}"
cp -r "$scratch/made/opt/topdown" "$scratch/moved"
root=$scratch/moved
export LD_LIBRARY_PATH=$root/$lib
pass() { echo "pass $1"; passed=$((passed + 1)); }
has() { # has TOOL WHAT : or it is skipped
  command -v "$1" > /dev/null && return
  echo "skip $2: $1 is not installed"
  skipped=$((skipped + 1))
  return 1
}

cat > "$scratch/program.c" << 'C'
#include <topdown.h>
#include <topdown_inline.h>
#include <topdown_region.h>
#include <topdown_record.h>
#include <stdio.h>

int main(void)
{
    struct td_l1 l1;
    td_t *td = NULL;
    td_region_begin("all");
    td_region_end("all");
    if (td_node_id("tma_retiring") == 0)
        return 1;
    if (td_open(&td, NULL) == 0)
        td_close(td);
    printf("%s %u\n", td_version(), (unsigned)sizeof l1);
    return 0;
}
C
cp "$scratch/program.c" "$scratch/program.cc"
cat > "$scratch/events.c" << 'C'
#include <jevents.h>
#include <measure.h>
#include <rdpmc.h>
#include <stdio.h>

int main(void)
{
    struct perf_event_attr attr;
    return jevent_name_to_attr("cpu-clock", &attr) > 1;
}
C

# pkg-config: the prefix is where the tree is now (two levels above pkgconfig is no prefix in lib/TRIPLET)
if has pkg-config 'pkg-config'; then
  flags() { PKG_CONFIG_LIBDIR=$root/$lib/pkgconfig pkg-config --define-variable=prefix="$root" "$@"; }
  for standard in gnu99 c11 c17 c2x; do
    # shellcheck disable=SC2046
    gcc -std=$standard -Wall -Wextra -Wpedantic -Werror "$scratch/program.c" -o "$scratch/program" $(flags --cflags --libs topdown)
    "$scratch/program" > /dev/null
    pass "C, $standard"
  done
  for standard in c++11 c++14 c++17 c++20 c++2b; do
    # shellcheck disable=SC2046
    g++ -std=$standard -Wall -Wextra -Wpedantic -Werror "$scratch/program.cc" -o "$scratch/program" $(flags --cflags --libs topdown)
    "$scratch/program" > /dev/null
    pass "C++, $standard"
  done
  # shellcheck disable=SC2046
  gcc "$scratch/events.c" -o "$scratch/events" $(flags --cflags --libs jevents)
  "$scratch/events"
  pass 'libjevents'
  make -s install DESTDIR="$scratch/plain" PREFIX=/usr
  cp -r "$scratch/plain/usr" "$scratch/other"
  [ "$(PKG_CONFIG_LIBDIR=$scratch/other/lib/pkgconfig pkg-config --define-prefix --cflags topdown | xargs)" = "-I$scratch/other/include" ]
  pass '--define-prefix'
fi

if has cmake CMake; then
  mkdir "$scratch/cmake"
  version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
  cat > "$scratch/cmake/CMakeLists.txt" << M
cmake_minimum_required(VERSION 3.16)
project(programs C)
find_package(topdown $version REQUIRED)
foreach(library topdown::topdown topdown::topdown-static topdown::record topdown::record-static jevents::jevents jevents::jevents-static)
  string(MAKE_C_IDENTIFIER \${library} name)
  if(library MATCHES jevents)
    add_executable(\${name} ../events.c)
  elseif(library MATCHES record)
    add_executable(\${name} ../record.c)
  else()
    add_executable(\${name} ../program.c)
  endif()
  target_link_libraries(\${name} \${library})
endforeach()
M
  cp examples/record.c "$scratch/record.c"
  cmake -S "$scratch/cmake" -B "$scratch/cmake/out" -DCMAKE_PREFIX_PATH="$root" -DCMAKE_LIBRARY_ARCHITECTURE="$(gcc -print-multiarch)" > "$scratch/said"
  cmake --build "$scratch/cmake/out" > "$scratch/said" || { cat "$scratch/said"; exit 1; }
  for name in topdown__topdown topdown__topdown_static jevents__jevents jevents__jevents_static; do "$scratch/cmake/out/$name" > /dev/null; done
  pass CMake
  asks_for() { # asks_for VERSION : whether CMake finds it
    sed -i "s/topdown [0-9.]* REQUIRED/topdown $1 REQUIRED/" "$scratch/cmake/CMakeLists.txt"
    cmake -S "$scratch/cmake" -B "$scratch/cmake/$1" -DCMAKE_PREFIX_PATH="$root" -DCMAKE_LIBRARY_ARCHITECTURE="$(gcc -print-multiarch)" > /dev/null 2>&1
  }
  for asked in "${version%%.*}" "${version%%.*}.0.9"; do asks_for "$asked" || { echo "CMake does not find topdown $asked"; exit 1; }; done
  for asked in 7 "${version%%.*}.999"; do ! asks_for "$asked" || { echo "CMake finds topdown $asked"; exit 1; }; done
  pass 'CMake, versions that are there and not'
fi

if has meson Meson; then
  mkdir "$scratch/meson"
  cp "$scratch/program.c" "$scratch/meson"
  cat > "$scratch/meson/meson.build" << 'M'
project('program', 'c')
executable('program', 'program.c', dependencies: dependency('topdown'))
M
  # (Meson has no way to say where a tree was moved to)
  sed -i "s|^prefix=.*|prefix=$root|" "$root/$lib/pkgconfig/topdown.pc"
  PKG_CONFIG_LIBDIR=$root/$lib/pkgconfig meson setup "$scratch/meson/out" "$scratch/meson" > "$scratch/said" &&
    meson compile -C "$scratch/meson/out" >> "$scratch/said" && "$scratch/meson/out/program" > /dev/null || { cat "$scratch/said"; exit 1; }
  pass Meson
fi

cat > "$scratch/program.rs" << 'R'
#[link(name = "topdown")]
unsafe extern "C" {
    fn td_node_id(name: *const std::ffi::c_char) -> u32;
}

fn main() {
    assert_ne!(unsafe { td_node_id(c"tma_retiring".as_ptr()) }, 0);
}
R
rustc --edition 2024 -L "$root/$lib" "$scratch/program.rs" -o "$scratch/program"
"$scratch/program"
pass 'rustc'

"$root/bin/topdown" --version > /dev/null
pass 'the command'

# (each function has a page or a link, also in the tree that was moved)
for name in $(sed 's/@.*//' abi/symbols.txt abi/record-symbols.txt) td_region_begin td_region_end resolve_event; do
  grep -qx "\.Nm $name\( ,\)\?" "$root/share/man/man3/$name.3" || { echo "$name has no page"; exit 1; }
done
pass 'pages of functions'
# (system calls and these are others')
sed -n 's/^\.Xr \([^ ]*\) \([137]\).*/\1.\2/p' "$root"/share/man/man[37]/* | sort -u | grep -vxE 'perf\.1|(free|malloc)\.3' > "$scratch/referenced"
while read -r page; do
  [ -e "$root/share/man/man${page##*.}/$page" ] || { echo "no page is called $page"; exit 1; }
done < "$scratch/referenced"
pass 'references of pages'

if has mandoc 'man pages'; then
  mandoc -T lint "$root"/share/man/man[137]/* 2> "$scratch/errors" | grep -v 'STYLE: referenced manual not found' > "$scratch/said" || true
  [ ! -s "$scratch/said" ] || { cat "$scratch/said"; exit 1; }
  for command in check list stat record top run report compare demo; do
    grep -q "^.SH OPTIONS" "$root/share/man/man1/topdown-$command.1"
  done
  pass 'man pages'
fi
# shellcheck disable=SC1091
(. "$root/share/bash-completion/completions/topdown"
  COMP_WORDS=(topdown stat --per-cg) COMP_CWORD=2
  _topdown topdown --per-cg stat
  [ "${COMPREPLY[*]}" = --per-cgroup ])
pass 'completions'

# (the command of docs/report-formats.md, by another validator)
if has jsonschema 'schemas'; then
  TOPDOWN_SIMULATE=1 "$root/bin/topdown" stat -o "$scratch/report.json" -- true
  valid() { PYTHONWARNINGS=ignore jsonschema -i "$1" "$root/share/topdown/schema/report.schema.json"; }
  valid "$scratch/report.json"
  sed 's/"schema": 1,/"schema": "1",/' "$scratch/report.json" > "$scratch/none.json"
  ! valid "$scratch/none.json" 2> /dev/null || { echo "a report whose schema is a text is valid"; exit 1; }
  pass 'schemas'
fi

make -s uninstall "${to[@]}"
left=$(find "$scratch/made" ! -type d)
[ -z "$left" ] || { echo "left: $left"; exit 1; }
pass uninstall
echo "$passed passed, 0 failed, $skipped skipped"
