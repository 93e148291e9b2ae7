#!/usr/bin/env bash
# Installs llama.cpp, by the package node-llama-cpp with its binaries for a CPU, below build/, for
# this benchmark alone. Rows that need it are left out where that fails.
set -euo pipefail
folder=$(cd "$(dirname "$0")/../.." && pwd)/build/bench/llama
version=3.22.1

command -v npm >/dev/null && command -v node >/dev/null || {
  echo "llama.cpp is left out: node and npm are not installed" >&2
  exit 0
}
[[ -d $folder/node_modules/@node-llama-cpp/linux-x64 ]] && exit 0
mkdir -p "$folder"
# Optional packages have binaries for other systems and for GPUs, 700 MB. Steps after the
# installation would build them.
(cd "$folder" && npm install --ignore-scripts --omit=optional --no-audit --no-fund --silent \
  "node-llama-cpp@$version" "@node-llama-cpp/linux-x64@$version" >/dev/null) ||
  echo "llama.cpp is left out: npm cannot install node-llama-cpp $version" >&2
