# Ranks that mpirun has started are killed or stopped at random moments. The others end in time, and
# nobody is left. `./test` runs a few of them, `./dev sweep` all.
source "$ROOT/tests/cli/expect.bash"
lacks() { echo "skipped: $1"; exit 77; }
[[ -e $(dirname "$HONE")/hone_mpi.so ]] || lacks "hone was built without MPI"
command -v mpirun >/dev/null || lacks "the program mpirun is missing"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat >sum.hone <<'GRAPH'
graph @sum(%x: f32[3, 2]) -> f32[3, 2] {
  %y = all_reduce %x {kind = sum, group_size = 3}
  return %y
}
GRAPH
# Each rank leaves its number, and one of them is lost a while after they have met. Before that they
# are in the hands of MPI, whose mpirun may wait for ever.
cat >victim <<'END'
echo $$ >"rank.$OMPI_COMM_WORLD_RANK"
if [[ $OMPI_COMM_WORLD_RANK == "$VICTIM" ]]; then
  (
    until grep -q "3 devices" err; do sleep 0.05; done
    sleep "$AFTER"
    touch lost
    kill -"$SIGNAL" $$
  ) &
fi
exec "$HONE" bench sum.hone --threads 1 --transport mpi --seconds 60
END
is_gone() { # is_gone PID: in time
  for ((wait = 0; wait < 100; ++wait)); do
    kill -0 "$1" 2>/dev/null || return 0
    sleep 0.05
  done
  return 1
}
RANDOM=$((16#$(git -C "$ROOT" rev-parse --short=4 HEAD 2>/dev/null || echo 1)))
kills=2
[[ ${HONE_SWEEP:-} ]] && kills=40
told=0
for ((i = 0; i < kills; ++i)); do
  export VICTIM=$((RANDOM % 3)) AFTER=$((RANDOM % 3)).$((RANDOM % 10)) SIGNAL=KILL
  ((RANDOM % 4)) || SIGNAL=STOP
  what="SIG$SIGNAL to rank $VICTIM after $AFTER s"
  rm -f rank.? lost
  code=0
  timeout -k 5 120 mpirun --oversubscribe --mca mpi_yield_when_idle 1 -n 3 bash victim \
    >out 2>err || code=$?
  [[ -e lost ]] || { echo "$what: the run ended before"; cat err; exit 1; }
  [[ $code != 0 && $code != 124 ]] || { echo "$what: exit code $code"; cat err; exit 1; }
  late=$(($(date +%s) - $(stat -c %Y lost)))
  ((late <= 10)) || { echo "$what: the others ended after $late s"; cat err; exit 1; }
  for rank in rank.?; do
    is_gone "$(<"$rank")" || { echo "$what: $rank is left"; exit 1; }
  done
  if grep -q "was lost" err; then told=$((told + 1)); fi
done
echo "$told of $kills runs named the rank that was lost"
# mpirun ends all ranks a second after one has died: on a busy machine before they have told.
((told > 0 || kills < 40)) || { cat err; exit 1; }
