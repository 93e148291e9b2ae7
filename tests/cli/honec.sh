# hone compile -o FILE.honec writes one file, which run, bench and inspect take like a model.
source "$ROOT/tests/cli/expect.bash"
model=zoo:mlp,size=tiny
says "wrote mlp.honec: " compile "$model" --cache none -o mlp.honec
[[ ! -s out ]]
says "wrote mlp.honec: " compile "$model" --cache none -o mlp.honec  # replaces it

# The same bits as from the model, from other threads, too.
"$HONE" run "$model" --cache none --seed 3 -o direct.npy >direct 2>/dev/null
for more in "" "--verify" "--threads 1"; do
  # shellcheck disable=SC2086  # words
  says "compiled before, loaded and run in" run mlp.honec --seed 3 -o file.npy $more
  cmp direct.npy file.npy
  cmp direct out
done
says "compiled before" run mlp.honec --seed 3 --expect direct.npy
fails 1 "" run mlp.honec --seed 4 --expect direct.npy
fails 2 "no input" run mlp.honec --input nothing=2x16xf32=0
fails 2 "size 3 is not 2" run mlp.honec --input x=3x16xf32=0

hone inspect mlp.honec >out
contains '^compiled +mlp, by hone [0-9.]+, version 5 of the format$'
contains '^input +x f32\[2, 16\]$'
contains '^output +logits f32\[2, 10\]$'
contains '^program +.*, threads [0-9]+, [0-9]+ kernels, [0-9]+ commands, an arena of '
contains '^prices +(analytic|learned) [0-9a-f]{16}'
contains '^weights +.*, not read'
hone inspect mlp.honec --verify >out
contains '^weights +.*, as they were written$'
hone inspect mlp.honec --format json >out
contains '"plan": "plan @mlp hash '
contains '"prices": "(analytic|learned) '
[[ $(head -c 1 out) == "{" ]]

says "loaded and run once in" bench mlp.honec --seconds 0.01 --threads 1
contains '^threads 1, target .* \(.*\), x f32\[2, 16\]$'
contains '^min .*, median .*, p90 .*, p99 .*, of [0-9]+ runs$'
says "" bench mlp.honec --runs 3 --json -
contains '"p99": '

# Less of the machine.
says "for x86-64-v2" compile "$model" --isa x86-64-v2 --cache none -o old.honec
says "" run old.honec

# Options that do not go together.
for option in "--plan p" "--cache none" "--no-log"; do
  # shellcheck disable=SC2086  # words
  fails 2 "is for models that are not compiled yet" run mlp.honec $option
done
fails 2 "beside another one, FILE.honec" bench mlp.honec --vs onnxruntime
fails 2 "changes no input in place" bench mlp.honec --donate --runs 3
fails 3 "none.honec" bench mlp.honec --vs none.honec
fails 2 "name the model that it was made of: --model MODEL" check mlp.honec
fails 2 "--model is for compiled models" check "$model" --model "$model"
fails 2 "has no open sizes" inspect mlp.honec --shape x=2x16
fails 2 "--verify is for compiled models" run "$model" --verify
fails 2 "--verify is for compiled models" inspect "$model" --verify
for command in compile explain space; do
  fails 4 "it has code, and no graph" $command mlp.honec
done
fails 4 "it has code, and no graph" inspect - <mlp.honec
fails 2 "there is no command 'mlp.honec'" mlp.honec
has_said "'hone run', 'bench', 'inspect' and 'check' take a compiled model" mlp.honec
fails 2 "does not go with --stop-after" compile "$model" -o x.honec --stop-after plan
fails 2 "there is no folder" compile "$model" -o none/x.honec
says "wrote x.honec" compile "$model,symbolic-batch" --dim N=4 --cache none -o x.honec

# Files that are not whole.
fails 3 "none.honec" run none.honec
head -c 5000 mlp.honec >cut.honec
fails 3 "5000 bytes" run cut.honec
has_said "it is damaged" run
printf 'graph' >text.honec
fails 3 "compiled model" inspect text.honec
{ head -c 300 mlp.honec; printf 'x'; tail -c +302 mlp.honec; } >changed.honec
fails 3 "checksum" bench changed.honec
{ head -c -1 mlp.honec; printf 'x'; } >weight.honec
says "" run weight.honec
fails 3 "is damaged (weight.honec)" run weight.honec --verify
fails 3 "is damaged (weight.honec)" inspect weight.honec --verify
{ head -c 8 mlp.honec; printf '\x0b'; tail -c +10 mlp.honec; } >later.honec
fails 4 "version 11" run later.honec
[[ $(find . -name '*.tmp-*') == "" ]]

