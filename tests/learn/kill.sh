#!/usr/bin/env bash
# Training that kill -9 ends, and that goes on where it stood, comes to the same bits as training
# that nobody disturbs.
program=${BUILD:?}/train_digits

"$program" whole >said
grep -q '^epoch 7: ' said
tail -n 1 said

for ((i = 0; i < 200; i++)); do
  "$program" parts >>said-in-parts &
  pid=$!
  # Longer each time, so that it gets through on a machine that is busy, too.
  tenths=$((RANDOM % 7 + 2 + i))
  sleep "$((tenths / 10)).$((tenths % 10))"
  kill -9 "$pid" 2>/dev/null || true
  if wait "$pid" 2>/dev/null; then break; fi
done
cmp whole/last.safetensors parts/last.safetensors
cmp whole/best.safetensors parts/best.safetensors
