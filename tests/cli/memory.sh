# Where there is not enough memory, the command says so and ends with its exit code: never with a
# signal, and never as a fault.
limited() { # limited KB ARGS...
  local code=0 limit=$1
  shift
  (ulimit -c 0 && ulimit -v "$limit" && exec "$HONE" "$@") >out 2>err || code=$?
  echo "$code"
}

start=32000  # KB that starting takes, which differ a little from run to run
while [[ $(limited $start help) != 0 ]]; do
  start=$((start + 1000))
  ((start < 1000000))
done
start=$((start + 2000))

# With fewer threads less is enough, so there is no limit from which on it succeeds.
refused=0
for ((limit = start; limit < start + 60000; limit += 6000)); do
  code=$(limited $limit compile zoo:resnet18,size=tiny --cache none --emit asm)
  [[ $code == 0 ]] && continue
  [[ $code == 5 ]] || { echo "exit code $code at $limit KB"; cat err; exit 1; }
  grep -q "out of memory" err || { echo "at $limit KB:"; cat err; exit 1; }
  refused=$((refused + 1))
done
((refused > 0))
[[ $(limited $((start + 1000000)) compile zoo:resnet18,size=tiny --cache none --emit asm) == 0 ]]

# Native code is bounded by what it holds: inputs, outputs, constants and arenas. A branch that is
# not taken computes 2^40 numbers; the reference is bounded by all that it would compute.
branch() { # branch STATEMENT: to %s, a scalar
  cat <<END
graph @branch(%c: bool[], %x: f32[]) {
  %y = if %c, %x then (%a: f32[]) {
    %b = broadcast %a {dims = [1099511627776], map = []}
    %e = exp %b
    $1
    return %s
  } else (%z: f32[]) {
    return %z
  }
  return %y
}
END
}
refused() { # refused WORDS ARGS...
  local code=0 words=$1
  shift
  "$HONE" "$@" >out 2>err || code=$?
  [[ $code == 5 ]] || { echo "hone $*: exit code $code"; cat err; exit 1; }
  grep -q "$words" err || { echo "hone $*: no '$words' in:"; cat err; exit 1; }
}
branch '%s = reduce %e {kind = sum, axes = [0]}' >folded.hone
"$HONE" run folded.hone --input c=bool=0 --input x=f32=3 | grep -q "\b3\b"
"$HONE" bench folded.hone --seconds 0.01 --input c=bool=0 >out
refused "this run needs about" run folded.hone --backend reference --input c=bool=0
refused "this run needs about" check folded.hone --input c=bool=0
refused "this run needs about" demo folded.hone
branch '%t = cumulative %e {kind = sum, axis = 0}
    %u = reverse %t {axes = [0]}
    %v = cumulative %u {kind = sum, axis = 0}
    %s = reduce %v {kind = sum, axes = [0]}' >stored.hone
refused "the limit is" run stored.hone --input c=bool=0
refused "the limit is" bench stored.hone --input c=bool=0
refused "the limit is" bench stored.hone --profile --input c=bool=0
# Memory that is given back counts.
cat >large.hone <<'END'
graph @large(%x: f32[]) {
  %y = broadcast %x {dims = [1099511627776], map = []}
  return %y
}
END
refused "this run needs about" run large.hone
# So do random inputs: here one of half of the memory, beside all else.
cat >random.hone <<'END'
graph @random(%x: f32[N]) where N in 1..1099511627776 {
  %y = reduce %x {kind = sum, axes = [0]}
  return %y
}
END
half=$((128 * $(sed -nE 's/^MemTotal: +([0-9]+) kB/\1/p' /proc/meminfo)))
refused "this run needs about" run random.hone --dim "N=$half"

# On cases in processes of their own it says nothing: none counts as failed or is saved.
refused=0
for ((limit = start; limit < start + 60000; limit += 6000)); do
  for words in "fuzz --count 2 --save saved" "reduce zoo:mlp,size=tiny"; do
    code=$(limited $limit $words --progress none)
    [[ $code == 0 ]] && continue
    [[ $code == 5 ]] || { echo "$words: exit code $code at $limit KB"; cat out err; exit 1; }
    grep -Eq "out of memory|the system gives|cannot start a process" err ||
      { echo "$words at $limit KB:"; cat err; exit 1; }
    refused=$((refused + 1))
  done
done
((refused > 0))
[[ ! -e saved && -z $(compgen -G 'hone-crash-*') ]]

data=/usr/share/libonnx-testdata/data/node/test_relu
[[ -d $data ]] || { echo "skipped the rest: there is no $data"; exit 0; }
mkdir cases
cp -r "$data" cases/
refused=0
for ((limit = start; limit < start + 60000; limit += 400)); do
  code=$(limited $limit conformance cases --backend native --cache none --progress none)
  [[ $code == 0 ]] && continue
  [[ $code == 5 ]] || { echo "conformance: exit code $code at $limit KB"; cat out err; exit 1; }
  refused=$((refused + 1))
done
((refused > 0))
[[ $(limited $((start + 1000000)) conformance cases --backend native --cache none) == 0 ]]
