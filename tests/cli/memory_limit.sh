# Small files that want much memory are refused before they have it: the message has the bytes and
# the option, and the peak of the process stays below the limit. The allowed memory stays below,
# too.
measured() { # measured ARGS...: runs hone; the file peak has the KB that it had at most
  local code=0
  python3 - "$HONE" "$@" >out 2>err <<'END' || code=$?
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL).returncode
with open("peak", "w") as file:
    file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(code if code >= 0 else 128 - code)
END
  return $code
}
base=0 # KB of a process that computes nearly nothing
stays_below() { # stays_below MIB ARGS...
  local peak
  peak=$(<peak)
  ((peak <= base + 1024 * $1 + 32 * 1024)) && return
  echo "hone ${*:2}: $((peak / 1024)) MiB, $((base / 1024)) of them are its own; the limit is $1"
  return 1
}
refused() { # refused ARGS...: with a limit of 256 MiB
  local code=0 native=(--cache none --no-log)
  [[ $1 != optimize ]] || native=()
  [[ $* != *reference* ]] || native=()
  measured "$@" --memory-limit 256 "${native[@]}" || code=$?
  [[ $code == 5 ]] || { echo "hone $*: exit code $code"; cat err; return 1; }
  if ! { grep -Eq '[0-9]{7,} bytes' err && grep -q -- '--memory-limit' err; }; then
    echo "hone $*:"
    cat err
    return 1
  fi
  stays_below 256 "$@"
}

cat >tiny.hone <<'END'
graph @tiny(%x: f32[8], %c: bool[]) {
  %y = exp %x
  return %y
}
END
measured check tiny.hone --cache none --no-log
base=$(<peak)

# An input, an output, a value on the way that is stored, and one that the reference alone stores.
cat >input.hone <<'END'
graph @input(%x: f32[268435456]) {
  %y = reduce %x {kind = sum, axes = [0]}
  return %y
}
END
cat >output.hone <<'END'
graph @output(%x: f32[]) {
  %y = broadcast %x {dims = [268435456], map = []}
  return %y
}
END
cat >stored.hone <<'END'
graph @stored(%x: f32[]) {
  %b = broadcast %x {dims = [268435456], map = []}
  %c = cumulative %b {kind = sum, axis = 0}
  %d = reverse %c {axes = [0]}
  %e = cumulative %d {kind = sum, axis = 0}
  %y = reduce %e {kind = sum, axes = [0]}
  return %y
}
END
cat >fused.hone <<'END'
graph @fused(%x: f32[]) {
  %b = broadcast %x {dims = [268435456], map = []}
  %e = exp %b
  %y = reduce %e {kind = sum, axes = [0]}
  return %y
}
END
for name in input output fused; do
  "$HONE" convert $name.hone -o $name.onnx 2>/dev/null
  [[ $(wc -c <$name.onnx) -lt 1000 ]]
done
for file in input.onnx output.onnx fused.onnx stored.hone; do
  refused check $file
  refused run $file --backend reference
done
for file in input.onnx output.onnx stored.hone; do refused run $file; done
refused bench stored.hone --seconds 0.1 --input x=f32=1
for file in input.hone output.hone stored.hone; do
  refused tune $file --budget 1s
  refused optimize $file --check --budget 1s -o optimized.hone
done
refused run input.hone --input x=268435456xf32=1
measured run fused.onnx --memory-limit 256 --cache none --no-log
stays_below 256 run fused.onnx

# Constants are folded within bounds: what takes more is left to the program.
cat >folded.hone <<'END'
graph @folded(%x: f32[]) {
  %c = constant true : bool[]
  %o = constant 1 : f32[]
  %s = if %c, %o then (%a: f32[]) {
    %b = broadcast %a {dims = [134217728], map = []}
    %d = cumulative %b {kind = sum, axis = 0}
    %e = reverse %d {axes = [0]}
    %f = cumulative %e {kind = sum, axis = 0}
    %g = slice %f {start = [0], limit = [1]}
    %r = reshape %g {dims = []}
    return %r
  } else (%z: f32[]) {
    return %z
  }
  %y = add %x, %s
  return %y
}
END
refused run folded.hone

# Random inputs and repeated numbers take little more than their own bytes.
cat >bytes.hone <<'END'
graph @bytes(%x: i8[100000000]) {
  %y = slice %x {start = [0], limit = [4]}
  return %y
}
END
sed 's/i8/f16/;s/100000000/50000000/' bytes.hone >halves.hone
for name in bytes halves; do
  measured run $name.hone --cache none --no-log
  stays_below 110 run $name.hone
done
measured run bytes.hone --input x=100000000xi8=1 --cache none --no-log
stays_below 110 run bytes.hone --input

# A loop of segments, whose results grow with each of its iterations.
cat >grown.hone <<'END'
model @grown(%n: i64[], %x: f32[1, 262144]) -> (%all: f32[K, 262144]) where K in 0..1048576 {
  %all = loop trip %n grow %x {
    %row = run %x
      graph @row(%a: f32[1, 262144]) -> f32[1, 262144] {
        %b = neg %a
        return %b
      }
    yield grow %row
  }
}
END
refused run grown.hone --input n=i64=100000
refused run grown.hone --input n=i64=100000 --backend reference

# The limit is the user's choice; by default it is half of the machine.
measured run input.hone --memory-limit 1200 --cache none --no-log
stays_below 1200 run input.hone
measured run input.hone --memory-limit 0 --cache none --no-log
kb=$(sed -nE 's/^MemTotal: +([0-9]+) kB/\1/p' /proc/meminfo)
sed "s/268435456/$((256 * kb))/" input.hone >machine.hone
code=0
measured run machine.hone --cache none --no-log || code=$?
[[ $code == 5 ]]
grep -q -- '--memory-limit' err
