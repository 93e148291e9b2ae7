#!/usr/bin/env bash
# Checks what a compiler does not: floors, library manners, sizes, and plain English. Prints
# FILE:LINE: what.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

find src tests bench tools cmake -type f \
  '(' -name '*.h' -o -name '*.cc' -o -name '*.def' -o -name '*.sh' -o -name '*.cmake' ')' |
  LC_ALL=C sort | xargs awk -f tools/lint.awk tools/floors.txt docs/adding.md
tools/english.sh
