#!/usr/bin/env bash
# tests/log/kill.sh [KILLS]: two processes write to one log, and kill -9 ends them at random
# moments. Each time the log has to be whole and to have all that was acknowledged.
set -euo pipefail
kills=${1:-20}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
program=${BUILD:-$root/build/release}/test_log
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

call() { # call TEST
  exec "$program" --gtest_also_run_disabled_tests --gtest_filter="KilledLog.DISABLED_$1" \
    --gtest_brief=1
}

acknowledged=0 written=0 killed=0
WRITER_LOG=$folder/none
while ((killed < kills)); do
  # A log has twenty kills behind it, and its first ones meet it while it is made.
  if ((killed % 20 == 0)); then
    rm -f "$WRITER_LOG"*
    export WRITER_LOG=$folder/$killed.db
    : >"$WRITER_LOG.acks"
    counted=0 found=0
  fi
  pids=()
  for writer in a b; do
    (WRITER_NAME=$killed$writer call Writes) >"$folder/said-$writer" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do
    sleep "0.$(printf '%03d' $((RANDOM % 300)))"
    kill -9 "$pid"
    wait "$pid" 2>/dev/null || true
    killed=$((killed + 1))
  done
  for writer in a b; do
    if grep -q Failure "$folder/said-$writer"; then
      cat "$folder/said-$writer"
      exit 1
    fi
  done
  (call HasWhatWasAcknowledged) >"$folder/said" 2>&1 || {
    cat "$folder/said"
    echo "after kill $killed"
    exit 1
  }
  read -r counted_now found_now <"$WRITER_LOG.count"
  acknowledged=$((acknowledged + counted_now - counted)) counted=$counted_now
  written=$((written + found_now - found)) found=$found_now
done
echo "$killed kills, $acknowledged acknowledged records, 0 lost, 0 unreadable logs;" \
  "$((written - acknowledged)) were there before they were acknowledged"
((acknowledged > 0))
