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
fails 4 "3 devices" run m.honec --hosts many.hosts --secret secret
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
