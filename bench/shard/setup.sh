#!/usr/bin/env bash
# Unpacks the modules whose plans bench_shard compares, where bench_hlo has them, too.
exec "$(dirname "$0")/../hlo/setup.sh"
