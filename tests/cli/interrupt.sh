# Ctrl-C ends long work soon, with its own exit code.
interrupt() { # interrupt COMMAND ARGS...: once the work has begun
  local code=0 waited=0
  rm -f out err  # those of the one before
  "$HONE" "$@" --progress json >out 2>err &
  until grep -qs '"start"' err; do
    sleep 0.05
    ((++waited < 600)) || { echo "hone $*: no progress"; cat err; return 1; }
  done
  kill -INT $!
  wait $! || code=$?
  [[ $code == 130 ]] || { echo "hone $*: exit code $code"; cat err; return 1; }
  grep -q "^hone: error: " err
}
interrupt run zoo:vgg19,batch=8
[[ ! -s out ]]
# Code that is only shown.
interrupt compile zoo:resnet50 --cache none --emit asm
[[ ! -s out ]]
# The results of random cases until then are told.
interrupt fuzz --count 5000
grep -Eq "^[0-9]+ of 5000 cases: " out
# Inside of a node that never ends.
cat >endless.hone <<'END'
graph @endless(%x: i32[]) {
  %y = while %x
    condition (%a: i32[]) {
      %yes = constant true : bool[]
      return %yes
    }
    body (%b: i32[]) {
      %c = add %b, %b
      return %c
    }
  return %y
}
END
interrupt run endless.hone --input x=i32=1
[[ ! -s out ]]

# A kernel is not interrupted; the run is given up, or ended at once by another Ctrl-C.
cat >slow.hone <<'END'
graph @slow(%x: f32[]) {
  %b = broadcast %x {dims = [1099511627776], map = []}
  %e = exp %b
  %y = reduce %e {kind = sum, axes = [0]}
  return %y
}
END
await() { # await TEXT: in err
  local waited=0
  until grep -qs "$1" err; do
    sleep 0.05
    ((++waited < 600)) || { echo "no '$1' in:"; cat err; kill -KILL $!; exit 1; }
  done
}
for times in 1 2; do
  rm -f out err
  code=0
  "$HONE" run slow.hone --cache none >out 2>err &
  await "kernels in"
  for _ in $(seq $times); do kill -INT $!; done
  wait $! || code=$?
  [[ $code == 130 && ! -s out ]] || { echo "exit code $code"; cat err; exit 1; }
done
