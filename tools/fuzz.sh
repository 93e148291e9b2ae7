#!/usr/bin/env bash
# tools/fuzz.sh NAME SECONDS [OPTION...]: runs one fuzz target within 2 s and 1 GB for each input:
# of build/asan, or of build/$FUZZ_PRESET. Seeds count as inputs that reach something new, since a
# library without sanitizers does not tell.
# Seeds are in tests/fuzz/corpus/NAME, for ONNX also the standard's own cases where they are; what
# the fuzzer learns and what it breaks goes to build/fuzz/NAME. Options are libFuzzer's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

name=$1 seconds=$2
shift 2
found=$PWD/build/fuzz/$name
standard=/usr/share/libonnx-testdata/data/node
folders=("$found/corpus")
mkdir -p "$found/corpus"
if [[ -d tests/fuzz/corpus/$name ]]; then folders+=("tests/fuzz/corpus/$name"); fi
if [[ $name == onnx* && -d $standard ]]; then
  mkdir -p "$found/standard"
  (cd "$standard" &&
    find . -name model.onnx -size -5k -exec cp -u --parents -t "$found/standard" {} +)
  folders+=("$found/standard")
fi

# Models do not grow from nothing: inputs may be long at once.
FUZZ_TARGET=$name "build/${FUZZ_PRESET:-asan}/fuzz" "${folders[@]}" -max_total_time="$seconds" \
  -artifact_prefix="$found/" -timeout=2 -rss_limit_mb=1024 -len_control=0 -verbosity=0 \
  -print_final_stats=1 -keep_seed=1 "$@"
