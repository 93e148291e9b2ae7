#!/usr/bin/env bash
# Installs ONNX Runtime for node below build/, for benchmarks alone. Exits 77 where it cannot.
set -euo pipefail
folder=$(cd "$(dirname "$0")/../.." && pwd)/build/bench/onnxruntime
version=1.30.0

command -v npm >/dev/null && command -v node >/dev/null || {
  echo "skipped, node and npm are not installed" >&2
  exit 77
}
[[ -d $folder/node_modules/onnxruntime-node ]] && exit 0
mkdir -p "$folder"
# Its post-install step downloads libraries for GPUs.
(cd "$folder" && npm install --ignore-scripts --no-audit --no-fund --silent \
  "onnxruntime-node@$version" >/dev/null) || {
  echo "skipped, npm cannot install onnxruntime-node $version" >&2
  exit 77
}