# Code for several levels of instructions: the best is taken, or what --isa says.
says "avx2; x86-64-v2" compile zoo:mlp,size=tiny --isa all --cache none -o all.honec
levels=(x86-64-v2 avx2)
grep -q avx512 err && levels+=(avx512)
hone inspect all.honec >out
[[ $(grep -c '^program ' out) -ge ${#levels[@]} ]]
for level in "${levels[@]}"; do
  says "compiled before" run all.honec --isa "$level" --seed 3 --expect direct.npy
done
says "" bench all.honec --runs 3 --isa x86-64-v2 --json -
contains '"isa": "x86-64-v2"'
# It says what the file has and what was asked for: the machine has more.
fails 4 "mlp.honec' has code for avx" run mlp.honec --isa x86-64-v2
fails 4 "--isa x86-64-v2 asks for no more than x86-64-v2" \
  check mlp.honec --model zoo:mlp --isa x86-64-v2
grep -q "without --isa it runs here: this machine has avx" err
fails 2 "--isa all" compile zoo:mlp --isa all
fails 2 "is for one" compile zoo:mlp --isa all --plan p -o x.honec

# Commands say of models the same as of compiled ones.
says "" check mlp.honec --model zoo:mlp,size=tiny --verify
contains '^logits +f32\[2, 10\] +native .* ok$'
says "" check all.honec --model zoo:mlp,size=tiny --isa avx2
says "" check x.honec --model zoo:mlp,size=tiny,symbolic-batch  # its sizes are the file's
fails 2 "size 2 is not 3" check mlp.honec --model zoo:mlp,size=tiny,batch=3
has_said "the sizes are those of mlp.honec" check
printf 'graph @mlp(%%x: f32[2, 16]) {\n  %%logits = neg %%x\n  return %%logits\n}\n' >other.hone
fails 3 "was made of another model" check mlp.honec --model other.hone
says "" bench mlp.honec --runs 3 --profile
contains ' k[0-9]+ '
says "" bench all.honec --vs mlp.honec --seconds 0.1
contains 'mlp.honec'
cp mlp.honec mlp.bin # what it is stands in the file
says "" bench all.honec --vs mlp.bin --seconds 0.1
fails 3 "takes other inputs" bench mlp.honec --vs x.honec
says "which changes no output" run mlp.honec --flush-denormals
cat >append.hone <<'END'
graph @append(%cache: f32[8, 4] donate 0, %row: f32[1, 4], %at: i64[]) -> f32[8, 4] {
  %next = dynamic_update %cache, %row, %at, 0
  return %next
}
END
says "" compile append.hone --cache none -o append.honec
says "" bench append.honec --donate --runs 3

# Code for several sizes: what is given chooses.
open=zoo:mlp,size=tiny,symbolic-batch
says ", 2 choices of sizes" compile "$open" --sizes N=2 --sizes N=5 --cache none -o sizes.honec
hone inspect sizes.honec >out
contains '^sizes +x 2x16; x 5x16$'
says "" run sizes.honec --seed 3 --expect direct.npy  # the first choice
for size in 2 5; do
  "$HONE" run "$open" --dim N=$size --cache none --seed 4 -o y.npy >table 2>err
  says "compiled before" run sizes.honec --shape x=${size}x16 --seed 4 --expect y.npy
  says "" check sizes.honec --model "$open" --shape x=${size}x16
done
says "" run sizes.honec --input x=5x16xf32=1
contains '^logits +f32\[5, 10\] '
fails 2 "was not compiled for these sizes" run sizes.honec --shape x=3x16
has_said "it has code for x 2x16; x 5x16" run
fails 2 "--sizes is for compiled models" compile "$open" --sizes N=2
fails 2 "has a size by --dim" compile "$open" --dim N=2 --sizes N=2 -o y.honec
fails 2 "not an integer" compile "$open" --sizes N=two -o y.honec
fails 4 "N is open" compile "$open" --emit library -o liby.so
has_said "--dim N=1; or a compiled model" compile

# A file that is one graph for numbers alone, as the sum of [n] and [m] is, is read for each choice.
base64 -d >two.onnx <<'END'
CAgSAm1rOlMKFgoBeAoBeRIBehoGL0FkZF8xIgNBZGQSA3R3b1oQCgF4EgsKCQgBEgUKAxIBbloQCgF5EgsK
CQgBEgUKAxIBbWIQCgF6EgsKCQgBEgUKAxIBa0IECgAQDg==
END
fails 4 "has to be compiled when the sizes of its inputs are seen" compile two.onnx -o two.honec
grep -q -- "--sizes m=1,n=1" err
says ", 2 choices of sizes" \
  compile two.onnx --sizes n=2,m=2 --sizes n=3,m=1 --cache none -o two.honec
says "compiled before" run two.honec --input x=3xf32=1 --input y=1xf32=2
contains '^z +f32\[3\] '
fails 2 "it has code for" run two.honec --shape x=4
fails 2 "has a size by --dim" compile two.onnx --dim n=2 --sizes n=2 -o y.honec
fails 2 "name its file" compile - --sizes n=2,m=2 -o y.honec <two.onnx

# Sizes that stay open: code for all of them.
says ", for all sizes" compile "$open" --cache none -o open.honec
hone inspect open.honec >out
contains '^input +x f32\[N, 16\]$'
contains '^program .* for all sizes, an arena of at most '
hone inspect open.honec --format json >out
contains '"all_sizes": true'
for size in 1 2 7; do
  "$HONE" run "$open" --dim N=$size --cache none --seed 4 -o y.npy >table 2>err
  says "compiled before" run open.honec --shape x=${size}x16 --seed 4 --expect y.npy
  says "" check open.honec --model "$open" --shape x=${size}x16
done
says "" bench open.honec --shape x=3x16 --runs 3 --profile
contains 'x f32\[3, 16\]'
fails 2 "outside of 1..1024" run open.honec --shape x=0x16

# Several segments: control flow, and sizes that data gives.
cat >tree.hone <<'END'
model @positives(%x: f32[4]) -> (%found: f32[K], %twice: f32[K], %end: f32[]) where K in 0..4 {
  %found, %count = run %x crop %found[0] to %count
    graph @select(%x: f32[4]) -> (f32[4], i64[]) {
      %misses = compare %x, 0 {direction = le} : bool[4]
      %key = cast %misses {dtype = i64} : i64[4]
      %keys, %packed = sort %key, %x {axis = 0} : i64[4], f32[4]
      %total = reduce %key {kind = sum, axes = [0]} : i64[]
      %count = sub 4, %total : i64[]
      return %packed, %count
    }
  %twice = run %found graph @double(%v: f32[M]) -> f32[M] where M in 0..100 {
    %y = add %v, %v : f32[M]
    return %y
  }
  %start = run graph @one() { %s = constant 1.5 : f32[] return %s }
  %end = loop trip %count with %s = %start {
    %t = run %s graph @step(%s: f32[]) { %t = mul %s, %s return %t }
    yield %t
  }
}
END
says ", 4 segments" compile tree.hone --cache none -o tree.honec
hone inspect tree.honec >out
contains '^segments +4$'
for x in "1 2 3 -1" "-1 -2 -3 -4" "5 6 7 8"; do
  "$HONE" run tree.hone --cache none --input "x=4xf32=$x" >direct 2>err
  says "compiled before" run tree.honec --input "x=4xf32=$x"
  cmp direct out
  hone check tree.honec --model tree.hone --input "x=4xf32=$x"
done
says "" bench tree.honec --runs 3
fails 2 "is for models that are one graph" bench tree.honec --runs 3 --donate
says "" bench tree.honec --input "x=4xf32=1 2 3 -1" --runs 3 --profile
contains '^step +3 '    # a segment runs as often as its loop
contains '^double +M = 3 +1 '
contains '^# segment select$'
says "wrote t.json" bench tree.honec --input "x=4xf32=1 2 3 -1" --runs 3 --trace t.json
[[ $(grep -c '"name":"mul","cat":"launch"' t.json) == 30 ]]  # three trips in each of ten runs
says "wrote t.json" run tree.honec --input "x=4xf32=1 2 3 -1" --trace t.json
[[ $(grep -c '"name":"mul","cat":"launch"' t.json) == 3 ]]
says "" bench open.honec --shape x=3x16 --runs 3 --trace t.json
fails 2 "no symbol 'N'" compile tree.hone --sizes N=2 -o y.honec
sed '1s/%x: f32\[4\]/&, %y: f32[N]/; 1s/K in 0..4/&, N in 1..8/' tree.hone >sized_tree.hone
fails 2 "a tree of segments for these sizes, too" compile sized_tree.hone --sizes N=2 -o y.honec
has_said "--dim and --shape choose one size" compile
says ", 4 segments" compile sized_tree.hone --dim N=2 --cache none -o y.honec
fails 4 "a library takes a single graph" compile tree.hone --emit library -o liby.so
has_said "-o FILE.honec" compile
