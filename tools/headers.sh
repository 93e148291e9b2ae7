#!/usr/bin/env bash
# Every header compiles on its own: it includes what it uses. Headers with a .cc of the same name
# are left to the sanitizer build: that .cc includes its header first, and nothing is precompiled.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

find src -name '*.h' | while read -r header; do
  [[ -e ${header%.h}.cc ]] || printf '%s\n' "$header"
done | xargs -r -P"$(nproc)" -n1 "${CXX:-clang++-19}" -std=c++20 -fsyntax-only -Isrc \
  -Wno-pragma-once-outside-header -xc++
