# A model runs on a worker as it does here. Whatever is wrong with hosts and workers is refused by
# name, and nothing waits for ever.
source "$ROOT/tests/cli/expect.bash"
cat >m.hone <<'GRAPH'
graph @m(%x: f32[64, 4]) {
  %y = exp %x
  return %y
}
GRAPH
"$HONE" compile m.hone -o m.honec 2>/dev/null
echo "a secret of sixteen bytes and more" >secret
echo "another secret of sixteen bytes" >other
trap 'kill -KILL $worker || true' EXIT
start() { # start OPTION...: a worker, whose address is $address
  rm -f listens
  "$HONE" worker --listen 0 --secret secret "$@" >listens 2>served &
  worker=$!
  for ((i = 0; i < 200; ++i)); do
    [[ ! -s listens ]] || break
    sleep 0.05
  done
  address=$(sed -n 's/^listens at //p' listens)
  [[ $address == 127.0.0.1:* ]]
  echo "$address 1" >hosts
}
start

# The same bits, of a compiled file and of a model, which becomes the same file. It is sent once.
"$HONE" run m.honec --seed 3 -o here.npy >here 2>/dev/null
for model in m.honec m.honec m.hone; do
  says "run by the worker $address" run $model --seed 3 -o there.npy --hosts hosts --secret secret
  cmp out here
  cmp here.npy there.npy
done
"$HONE" run m.honec --input x=64x4xf32=1 --expect here.npy --hosts hosts --secret secret \
  >out 2>err && exit 1
[[ $(grep -c "sent program" served) == 1 ]]

# Faults of the command line are found before anything runs.
fails 2 "--secret FILE is missing" run m.honec --hosts hosts
fails 2 "--secret is for" run m.honec --secret secret
fails 2 "--trace" run m.honec --hosts hosts --secret secret --trace t.json
fails 2 "--threads" run m.honec --hosts hosts --secret secret --threads 1
fails 3 "no.hosts" run m.honec --hosts no.hosts --secret secret
echo short >short
fails 3 "5 bytes" run m.honec --hosts hosts --secret short
printf '%s 1\nhere 1\n' "$address" >bad.hosts
fails 3 "bad.hosts:2" run m.honec --hosts bad.hosts --secret secret
printf '%s 1\n127.0.0.1:9 2\n' "$address" >many.hosts
fails 4 "one device" run m.honec --hosts many.hosts --secret secret
fails 2 "have 3" run m.hone --devices 4 --hosts many.hosts --secret secret
fails 5 "127.0.0.1:9" run m.hone --hosts many.hosts --secret secret
printf '127.0.0.1:8 2\n127.0.0.1:9 2\n' >nowhere.hosts
fails 5 "127.0.0.1:8" run m.hone --hosts nowhere.hosts --secret secret
grep -q "127.0.0.1:9" err
fails 2 "is of this machine" run m.hone --hosts hosts --secret secret --devices 1 --transport tcp
fails 5 "$address" run m.honec --hosts hosts --secret other
grep -q "does not know the secret" served
echo "127.0.0.1:9 1" >nobody.hosts
fails 5 "127.0.0.1:9" run m.honec --hosts nobody.hosts --secret secret
fails 2 "--listen" worker --secret secret
fails 2 "--secret" worker --listen 0
fails 2 "port" worker --listen 70000 --secret secret
fails 5 "$address" worker --listen "$address" --secret secret
says "run by the worker" run m.honec --hosts hosts --secret secret

# A worker that is stopped answers nobody. One that is killed is gone.
kill -STOP $worker
began=$SECONDS
fails 5 "$address" run m.honec --hosts hosts --secret secret
((SECONDS - began <= 5))
kill -CONT $worker
says "run by the worker" run m.honec --hosts hosts --secret secret
kill -KILL $worker
wait $worker || true
fails 5 "$address" run m.honec --hosts hosts --secret secret

# It ends when it is interrupted, with a caller or without.
start --threads 1
says "run by the worker" run m.honec --hosts hosts --secret secret
kill -TERM $worker
code=0
wait $worker || code=$?
[[ $code == 143 ]]

# Two workers of three devices divide the batch: the bits of three devices of this machine. Each is
# sent its programs once. Programs with collectives meet across both.
start --threads 1
first=$worker
cp hosts two.hosts
sed -i 's/ 1$/ 2/' two.hosts
mv served served.first
start --threads 1
trap 'kill -KILL $worker $first || true' EXIT
cat hosts >>two.hosts
"$HONE" run m.hone --devices 3 --threads 1 --seed 3 -o here.npy >here 2>/dev/null
for _ in 1 2; do
  says "with 22, 21, 21 rows" run m.hone --seed 3 -o there.npy --threads 1 --hosts two.hosts \
    --secret secret
  cmp out here
  cmp here.npy there.npy
done
[[ $(grep -c "sent program" served) == 1 ]]
says "with 32, 32 rows" run m.hone --devices 2 --hosts two.hosts --secret secret --threads 1
cat >sum.hone <<'GRAPH'
graph @sum(%x: f32[40, 2]) {
  %y = all_reduce %x {kind = sum, group_size = 3}
  return %y
}
GRAPH
"$HONE" run sum.hone --devices 3 --threads 1 -o here.npy >here 2>/dev/null
says "meet in collectives" run sum.hone -o there.npy --hosts two.hosts --secret secret --threads 1
cmp here.npy there.npy
"$HONE" check m.hone --hosts two.hosts --secret secret >/dev/null 2>&1
"$HONE" bench m.hone --hosts two.hosts --secret secret --runs 3 >figures 2>/dev/null
grep -q "^$address" figures

# A plan that places kernels on devices: each worker has the programs of its own.
cat >placed.hone <<'GRAPH'
graph @p(%x: f32[64, 64]) {
  %a = dot %x, %x {lhs_contract = [1], rhs_contract = [0]}
  %b = sort %a {axis = 0}
  %c = dot %b, %x {lhs_contract = [1], rhs_contract = [0]}
  return %b, %c
}
GRAPH
"$HONE" place placed.hone --system local:3 --seconds 0 -o all.plan >/dev/null 2>&1
sed 's/\(device @k0\) = .*/\1 = 2/; s/\(device @k1\) = .*/\1 = 0/; s/\(device @k2\) = .*/\1 = 1/' \
  all.plan >placed.plan
grep -q "device @k2 = 1" placed.plan
"$HONE" run placed.hone --seed 3 --threads 1 -o whole.npz >/dev/null 2>&1
says "3 devices of" run placed.hone --plan placed.plan --seed 3 --expect whole.npz \
  --hosts two.hosts --secret secret
says "run 2 times" run placed.hone --plan placed.plan --seed 3 --repeat 2 --hosts two.hosts \
  --secret secret
fails 3 "placed.plan" run placed.hone --plan placed.plan --hosts hosts --secret secret

# One of two is killed, or stopped, in the middle of the work.
for signal in KILL STOP; do
  rm err
  "$HONE" bench sum.hone --hosts two.hosts --secret secret --seconds 60 >out 2>err &
  caller=$!
  until grep -q "3 devices" err 2>/dev/null; do sleep 0.05; done
  sleep 0.3
  kill -$signal $worker
  began=${EPOCHREALTIME/./}
  code=0
  wait $caller || code=$?
  [[ $code == 5 ]] || { echo "exit code $code"; cat err; exit 1; }
  ((${EPOCHREALTIME/./} - began < 5500000))
  grep -q "$address" err
  [[ $signal == STOP ]] || start --threads 1
  sed -i 2d two.hosts
  cat hosts >>two.hosts
done
kill -KILL $worker
