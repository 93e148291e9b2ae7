#!/usr/bin/env bash
# Checks the subjects of new commits: those since the merge base with origin/main, or HEAD alone
# where there is none. Silent where there is no history.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

git rev-parse --verify --quiet HEAD >/dev/null 2>&1 || exit 0
range=(-1 HEAD)
base=$(git merge-base origin/main HEAD 2>/dev/null) && range=("$base..HEAD")
git log --no-merges --format='%H %s' "${range[@]}" | awk -f tools/subjects.awk
