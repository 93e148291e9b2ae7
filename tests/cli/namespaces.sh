# A worker in another network namespace, over a link of limited bandwidth: outputs are the same.
# When the link goes down in the middle of a run, the caller ends in time and names the worker.
# Only root may make namespaces.
source "$ROOT/tests/cli/expect.bash"
lacks() { echo "skipped: $1"; exit 77; }
[[ $(id -u) == 0 ]] || lacks "only root makes network namespaces"
for program in ip tc; do
  command -v $program >/dev/null || lacks "the program $program is missing"
done
near=hone-near-$$ far=hone-far-$$
ip netns add $near 2>/dev/null || lacks "the kernel gives no network namespaces"
worker=
clean() {
  [[ ! $worker ]] || kill -KILL "$worker" || true
  ip netns del $near || true
  ip netns del $far 2>/dev/null || true
}
trap clean EXIT
ip netns add $far
ip link add near type veth peer name far netns $far 2>/dev/null || lacks "there are no veth links"
ip link set near netns $near
ip -n $near addr add 10.213.0.1/24 dev near
ip -n $far addr add 10.213.0.2/24 dev far
for side in near far; do
  ip -n "${!side}" link set lo up
  ip -n "${!side}" link set $side up
  tc -n "${!side}" qdisc add dev $side root tbf rate 20mbit burst 64kb latency 50ms 2>/dev/null ||
    lacks "there is no token bucket filter"
done

cat >m.hone <<'GRAPH'
graph @m(%x: f32[1000000]) {
  %y = reduce %x {kind = max, axes = [0]}
  return %y
}
GRAPH
"$HONE" compile m.hone -o m.honec 2>/dev/null
echo "a secret of sixteen bytes and more" >secret
echo "10.213.0.2:5000 1" >hosts
ip netns exec $far "$HONE" worker --listen 10.213.0.2:5000 --secret secret >listens 2>served &
worker=$!
until [[ -s listens ]]; do sleep 0.05; done
hone() { ip netns exec $near "$HONE" "$@"; }

# 4 MB at 20 Mbit/s take 1.6 s.
"$HONE" run m.honec -o here.npy >/dev/null 2>&1
began=${EPOCHREALTIME/./}
says "run by the worker 10.213.0.2:5000" run m.honec --hosts hosts --secret secret -o there.npy
((${EPOCHREALTIME/./} - began > 1000000))
cmp here.npy there.npy

# The link goes down, in the middle of the inputs. It is the caller's end, or the other one.
cut() { # cut NAMESPACE DEVICE
  ip netns exec $near "$HONE" run m.honec --hosts hosts --secret secret >out 2>err &
  local caller=$! code=0 began
  sleep 0.8
  ip -n "$1" link set "$2" down
  began=${EPOCHREALTIME/./}
  wait $caller || code=$?
  [[ $code == 5 ]] || { echo "exit code $code"; cat err; return 1; }
  ((${EPOCHREALTIME/./} - began < 5000000))
  grep -q "10.213.0.2:5000" err
  grep -q "'sends inputs'" err
  ip -n "$1" link set "$2" up
}
cut $near near
says "run by the worker" run m.honec --hosts hosts --secret secret
cut $far far
says "run by the worker" run m.honec --hosts hosts --secret secret
# It was down before: nobody answers.
ip -n $far link set far down
fails 5 "10.213.0.2:5000" run m.honec --hosts hosts --secret secret
ip -n $far link set far up

# Two hosts, of which each computes half of the rows. The link of one goes down while they work.
third=hone-third-$$
ip netns add $third
clean_two() {
  clean
  [[ ! $other ]] || kill -KILL "$other" || true
  ip netns del $third 2>/dev/null || true
}
other=
trap clean_two EXIT
ip link add second type veth peer name third netns $third
ip link set second netns $near
ip -n $near addr add 10.213.1.1/24 dev second
ip -n $third addr add 10.213.1.2/24 dev third
for pair in "$near second" "$third third"; do
  read -r space device <<<"$pair"
  ip -n "$space" link set lo up
  ip -n "$space" link set "$device" up
  tc -n "$space" qdisc add dev "$device" root tbf rate 20mbit burst 64kb latency 50ms
done
# The workers reach each other by way of the caller's host.
ip netns exec $near sysctl -q net.ipv4.ip_forward=1
ip -n $far route add 10.213.1.0/24 via 10.213.0.1
ip -n $third route add 10.213.0.0/24 via 10.213.1.1
ip netns exec $third "$HONE" worker --listen 10.213.1.2:5000 --secret secret >listens2 2>served2 &
other=$!
until [[ -s listens2 ]]; do sleep 0.05; done
printf '10.213.0.2:5000 1\n10.213.1.2:5000 1\n' >two.hosts
cat >rows.hone <<'GRAPH'
graph @rows(%x: f32[500000, 2]) {
  %y = reduce %x {kind = max, axes = [1]}
  return %y
}
GRAPH
cat >sum.hone <<'GRAPH'
graph @sum(%x: f32[500000]) -> f32[500000] {
  %y = all_reduce %x {kind = sum, group_size = 2}
  return %y
}
GRAPH
for model in rows.hone sum.hone; do
  "$HONE" run $model --devices 2 --threads 1 -o here.npy >/dev/null 2>&1
  says "2 devices" run $model --hosts two.hosts --secret secret --threads 1 -o there.npy
  cmp here.npy there.npy
done
for model in rows.hone sum.hone; do
  rm err
  ip netns exec $near "$HONE" bench $model --threads 1 --seconds 60 --hosts two.hosts \
    --secret secret >out 2>err &
  caller=$!
  until grep -q "2 devices" err 2>/dev/null; do sleep 0.05; done
  sleep 0.5
  ip -n $third link set third down
  began=${EPOCHREALTIME/./}
  code=0
  wait $caller || code=$?
  [[ $code == 5 ]] || { echo "exit code $code"; cat err; exit 1; }
  ((${EPOCHREALTIME/./} - began < 5500000))
  grep -q "10.213.1.2:5000" err || { cat err; exit 1; }
  ip -n $third link set third up
  ip -n $third route replace 10.213.0.0/24 via 10.213.1.1
  sleep 1
done
# Both go on serving.
says "2 devices" run rows.hone --hosts two.hosts --secret secret --threads 1
