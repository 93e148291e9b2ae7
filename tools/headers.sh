#!/usr/bin/env bash
# Every header of the library compiles on its own: it includes what it uses.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

find src -name '*.h' -print0 |
  xargs -0 -r -P"$(nproc)" -n1 "${CXX:-clang++-19}" -std=c++20 -fsyntax-only -Isrc \
    -Wno-pragma-once-outside-header -xc++
