# Vectors of texts on the command line: a tiny encoder of random weights.
source "$ROOT/tests/cli/expect.bash"
cp "$ROOT/tests/fuzz/corpus/gguf/encoder.gguf" "$ROOT/tests/fuzz/corpus/gguf/tiny.gguf" .
export XDG_CACHE_HOME=$PWD/cache

hone embed encoder.gguf -p "the cats" --threads 1 >out 2>err
[[ $(wc -l <out) == 1 && $(wc -w <out) == 16 ]]
# The length is 1.
awk '{ for (i = 1; i <= NF; ++i) sum += $i * $i; exit !(sum > 0.999 && sum < 1.001) }' out
cp out first
printf 'the other one!\nthe cats\n' >texts.txt
hone embed encoder.gguf --prompts texts.txt --threads 1 >out 2>err
[[ $(wc -l <out) == 2 ]]
tail -1 out | cmp - first
printf 'the cats' | hone embed encoder.gguf --prompt-file - --threads 1 >out 2>err
cmp out first
hone embed encoder.gguf --prompts texts.txt -o vectors.npy --threads 1 >out 2>err
head -c 128 vectors.npy | grep -qa "'shape': (2, 16)"
for pooling in cls last; do
  hone embed encoder.gguf -p "the cats" --pooling $pooling --raw --threads 1 >out 2>err
  never cmp -s out first
done

hone tokens encoder.gguf -p "The cats!" >out 2>err
printf '2 "[CLS]"\n4 "the"\n5 "cat"\n6 "##s"\n12 "!"\n3 "[SEP]"\n' | cmp - out

fails 2 "--prompts says" embed encoder.gguf
fails 2 "--prompts says" embed encoder.gguf -p a --prompts texts.txt
for i in {1..30}; do printf 'the '; done >long.txt
fails 2 "--drop-end" embed encoder.gguf --prompt-file long.txt --threads 1
hone embed encoder.gguf --prompt-file long.txt --drop-end --threads 1 >out 2>err
fails 4 "known are bert" embed tiny.gguf -p a
fails 4 "hone embed" generate encoder.gguf -p a
