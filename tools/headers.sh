#!/usr/bin/env bash
# Every header that has no .cc of its name compiles on its own: it includes what it uses. So does
# every source that differs from the merge base with origin/main, or a share of them if many do;
# with --sources every source does, which takes an hour. A source includes its header first. A build
# tells neither: it compiles sources in batches, with precompiled headers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

most=80  # sources, three minutes of two cores; others are drawn from commit to commit

files() {
  if [[ ${1:-} == --sources ]]; then
    find src -name '*.cc'
  elif base=$(git merge-base origin/main HEAD 2>/dev/null); then
    git diff --name-only --diff-filter=d "$base" -- 'src/*.cc' |
      shuf --random-source=<(yes "$(git rev-parse HEAD)") | head -n "$most"
  fi
  find src -name '*.h' | while read -r header; do
    [[ -e ${header%.h}.cc ]] || printf '%s\n' "$header"
  done
}

python_include=$("${PYTHON:-/usr/bin/python3}" -c \
  'import sysconfig; print(sysconfig.get_path("include"))')
files "$@" | xargs -r -P"$(nproc)" -n1 "${CXX:-clang++-19}" -std=c++20 -fsyntax-only -Isrc \
  -isystem "${LLVM_INCLUDE:-/usr/lib/llvm-19/include}" -isystem "$python_include" \
  -Wno-pragma-once-outside-header -DHONE_VERSION='""' -DHONE_SEARCH_VERSION='""' \
  -DHONE_CODEGEN_VERSION='""' -DHONE_IMAGE_VERSION='""' -DHONE_PLANNER_VERSION='""' -xc++
