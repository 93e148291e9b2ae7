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
