#!/usr/bin/env bash
# Runs a test script in a folder of its own, which is removed afterwards. One of Python finds the
# package of the build folder.
set -euo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
if [[ $1 != *.py ]]; then
  # A script that ends without a word says at least where.
  bash -Eeuo pipefail -c 'trap "echo \"\${BASH_SOURCE[0]##*/}:\$LINENO: \$BASH_COMMAND\" >&2" ERR
    source "$0"' "$1"
elif [[ ! -e $BUILD/python/hone.stamp ]]; then
  echo "there is no Python package in $BUILD"
  exit 77
elif ! "$PYTHON" -c 'import numpy' 2>/dev/null; then
  echo "$PYTHON has no numpy"
  exit 77
else
  PYTHONPATH=$BUILD/python "$PYTHON" -B "$1"
fi
