# Devices are threads, processes that share memory, or processes that speak TCP: the same bits. A
# process that is killed ends the command in time, by name, and leaves nobody behind.
source "$ROOT/tests/cli/expect.bash"
cat >rows.hone <<'GRAPH'
graph @rows(%x: f32[N, 4], %w: f32[4, 2]) -> (f32[N, 2], f32[4, N]) where N in 1..64 {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = tanh %h
  %t = transpose %x {permutation = [1, 0]}
  return %y, %t
}
GRAPH
cat >sum.hone <<'GRAPH'
graph @sum(%x: f32[3, 2], %s: f32[]) -> (f32[3, 2], f32[]) {
  %y = all_reduce %x {kind = sum, group_size = 2}
  %t = mul %s, 2
  return %y, %t
}
GRAPH
"$HONE" run rows.hone --dim N=5 --devices 3 -o rows.npz 2>/dev/null
"$HONE" run sum.hone --devices 2 -o sum.npz 2>told
grep -q "2 devices of .* meet in collectives" told
for transport in threads shared tcp; do
  says "with 2, 2, 1 rows" run rows.hone --dim N=5 --devices 3 --transport $transport -o there.npz
  cmp rows.npz there.npz
  says "meet in collectives" run sum.hone --devices 2 --transport $transport -o there.npz
  cmp sum.npz there.npz
  "$HONE" check rows.hone --dim N=3 --devices 2 --transport $transport >/dev/null 2>&1
  "$HONE" bench rows.hone --dim N=3 --devices 2 --transport $transport --runs 3 >figures 2>/dev/null
  grep -q "computing" figures
done
# The reference of as many devices judges them.
for transport in threads shared; do
  "$HONE" check sum.hone --devices 2 --transport $transport >out 2>/dev/null
  contains "^y .* ok"
  contains "^t .* ok"
done
"$HONE" check sum.hone --devices 2 --batch x --expect sum.npz >out 2>/dev/null
fails 3 "2 devices" check sum.hone
# Inputs of all devices stand one behind the other.
says "native" run sum.hone --devices 2 --input x=6x2xf32=1 --input s=f32=3
contains "^y .*f32\[6, 2\] +2 "

fails 2 "needs --devices" run rows.hone --transport shared
fails 2 "--transport" run rows.hone --devices 2 --transport smoke
fails 2 "does not go with --devices" run rows.hone --devices 2 --transport tcp --plan-seed 1
fails 2 "is for the workers" run rows.hone --secret rows.hone
fails 3 "2 devices" run sum.hone --devices 3 --transport shared
fails 2 "no input is called 'z'" run sum.hone --devices 2 --batch z
OMPI_COMM_WORLD_SIZE=4 fails 2 "--transport mpi" run rows.hone --dim N=5 --devices 2

# One of the processes is killed, or stopped, while they run.
begin() { # begin TRANSPORT [COMMAND]: $leader runs for a minute, and has started $child
  rm err
  ${2:-} "$HONE" bench sum.hone --devices 2 --transport "$1" --seconds 60 >out 2>err &
  leader=$!
  until grep -q "2 devices" err 2>/dev/null; do sleep 0.05; done
  sleep 0.3
  child=$(pgrep -P $leader)
}
is_gone() {
  for ((i = 0; i < 100; ++i)); do
    kill -0 "$child" 2>/dev/null || return 0
    sleep 0.05
  done
  return 1
}
lose() { # lose SIGNAL TRANSPORT
  local code=0 began
  begin "$2"
  kill -"$1" "$child"
  began=${EPOCHREALTIME/./}
  wait $leader || code=$?
  [[ $code == 5 ]] || { echo "exit code $code"; cat err; return 1; }
  ((${EPOCHREALTIME/./} - began < 5500000))
  grep -q "process $child\|127.0.0.1" err || { cat err; return 1; }
  is_gone
}
lose KILL shared
lose KILL tcp
lose STOP shared

# A terminal tells all processes of Ctrl-C. The command ends as a single one would.
interrupt() { # interrupt SIGNAL CODE TRANSPORT
  local code=0
  begin "$3" setsid
  kill -"$1" -- -$leader
  wait $leader || code=$?
  [[ $code == "$2" ]] || { echo "SIG$1: exit code $code"; cat err; return 1; }
  never grep -q "process $child\|lost" err
  is_gone
}
interrupt INT 130 shared
interrupt INT 130 tcp
interrupt HUP 129 shared

# Nobody is left when the command itself is killed.
begin shared
kill -KILL $leader
wait $leader || true
is_gone
