# Tokens of random texts are those of the library `tokenizers`, where Python has it.
source "$ROOT/tests/cli/expect.bash"
python=${HONE_PYTHON:-python3}
if ! "$python" -c "import tokenizers" 2>/dev/null; then
  echo "skipped, for Python has no tokenizers"
  exit 0
fi
model=${HONE_GGUF:-$ROOT/tests/fuzz/corpus/gguf/tiny.gguf}
for seed in 1 2 3; do
  "$python" "$ROOT/tests/cli/reference_tokens.py" --random $seed 4000 >text
  "$python" "$ROOT/tests/cli/reference_tokens.py" "$model" text >wanted
  hone tokens "$model" --prompt-file text >out
  cut -d' ' -f1 out | cmp - wanted
done

# Random unigram vocabularies, from a folder.
mkdir pieces
cp "$ROOT/tests/cli/tiny_config.json" pieces/config.json
for fallback in plain bytes; do
  "$python" "$ROOT/tests/cli/reference_tokens.py" --unigram $fallback pieces/tokenizer.json
  for seed in 1 2 3; do
    "$python" "$ROOT/tests/cli/reference_tokens.py" --random $seed 3000 >text
    "$python" "$ROOT/tests/cli/reference_tokens.py" pieces/tokenizer.json text >wanted
    hone tokens pieces --prompt-file text >out
    cut -d' ' -f1 out | cmp - wanted
  done
done
