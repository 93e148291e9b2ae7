# Processes that mpirun starts exchange messages over MPI: the same bits as threads give, figures of
# links, and a killed one that the others name.
source "$ROOT/tests/cli/expect.bash"
lacks() { echo "skipped: $1"; exit 77; }
if [[ ! -e $(dirname "$HONE")/hone_mpi.so ]]; then
  fails 4 "has no MPI" system calibrate --transport mpi
  lacks "hone was built without MPI"
fi
command -v mpirun >/dev/null || lacks "the program mpirun is missing"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
started() { # started PROCESSES COMMAND...
  timeout -k 5 120 mpirun --oversubscribe --mca mpi_yield_when_idle 1 -n "$@"
}

fails 2 "mpirun -n 2" system calibrate --transport mpi
started 2 "$HONE" system calibrate --transport mpi --seconds 0.2 -o mpi.system >out 2>err
grep -q "^mpi .* GB/s" out
[[ $(grep -c "^transport" out) == 1 ]]
"$HONE" system show mpi.system | grep -q '^  link mpi = star over all'

if [[ -x $BUILD/test_transport ]]; then
  for processes in 1 2 3; do
    started $processes "$BUILD/test_transport" --gtest_color=no \
      --gtest_filter='Mpi.GivesTheBits*' >out 2>&1 || { cat out; exit 1; }
    [[ $(grep -c 'PASSED  ] 1 test' out) == "$processes" ]] || { cat out; exit 1; }
  done
fi

# Ranks divide a batch, and meet in collectives: the bits of devices of one process. Rank 0 prints.
cat >rows.hone <<'GRAPH'
graph @rows(%x: f32[N, 4], %w: f32[4, 2]) -> f32[N, 2] where N in 1..64 {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = tanh %h
  return %y
}
GRAPH
cat >sum.hone <<'GRAPH'
graph @sum(%x: f32[3, 2]) -> f32[3, 2] {
  %y = all_reduce %x {kind = sum, group_size = 3}
  return %y
}
GRAPH
both() { # both RANKS DEVICES MODEL OPTION...
  "$HONE" run "${@:3}" --devices "$2" --threads 1 -o here.npz >here 2>/dev/null
  started "$1" "$HONE" run "${@:3}" --devices "$2" --threads 1 -o there.npz --transport mpi \
    >out 2>err || { cat err; return 1; }
  cmp here out
  cmp here.npz there.npz
}
both 2 2 rows.hone --dim N=5
both 2 3 rows.hone --dim N=5
both 3 3 sum.hone
both 2 3 sum.hone
started 2 "$HONE" run rows.hone --dim N=5 --transport mpi >out 2>err
grep -q "with 3, 2 rows" err
refused() { # refused WORDS OPTION... of mpirun
  local words=$1
  shift
  if started "$@" >out 2>err; then cat out; return 1; fi
  grep -q -- "$words" err || { cat err; return 1; }
}
refused "--transport mpi" 2 "$HONE" run rows.hone --dim N=5
refused "2 devices are wanted, and mpirun has started 3" 3 \
  "$HONE" run rows.hone --devices 2 --transport mpi
refused "rank 1.* another command line" 1 "$HONE" run rows.hone --dim N=5 --transport mpi : \
  -n 1 "$HONE" run sum.hone --transport mpi
refused "no.hone" 2 "$HONE" run no.hone --transport mpi

# Rank 1 is killed in the middle of its work: measuring links, or computing.
cat >victim <<'END'
if [[ $OMPI_COMM_WORLD_RANK == 1 ]]; then
  (sleep 1; kill -KILL $$) &
fi
exec "$HONE" "$@" --transport mpi --seconds 60
END
# mpirun ends all ranks a second after one has died. On a busy machine the others may not have told
# by then: one of three times they have.
names_the_lost() { # names_the_lost ARGS of hone
  local began=$SECONDS code=0
  started 3 bash victim "$@" >out 2>err || code=$?
  [[ $code != 0 && $code != 124 ]] || { echo "exit code $code"; exit 1; }
  ((SECONDS - began <= 7)) || { echo "it took $((SECONDS - began)) s"; exit 1; }
  grep -q "rank 1, process .* was lost" err
}
for work in "system calibrate" "bench sum.hone --threads 1"; do
  # shellcheck disable=SC2086
  names_the_lost $work || names_the_lost $work || names_the_lost $work || { cat err; exit 1; }
done
