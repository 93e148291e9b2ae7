#!/usr/bin/env bash
# Unpacks the modules that bench_hlo reads, if they are there. JAX is asked by HONE_JAX_PYTHON.
root=$(cd "$(dirname "$0")/../.." && pwd)
data=$root/../shared/data/hlo/modules.tar.xz
mkdir -p "$root/build/bench/hlo"
if [[ -f $data ]]; then
  tar -xf "$data" -C "$root/build/bench/hlo"
else
  echo "there is no $data: modules are left out" >&2
fi
