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

# Rank 1 is killed in the middle of its work.
cat >victim <<'END'
if [[ $OMPI_COMM_WORLD_RANK == 1 ]]; then
  (sleep 1; kill -KILL $$) &
fi
exec "$HONE" system calibrate --transport mpi --seconds 60
END
# mpirun ends all ranks a second after one has died. On a busy machine the others may not have told
# by then: one of three times they have.
names_the_lost() {
  local began=$SECONDS code=0
  started 3 bash victim >out 2>err || code=$?
  [[ $code != 0 && $code != 124 ]] || { echo "exit code $code"; exit 1; }
  ((SECONDS - began <= 7)) || { echo "it took $((SECONDS - began)) s"; exit 1; }
  grep -q "rank 1, process .* was lost" err
}
names_the_lost || names_the_lost || names_the_lost || { cat err; exit 1; }
