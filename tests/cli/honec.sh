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
contains '^compiled +mlp, by hone [0-9.]+, version 1 of the format$'
contains '^input +x f32\[2, 16\]$'
contains '^output +logits f32\[2, 10\]$'
contains '^program +.*, threads [0-9]+, [0-9]+ kernels, [0-9]+ commands, an arena of '
contains '^weights +.*, not read'
hone inspect mlp.honec --verify >out
contains '^weights +.*, as they were written$'
hone inspect mlp.honec --format json >out
contains '"plan": "plan @mlp hash '
[[ $(head -c 1 out) == "{" ]]

says "loaded and run once in" bench mlp.honec --seconds 0.01 --threads 1
contains '^threads 1, target .* \(.*\), x f32\[2, 16\]$'
contains '^min .*, median .*, p90 .*, p99 .*, of [0-9]+ runs$'
says "" bench mlp.honec --runs 3 --json -
contains '"p99": '

# Less of the machine.
says "for x86-64-v2" compile "$model" --isa x86-64-v2 --cache none -o old.honec
says "" run old.honec

# What does not go together.
for option in "--isa avx2" "--plan p" "--cache none" "--no-log" "--flush-denormals"; do
  # shellcheck disable=SC2086  # words
  fails 2 "is for models that are not compiled yet" run mlp.honec $option
done
for option in "--profile" "--donate" "--vs onnxruntime"; do
  # shellcheck disable=SC2086  # words
  fails 2 "is for models that are not compiled yet" bench mlp.honec $option
done
fails 2 "has no open sizes" inspect mlp.honec --shape x=2x16
fails 2 "--verify is for compiled models" run "$model" --verify
fails 2 "--verify is for compiled models" inspect "$model" --verify
for command in check compile explain space; do
  fails 4 "it has code, and no graph" $command mlp.honec
done
fails 4 "it has code, and no graph" inspect - <mlp.honec
fails 2 "does not go with --stop-after" compile "$model" -o x.honec --stop-after plan
fails 2 "there is no folder" compile "$model" -o none/x.honec
fails 4 "is for sizes that are numbers; N is open" compile "$model,symbolic-batch" -o x.honec
has_said "--dim N=" compile
says "wrote x.honec" compile "$model,symbolic-batch" --dim N=4 --cache none -o x.honec

# Files that are not whole.
fails 3 "none.honec" run none.honec
head -c 5000 mlp.honec >cut.honec
fails 3 "5000 bytes, its header says" run cut.honec
has_said "it is damaged" run
printf 'graph' >text.honec
fails 3 "no compiled model" inspect text.honec
{ head -c 300 mlp.honec; printf 'x'; tail -c +302 mlp.honec; } >changed.honec
fails 3 "checksum" bench changed.honec
{ head -c -1 mlp.honec; printf 'x'; } >weight.honec
says "" run weight.honec
fails 3 "is damaged (weight.honec)" run weight.honec --verify
fails 3 "is damaged (weight.honec)" inspect weight.honec --verify
{ head -c 8 mlp.honec; printf '\x02'; tail -c +10 mlp.honec; } >later.honec
fails 4 "version 2, this hone reads version 1" run later.honec
[[ $(find . -name '*.tmp-*') == "" ]]
