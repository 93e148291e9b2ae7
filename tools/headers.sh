#!/usr/bin/env bash
# Every header that has no .cc of its name compiles on its own: it includes what it uses. With
# --sources every source does, too, which takes minutes: it includes its header first, and where
# headers are precompiled a build does not tell.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

files() {
  [[ ${1:-} != --sources ]] || find src -name '*.cc'
  find src -name '*.h' | while read -r header; do
    [[ -e ${header%.h}.cc ]] || printf '%s\n' "$header"
  done
}

python_include=$("${PYTHON:-/usr/bin/python3}" -c \
  'import sysconfig; print(sysconfig.get_path("include"))')
files "$@" | xargs -r -P"$(nproc)" -n1 "${CXX:-clang++-19}" -std=c++20 -fsyntax-only -Isrc \
  -isystem "${LLVM_INCLUDE:-/usr/lib/llvm-19/include}" -isystem "$python_include" \
  -Wno-pragma-once-outside-header -DHONE_VERSION='""' -xc++
