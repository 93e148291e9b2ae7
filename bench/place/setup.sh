#!/bin/sh
# Unpacks the public graphs to split into build/bench/place.
root=$(cd "$(dirname "$0")/../.." && pwd)
data=$root/../shared/data/dnn-partitioning/graphs.tar.xz
[ -e "$data" ] || { echo "skipped: no $data"; exit 77; }
mkdir -p "$root/build/bench/place" && tar -xf "$data" -C "$root/build/bench/place"
