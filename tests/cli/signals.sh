# SIGTERM and SIGHUP end a command as Ctrl-C does, at any moment. Its exit code is 128 + the
# signal's number. Its results are kept, and nothing half written is left.
source "$ROOT/tests/cli/expect.bash"
source "$ROOT/tests/share.bash"
export HONE_LOG=$PWD/log.db

declare -A number=([HUP]=1 [INT]=2 [TERM]=15)
# An end in time is not measured; one that does not come at all is.
end_of() { # end_of PID: its exit code in `code`
  local waited=0
  while kill -0 "$1" 2>/dev/null; do
    sleep 0.05
    ((++waited < 1200)) || { echo "it goes on"; kill -KILL "$1"; return 1; }
  done
  code=0
  wait "$1" || code=$?
}
nothing_is_half() {
  local left
  left=$(find . -name '*.tmp-*')
  [[ -z $left ]] || { echo "left behind: $left"; return 1; }
}

# Each command is ended at some moments after its start, by one signal after another: a sixth of
# the commands at one moment each in a share. One that is done by then has done all of it.
signals=(TERM HUP INT)
turn=0
commands=0
ends_at() { # ends_at "MOMENTS" COMMAND ARGS...
  local moments=$1 moment signal item=0 count
  count=$(wc -w <<<"$moments")
  shift
  in_share "$((commands++))" 6 || return 0
  for moment in $moments; do
    in_share "$((item++))" "$count" || continue
    signal=${signals[turn++ % 3]}
    "$HONE" "$@" >out 2>err &
    sleep "$moment"
    kill -"$signal" $! 2>/dev/null || true
    end_of $! || { echo "hone $*, SIG$signal after $moment s"; return 1; }
    if [[ $code != $((128 + number[$signal])) && $code != 0 ]]; then
      echo "hone $*: exit code $code by SIG$signal after $moment s"
      cat err
      return 1
    fi
    [[ $code == 0 ]] || grep -q "^hone: error: " err || { echo "hone $*:"; cat err; return 1; }
    nothing_is_half || { echo "by hone $*, SIG$signal after $moment s"; return 1; }
  done
}
"$HONE" zoo export resnet50 -o big.onnx 2>err
ends_at "0.05 0.4 1 2" zoo export vgg19 -o vgg.hone
ends_at "0.05 0.3 1" zoo export vgg19 -o vgg.onnx --external-data
ends_at "0.05 0.2 0.6" convert big.onnx -o big.hone
ends_at "0.1 0.5" inspect big.onnx
ends_at "0.3 1" opt big.onnx --pass fold,cse -o -
ends_at "0.1 1 3" compile big.onnx --cache none -o big.honec
ends_at "0.3 1" compile big.onnx --cache none --emit program -o big.program
ends_at "0.5 2" run zoo:resnet50 --backend reference
ends_at "0.3 2" bench zoo:resnet50 --cache none
ends_at "0.3 2" check zoo:resnet50 --cache none
ends_at "0.3 1" explain zoo:resnet50 --no-log
ends_at "0.3 2" report zoo:resnet50 --cache none --alone -o page.html
ends_at "0.3 1.5" optimize zoo:bert_base,size=tiny -o faster.hone --budget 20s
ends_at "0.3 1.5" grad zoo:resnet50 -o step.hone
ends_at "0.1 1" fuzz --count 5000
ends_at "0.1 1" rules generate dot --ops 3 -o dot.rules --state dot.state
ends_at "0.1 1" rules verify "$ROOT/rules/movement.rules" -o true.rules
ends_at "0.2 1" calibrate --budget 30s -o prices
ends_at "0.2 1" dataset build zoo:mlp,size=tiny -o set --budget 30s
ends_at "0.05 0.3" target probe --seconds 5 -o here.target

# A kernel cannot be stopped; it is given up.
cat >slow.hone <<'END'
graph @slow(%x: f32[]) {
  %b = broadcast %x {dims = [1099511627776], map = []}
  %e = exp %b
  %y = reduce %e {kind = sum, axes = [0]}
  return %y
}
END
commands=$((-commit))  # in every share
ends_at "2" run slow.hone --cache none
[[ ! -s out && $code == $((128 + number[${signals[(turn - 1) % 3]}])) ]]

# With nohup a hangup is ignored.
nohup "$HONE" fuzz --count 20 >out 2>err &
sleep 0.3
kill -HUP $! 2>/dev/null || true
end_of $!
[[ $code == 0 ]] || { echo "nohup: exit code $code"; cat err; exit 1; }

# ---- What is kept -------------------------------------------------------------------------------

await() { # await TEXT: in err
  local waited=0
  until grep -qs -- "$1" err; do
    sleep 0.05
    ((++waited < 1200)) || { echo "no '$1' in:"; cat err; kill -KILL $!; exit 1; }
  done
}
kept_by() { # kept_by SIGNAL TEXT COMMAND...: ended once it has said the text
  local signal=$1 text=$2
  shift 2
  rm -f err
  "$HONE" "$@" --progress json >out 2>err &
  await "$text"
  kill -"$signal" $!
  end_of $!
  if [[ $code != $((128 + number[$signal])) ]]; then
    echo "hone $*: exit code $code"
    cat err
    return 1
  fi
  nothing_is_half
}
# The best plan so far.
kept_by TERM "kernel 1 of" tune zoo:mlp,size=tiny --budget 60s --cache none -o best.plan
grep -q '^plan @mlp' best.plan
"$HONE" run zoo:mlp,size=tiny --cache none --plan best.plan >out 2>err
# The results of random cases.
kept_by HUP '"progress"' fuzz --count 5000
grep -Eq "^[0-9]+ of 5000 cases: " out
# The measurements.
kept_by TERM '"progress"' dataset build zoo:squeezenet -o kept.set --budget 120s
"$HONE" dataset inspect kept.set >out
# The position of training.
python3 - <<'END'
import struct, zipfile

def npy(dims, data):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (dims,)
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data

rows = 4096
with zipfile.ZipFile("points.npz", "w") as file:
    for name in ("x", "y"):
        values = [(i * 37 % 101) / 101 for i in range(2 * rows)]
        file.writestr(name + ".npy", npy((rows, 2), struct.pack("<%df" % (2 * rows), *values)))
END
cat >long.train <<'END'
data points.npz
input x
target y
loss mse
layer linear 64
layer relu
layer linear 2
epochs 100000
END
kept_by TERM '"note"' train long.train
sed -i 's/^epochs.*/epochs 1/' long.train
says "goes on after step" train long.train
