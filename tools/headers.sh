#!/usr/bin/env bash
# Headers that have no .cc of their name compile on their own: they include what they use. So do
# sources. A source includes its header first. A build tells neither: it compiles sources in
# batches, with precompiled headers. With --sources all of them are compiled, which takes an hour.
# Otherwise those are that differ from the merge base with origin/main, or a share of them if many
# do, and some others.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

most=6  # files that changed, and that many others

lone_headers() {
  while read -r header; do
    [[ -e ${header%.h}.cc ]] || printf '%s\n' "$header"
  done
}
drawn() { # other ones from commit to commit
  shuf --random-source=<(yes "$(git rev-parse HEAD)") | head -n "$most"
}
changed() { git diff --name-only --diff-filter=d "$1" -- "$2"; }
files() {
  if [[ ${1:-} == --sources ]]; then
    find src -name '*.cc'
    find src -name '*.h' | lone_headers
    return
  fi
  if base=$(git merge-base origin/main HEAD 2>/dev/null); then
    (changed "$base" 'src/*.cc'; changed "$base" 'src/*.h' | lone_headers) | drawn
  fi
  find src -name '*.h' | lone_headers | drawn
}

python_include=$("${PYTHON:-/usr/bin/python3}" -c \
  'import sysconfig; print(sysconfig.get_path("include"))')
files "$@" | sort -u | xargs -r -P"$(nproc)" -n1 \
  "${CXX:-clang++-19}" -std=c++20 -fsyntax-only -Isrc \
  -isystem "${LLVM_INCLUDE:-/usr/lib/llvm-19/include}" -isystem "$python_include" \
  -Wno-pragma-once-outside-header -DHONE_VERSION='""' -DHONE_SEARCH_VERSION='""' \
  -DHONE_CODEGEN_VERSION='""' -DHONE_IMAGE_VERSION='""' -DHONE_PLANNER_VERSION='""' \
  -DHONE_KEPT_IMAGE_VERSION='""' -xc++
