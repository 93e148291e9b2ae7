# Texts of programs of devices: what is proved before a run, native code beside the interpreter, and
# the same bits on each transport.
source "$ROOT/tests/cli/expect.bash"
cat >square.program <<'END'
# The second device computes for the first one.
program @first on 0 {
  threads 1
  frame @main(%x: f32[4]) -> (%y: f32[4]) {
    0 @x = send to 1 tag 0 (%x)
    1 @y = receive from 1 tag 7 (%y) after 0
    2 @x = wait 0 (%x) -> () after 1
    3 @y = wait 1 () -> (%y) after 2
  }
}
program @second on 1 {
  threads 1
  tiles @square(@x0: f32[4]) -> (@y0: f32[4]) {
    for i0 in 4 {
      %0 = load @x0[i0]
      %1 = mul %0, %0
      store @y0[i0] = %1
    }
  }
  frame @main(%n: f32[2]) -> (%m: f32[2]) {
    temporary %t: f32[4] at 0
    temporary %u: f32[4] at 64
    0 @t = receive from 0 tag 0 (%t)
    1 @t = wait 0 () -> (%t) after 0
    2 @u = launch @square(%t) -> (%u) after 1
    3 @u = send to 0 tag 7 (%u) after 2
    4 @m = copy (%n) -> (%m)
    5 @u = wait 3 (%u) -> () after 3
  }
}
END
x=(--input "x@0=4xf32=1 2 -3 4" --input "n@1=2xf32=5 6")

says "2 devices, native" run square.program "${x[@]}" -o made.npz
contains "^y@0 .* 1, 4, 9, 16$"
contains "^m@1 .* 5, 6$"
for transport in threads shared tcp; do
  says "2 devices, native" run square.program "${x[@]}" --devices 2 --transport $transport \
    -o there.npz
  cmp made.npz there.npz
done
says "2 devices, native" run square.program "${x[@]}" --expect made.npz
if command -v mpirun >/dev/null; then
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 2 \
    "$HONE" run square.program "${x[@]}" --transport mpi >out 2>err || { cat err; exit 1; }
  contains "^y@0 .* 1, 4, 9, 16$"
fi

# Proofs.
"$HONE" check square.program --system ring:2 >out 2>err
contains "^first +1 .* 32 B"
contains "^second +1 "
contains "^no device of 2 waits for ever$"
contains "^each device of 'ring:2' has the memory that it needs$"
contains "^ok y@0 against the interpreter"
contains "^ok m@1 against the interpreter"
"$HONE" system show ring:2 | sed -E '/^  devices = /s/ with .*/ with 4 KiB/' >small.system
sed 's/temporary %u: f32\[4\] at 64/&\n    temporary %v: f32[4096] at 128/' square.program \
  >large.program
for command in run check; do
  fails 5 "temporary %v" $command large.program --system small.system
  fails 2 "is for 2 devices, but 'ring:3' has 3" $command square.program --system ring:3
  fails 2 "is for 2 devices, but the command line says 3" $command square.program --devices 3
done
says "2 devices" run large.program

# Two commands that wait for each other are named, and nothing runs.
awk '/@x = send to 1/ { print "    0 @y = receive from 1 tag 7 (%y)"; next }
     /@y = receive from 1/ { print "    1 @y = wait 0 () -> (%y) after 0"; next }
     /@x = wait 0/ { print "    2 @x = send to 1 tag 0 (%x) after 1"; next }
     /@y = wait 1/ { print "    3 @x = wait 2 (%x) -> () after 2"; next }
     { print }' square.program >circle.program
for command in run check; do
  fails 3 "'receive %y' of device 0 needs 'send %u' of device 1" $command circle.program
done
sed 's/tag 7 (%u)/tag 8 (%u)/' square.program >lost.program
fails 3 "device 1 has no send" run lost.program

# One program for all devices, as hone prints it.
cat >sum.hone <<'END'
graph @sum(%x: f32[2]) -> f32[2] {
  %s = all_reduce %x {kind = sum, group_size = 2}
  %y = mul %s, 2
  return %y
}
END
"$HONE" compile sum.hone --threads 1 --emit program -o sum.program
says "2 devices, native" run sum.program --devices 2 --input "x@0=2xf32=1 2" --input "x@1=2xf32=3 4"
contains "^y@0 .* 8, 12$"
contains "^y@1 .* 8, 12$"
says "2 devices, native" run sum.program --system ring:2
fails 3 "2 devices" run sum.program
# A single device.
echo 'graph @neg(%x: f32[3]) -> f32[3] { %y = neg %x return %y }' >neg.hone
"$HONE" compile neg.hone --threads 1 --emit program -o neg.program
says "1 device, native" run neg.program --input "x=3xf32=1 2 3"
contains "^y .* -1, -2, -3$"
"$HONE" check neg.program >out 2>err
contains "^the device waits for no other one$"
contains "^ok y against the interpreter"

fails 2 "--threads is for models" run square.program --threads 2
fails 2 "--plan-seed is for models" check square.program --plan-seed 2
fails 2 "no input" run square.program --input "x@1=4xf32=1 2 3 4"
fails 2 "a model needs --devices" run neg.hone --system ring:2
fails 2 "a model needs --devices" check neg.hone --system ring:2
fails 4 "is a text of programs" compile square.program
fails 4 "is a text of programs" bench - <square.program
echo 'graph @open(%x: f32[N]) -> f32[N] where N in 1..8 { %y = neg %x return %y }' >open.hone
"$HONE" compile open.hone --threads 1 --emit program -o open.program
fails 4 "open size N" run open.program
sed 's/on 1/on 2/' square.program >gap.program
fails 3 "device 2, but none for device 1" run gap.program
head -c 300 square.program >cut.program
fails 3 "cut.program:" check cut.program

# Each device knows its number, also if they exchange nothing.
cat >number.program <<'END'
program @number {
  threads 1
  frame @main() -> (%d: i64[]) {
    0 @d = device_index (%d)
  }
}
END
for transport in threads shared; do
  says "2 devices, native" run number.program --devices 2 --transport $transport
  contains "^d@0 .* 0$"
  contains "^d@1 .* 1$"
done
"$HONE" check number.program --devices 2 >out 2>err
contains "^ok d@1 against the interpreter"
