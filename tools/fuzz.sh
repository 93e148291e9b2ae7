#!/usr/bin/env bash
# tools/fuzz.sh NAME SECONDS: runs one fuzz target. Seeds are in tests/fuzz/corpus/NAME; what the
# fuzzer learns and what it breaks goes to build/fuzz/NAME.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

name=$1 seconds=$2
found=build/fuzz/$name
seeds=tests/fuzz/corpus/$name
mkdir -p "$found/corpus"
[[ -d $seeds ]] || seeds=

"build/asan/fuzz_$name" "$found/corpus" ${seeds:+"$seeds"} -max_total_time="$seconds" \
  -artifact_prefix="$found/" -timeout=10 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1
