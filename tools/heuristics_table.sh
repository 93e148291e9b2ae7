#!/usr/bin/env bash
# The rows of the table in docs/planner.md, from src/planner/heuristics.def.
set -euo pipefail
sed -nE 's/^HONE_HEURISTIC\((\w+), "(.*)"\)$/| `\1` | \2 |/p' \
  "$(dirname "${BASH_SOURCE[0]}")/../src/planner/heuristics.def"
