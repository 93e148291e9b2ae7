# Ctrl-C ends long work soon, with its own exit code.
interrupt() { # interrupt ARGS...: once the work has begun
  local code=0 waited=0
  "$HONE" run "$@" --progress json >out 2>err &
  until grep -qs '"start"' err; do
    sleep 0.05
    ((++waited < 600)) || { echo "hone run $*: no progress"; cat err; return 1; }
  done
  kill -INT $!
  wait $! || code=$?
  [[ $code == 130 ]] || { echo "hone run $*: exit code $code"; cat err; return 1; }
  grep -q "^hone: error: " err
  [[ ! -s out ]]
}
interrupt zoo:vgg19,batch=8
# Inside of a node that never ends.
cat >endless.hone <<'END'
graph @endless(%x: i32[]) {
  %y = while %x
    condition (%a: i32[]) {
      %yes = constant true : bool[]
      return %yes
    }
    body (%b: i32[]) {
      return %b
    }
  return %y
}
END
interrupt endless.hone --input x=i32=1
