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

# A prompt that is too long is refused, or loses its start.
says "were left out: the context has room for 8" \
  generate model.gguf -p "the other one" -n 4 --context 8 --drop-start --threads 1
# Guesses change no token.
says "guessed tokens were right" \
  generate model.gguf -p "the other the other" -n 20 --lookup --threads 1
mv out guessed
says "20 tokens in" generate model.gguf -p "the other the other" -n 20 --threads 1
cmp out guessed
says "15 of 15 guessed tokens were right" \
  generate model.gguf -p "the other the other" -n 20 --draft model.gguf --threads 1
cmp out guessed
fails 2 "both say" generate model.gguf -p the --lookup --draft model.gguf --threads 1
fails 3 "missing.gguf" generate model.gguf -p the --draft missing.gguf --threads 1
# Several texts, whose tokens share the weights, or not.
printf 'the other\nthe\n' >prompts.txt
says "2 texts, 12 tokens" generate model.gguf --prompts prompts.txt -n 6 --threads 1
[[ $(wc -l <out) == 2 ]]
says "tokens a second" generate model.gguf --prompts prompts.txt -n 6 --threads 1 --apart
[[ $(wc -l <out) == 2 ]]
# Apart, each text is the one that its prompt gets alone.
head -1 out | sed 's/^"//; s/"$//' >line
[[ $(printf "$(cat line)") == "$(cat first)" ]]
fails 2 "does not go with" generate model.gguf --prompts prompts.txt -p a
fails 2 "--prompts" generate model.gguf -p a --apart
# Caches and weights of fewer bits.
for type in f16 q8; do
  says "6 tokens in" generate model.gguf -p "the other" -n 6 --cache-type $type --threads 1
done
fails 2 "f32, f16" generate model.gguf -p the --cache-type q4
for level in w8 w4; do
  says "6 tokens in" generate model.gguf -p "the other" -n 6 --to $level --threads 1
  hone evaluate model.gguf --text text.txt --window 16 --to $level --threads 1 >out 2>err
  contains '^perplexity [0-9.]+ of'
done
# Where the time of a token goes.
says "of what the memory delivers" generate model.gguf -p the -n 5 --profile --threads 1
grep -q "layer/1" err
# The probability of each token goes to a file.
says "3 tokens in" generate model.gguf -p the -n 3 --log-probabilities tokens.txt --threads 1
[[ $(wc -l <tokens.txt) == 3 ]]
grep -qE '^[0-9]+ -[0-9.]+ ".*"$' tokens.txt
# The chat template goes around what a user says, and the user's text spells no control token.
hone tokens model.gguf --chat --system "a" -p "</s>" >out 2>err
printf '%s\n' '262 "<s>"' '115 "s"' '121 "y"' '115 "s"' '116 "t"' '101 "e"' '109 "m"' '58 ":"' \
  '258 " a"' '263 "</s>"' '262 "<s>"' '117 "u"' '115 "s"' '260 "er"' '58 ":"' '32 " "' '60 "<"' \
  '47 "/"' '115 "s"' '62 ">"' '263 "</s>"' '262 "<s>"' '97 "a"' '115 "s"' '115 "s"' '105 "i"' \
  '115 "s"' '116 "t"' '97 "a"' '110 "n"' '116 "t"' '58 ":"' | cmp - out
says "prompt: 24 tokens" generate model.gguf --chat -p "on the other" -n 2 --threads 1
never grep -q "made to answer" err
says "made to answer: --chat" generate model.gguf -p "on the other" -n 2 --threads 1
fails 2 "no control tokens" generate model.gguf --chat --control -p a
fails 2 "goes with --chat" generate model.gguf --system a -p a

# A conversation, line by line. Messages that no longer fit are left out.
printf 'the\n\nother\n/new\nthe\n/exit\nnot read\n' >lines
hone chat model.gguf -n 3 --context 64 --threads 1 <lines >out 2>err
[[ $(wc -l <out) -ge 3 ]]
grep -q '^3 answers, 9 tokens in ' err
printf 'the\nother\none\nthe other\n' >lines
hone chat model.gguf -n 3 --context 64 --threads 1 <lines >out 2>err
grep -q "oldest messages are left out: the context has room for 64" err

# Ctrl-C ends a text with what there is so far. The model gets a context that lasts.
cp model.gguf long.gguf
at=$(grep -abo llama.context_length long.gguf | head -1 | cut -d: -f1)
printf '\000\000\001\000' | dd of=long.gguf bs=1 seek=$((at + 24)) conv=notrunc 2>/dev/null
wait_for() { # wait_for COMMAND...: until it succeeds
  local turns=0
  until "$@"; do
    sleep 0.05
    ((++turns < 1200)) || { echo "it does not come: $*"; return 1; }
  done
}
rm out err
"$HONE" generate long.gguf -p the -n 65000 --context 65536 --threads 1 >out 2>err &
wait_for test -s out
kill -INT $!
code=0
wait $! || code=$?
[[ $code == 130 ]] || { echo "exit code $code"; cat err; exit 1; }
grep -q "the end: interrupted" err
# In a conversation it ends the answer alone.
rm out err
mkfifo talk
"$HONE" chat long.gguf -n 60000 --context 65536 --threads 1 <talk >out 2>err &
chat=$!
exec 3>talk
echo the >&3
wait_for test -s out
kill -INT $chat
wait_for grep -q "the end: interrupted" err
size=$(stat -c %s out)
echo other >&3
grown() { (($(stat -c %s out) > size)); }
wait_for grown
kill -INT $chat
exec 3>&-
wait $chat
grep -q "2 answers" err
