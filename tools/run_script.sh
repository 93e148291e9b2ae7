#!/usr/bin/env bash
# Runs a test script in a folder of its own, which is removed afterwards.
set -euo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
bash -euo pipefail "$1"
