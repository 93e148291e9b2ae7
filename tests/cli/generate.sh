# Language models on the command line: a tiny one of random weights.
source "$ROOT/tests/cli/expect.bash"
cp "$ROOT/tests/fuzz/corpus/gguf/tiny.gguf" model.gguf
export XDG_CACHE_HOME=$PWD/cache

# The text goes to the standard output, all else to the other one.
says "the end: as many tokens as asked for" generate model.gguf -p "the other" -n 6 --threads 1
cp out first
says "6 tokens in" generate model.gguf -p "the other" -n 6 --threads 1
cmp out first
# A file and the standard input hold the same prompt.
printf 'the other' >prompt.txt
says "prompt: 5 tokens" generate model.gguf --prompt-file prompt.txt -n 6 --threads 1
cmp out first
says "prompt: 5 tokens" generate model.gguf --prompt-file - -n 6 --threads 1 <prompt.txt
cmp out first
# Drawn texts depend on the seed alone.
draws() { hone generate model.gguf -p the -n 12 --temperature 2 --seed "$1" --threads 1 2>err; }
draws 1 >a
draws 1 >b
draws 2 >c
cmp a b
never cmp -s a c
# The context ends it.
says "the end: the context is full" generate model.gguf -p the -n 100 --context 8 --threads 1
# It is a graph as others are.
hone inspect model.gguf >out 2>err
contains 'logits +f32.rows, 264.'
hone run model.gguf --threads 1 >out 2>err
contains "logits"

printf 'the other one is on the other one, and the other on a third one' >text.txt
hone evaluate model.gguf --text text.txt --window 16 --threads 1 >out 2>err
contains '^perplexity [0-9.]+ of [0-9]+ tokens in [0-9]+ windows of 16$'

hone tokens model.gguf -p "the a</s>" >out 2>err
printf '257 "the"\n258 " a"\n60 "<"\n47 "/"\n115 "s"\n62 ">"\n' | cmp - out
hone tokens model.gguf -p "the</s>" --control >out 2>err
printf '257 "the"\n263 "</s>"\n' | cmp - out

# Errors say what is wrong and what to do.
fails 2 "--prompt-file" generate model.gguf
fails 2 "one of --prompt" generate model.gguf -p a --prompt-file prompt.txt
fails 2 "the prompt has no token" generate model.gguf -p "" --threads 1
fails 2 "the context has room for 2" generate model.gguf -p "the other" --context 2 --threads 1
fails 2 "the model takes 64" generate model.gguf -p the --context 65 --threads 1
fails 2 "parts of 1" generate model.gguf -p the --top-p 2
fails 2 "--text" evaluate model.gguf
fails 3 "not a GGUF file" generate prompt.txt -p the
fails 3 "missing.gguf" generate missing.gguf -p the
head -c 3000 model.gguf >cut.gguf
fails 3 "cut.gguf" generate cut.gguf -p the
