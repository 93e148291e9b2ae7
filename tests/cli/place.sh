# Nodes on devices: placed by all placers, judged, and refused with the place.
source "$ROOT/tests/cli/expect.bash"
hone() { "$HONE" place "$@"; }

cat >two.json <<'END'
{"maxSizePerFPGA": 1000, "maxFPGAs": 2, "maxCPUs": 1,
 "nodes": [
  {"id": 5, "supportedOnFpga": true, "cpuLatency": 20, "fpgaLatency": 2, "size": 600},
  {"id": 1, "supportedOnFpga": true, "cpuLatency": 30, "fpgaLatency": 3, "size": 600}],
 "edges": [{"sourceId": 5, "destId": 1, "cost": 0.5, "size": 1000}]}
END
says "load 3.5 ms, step 5.5 ms by" two.json --goal load --seconds 0.2 -o split.json
contains '^ideals '
says "by one; bound 5 ms (path), gap 9.09 %" two.json --goal step --seconds 0
says "load 3.5 ms" two.json --goal load --check split.json
says "load 3.5 ms" two.json --goal load --from split.json --seconds 0
# The three formats say the same.
for file in again.json again.place; do
  says "load 3.5 ms" two.json --goal load --by ideals --problem $file
  says "load 3.5 ms" $file --goal load --by ideals
done
says "load 3.5 ms" - --goal load --by ideals <two.json
fails 4 "memory, pins" again.place --problem again.txt --system ring:2
printf '4\n0,\n0, 0,\n1, 2,\n10000000000,40000000000\n20000000000,0\n30000000000,0\n' >tasks.txt
says "step 6 ms" tasks.txt --devices 2 --seconds 0 --problem same.txt
says "step 6 ms" same.txt --devices 2 --seconds 0
# Four devices, if nobody says how many.
says ", 4 devices" tasks.txt --seconds 0
says ", 3 devices" tasks.txt --seconds 0 --devices 3
says ", 2 devices" tasks.txt --seconds 0 --system ring:2
for placer in one contiguous heft etf sct critical multilevel ideals policy annealing guided chain \
  genetic; do
  says "bound 4 ms (path), gap " tasks.txt --by $placer --seconds 10 --trials 200
  contains "^$placer "
done
hone tasks.txt --seconds 60 --trials 500 --seed 3 -o one.json >out 2>err
hone tasks.txt --seconds 60 --trials 500 --seed 3 -o two.json2 >out 2>err
cmp one.json two.json2
# Too much memory: which device, how much, which nodes.
echo '{"fpgas": [{"nodes": [5, 1]}]}' >full.json
fails 5 "device 0 needs 1200 B" two.json --check full.json
sed 's/"size": 600},/"size": 1600},/; s/"maxCPUs": 1/"maxCPUs": 0/' two.json >large.json
fails 5 "node 5 needs 1600 B, 600 B more" large.json
# Weights of the policy: made, used, judged; what is none is refused by name.
"$HONE" train placement -o my.policy --steps 2 >out 2>err
grep -q "wrote my.policy" err
[[ ! -e my.policy.training ]]
says "bound 4 ms (path)" tasks.txt --policy my.policy --by policy --seconds 1
fails 3 "none.policy" tasks.txt --policy none.policy --by policy --seconds 1
printf x | dd of=my.policy bs=1 seek=30000 conv=notrunc status=none
for file in my.policy two.json; do
  says "bound 4 ms (path)" tasks.txt --policy $file --by policy --seconds 1
  grep -q "$file.* the policy that comes with hone takes its place" err
done
"$HONE" eval placement --policy my.policy >out 2>err && exit 1
grep -q "my.policy" err
"$HONE" eval placement --graphs 1 --nodes 20 --trials 20 >out 2>err
contains '^1 held out +policy'
"$HONE" eval placement --graphs 1 --nodes 20 --trials 20 --chips 3 >out 2>err
contains '^policy.solver '
# Fusions, decided with devices and order; a head that proposes them; tuning for one graph.
sed 's/"maxSizePerFPGA": 1000/"maxSizePerFPGA": 2000/' two.json >wide.json
says "step 5 ms" wide.json --seconds 0 --problem wide.place
sed 's/^}$/  fusion 5 into 1 = saves 1 ms, 1 ms\n}/' again.place >apart.place
says "0 of 1 fusions are made" apart.place --seconds 1 --trials 100
sed 's/^}$/  fusion 5 into 1 = saves 1 ms, 1 ms\n}/' wide.place >fused.place
says "1 of 1 fusions are made" fused.place --seconds 1 --trials 100
says "step 4 ms, load 4 ms; bound" fused.place --seconds 1 --trials 100 -o fused.json
grep -q '"nodes"' fused.json
says "step 5 ms" fused.place --seconds 0 --fuse no
fails 2 "--by" fused.place --by heft
fails 4 "fusions" fused.place --problem again.json
says "tuned in 2 steps" tasks.txt --tune 2 --seconds 0
fails 2 "--tune" tasks.txt --tune 51
"$HONE" train placement --fusions --steps 2 -o my.head >out 2>err
grep -q "wrote my.head" err
"$HONE" eval placement --joint --graphs 1 --nodes 20 --trials 20 --head my.head >out 2>err
contains 'one after another'
"$HONE" eval placement --joint --head two.json >out 2>err && exit 1
grep -q "two.json" err
# A GPU has prices of its own kind, beside a CPU and alone.
system_with_gpu mixed.system 1 1
says "2 devices" zoo:mlp,size=tiny --system mixed.system --seconds 0
says "2 devices" zoo:mlp,size=tiny --system ring:2 --target sm_90 --seconds 0
# Tables and a drawing: devices, links, prices, what a move would cost.
says "step 5.5 ms" two.json --check split.json --explain 1 --plot split.svg
contains '^link '
contains '^node .* step on 0 '
contains '^and 1 more nodes'
grep -q "device 1" split.svg
grep -q "^</svg>" split.svg
says "bound 4 ms (path)" tasks.txt --seconds 0 --explain 2
contains 'here'
fails 2 "-o names a file" two.json --explain 1 -o -
fails 2 "--plot names a file" two.json --plot -
fails 2 "--compiled" two.json --compiled --by heft
# The policy as a compiled program places the same.
hone tasks.txt --by policy --seconds 60 --trials 50 -o plain.json >out 2>err
hone tasks.txt --by policy --seconds 60 --trials 50 --compiled -o compiled.json >out 2>err
cmp plain.json compiled.json
# Learned from a graph of others, from weights that are there.
"$HONE" train placement -o more.policy --policy my.head --steps 1 >out 2>err && exit 1
grep -q "my.head" err
"$HONE" train placement -o first.policy --steps 1 --graph again.place >out 2>err
"$HONE" train placement -o more.policy --policy first.policy --steps 1 >out 2>err
grep -q "wrote more.policy" err
"$HONE" train placement --fusions -o my.head --nodes 192 >out 2>err && exit 1
grep -q -e "--nodes does not go with --fusions" err
"$HONE" train placement -o more.policy --graph none.place --steps 1 >out 2>err && exit 1
grep -q "none.place" err
# METIS and m-SCT's linear program, if their programs are there.
says "load 3.5 ms" two.json --goal load --by metis --seconds 5
contains '^metis '
if command -v gpmetis >/dev/null && grep -q '^metis .*skipped' out; then exit 1; fi
says "bound 4 ms (path)" tasks.txt --by sct --seconds 5
if command -v cbc >/dev/null; then contains 'by the linear program'; fi
PATH=/nowhere "$HONE" place tasks.txt --by sct --seconds 5 >out 2>err
contains "greedy pairs: there is no program 'cbc'"
PATH=/nowhere "$HONE" place two.json --by metis --seconds 5 >out 2>err
contains "skipped: there is no program 'gpmetis'"
# An integer program, if there is its solver; what is not there is said.
says "load 3.5 ms" two.json --goal load --by integer --seconds 5
contains '^integer '
PATH=/nowhere "$HONE" place two.json --goal load --by integer --seconds 5 >out 2>err
contains "skipped: there is no program 'cbc'"
# Errors have a place.
sed 's/"fpgaLatency": 3/"fpgaLatency": -3/' two.json >bad.json
fails 3 "bad.json, item 1 of 'nodes'" bad.json
sed 's/"destId": 1/"destId": 9/' two.json >bad.json
fails 3 "no node has this id" bad.json
sed 's/"sourceId": 5/"sourceId": 1/' two.json >bad.json
fails 3 "circle" bad.json
echo '{"fpgas": [{"nodes": [5]}, {"nodes": [5]}]}' >twice.json
fails 3 "placed twice" two.json --check twice.json
echo 'nothing' >none.txt
fails 3 "none.txt" none.txt
fails 2 "--by" two.json --by best
fails 2 "--devices" two.json --devices 3
fails 2 "--check" two.json --check split.json --from split.json
fails 2 "--seconds" two.json --seconds=-1

# A model: kernels are nodes, and each device has a program.
cat >m.hone <<'END'
graph @m(%x: f32[64, 64]) {
  %a = dot %x, %x {lhs_contract = [1], rhs_contract = [0]}
  %b = exp %x
  %c = add %a, %b
  return %c
}
END
says "by" m.hone --system ring:2 --seconds 0 -o m.program --problem m.place
grep -q "^program @m.*on 0" m.program
says "step" m.place --seconds 0
says "by" m.hone --system ring:2 --seconds 0 --cost analytic
fails 3 "no.model" m.hone --system ring:2 --cost no.model
fails 2 "--cost" two.json --cost analytic
fails 2 "--system" m.hone
fails 2 "--check" m.hone --system ring:2 --check split.json


# A plan with devices runs on them, and computes what one device does.
says "by" m.hone --system local:2 --seconds 0 -o m.plan
grep -q "^  device @" m.plan
grep -q "^  priority @" m.plan
grep -q "^devices @m {" m.plan
"$HONE" run m.hone -o whole.npz --seed 4 >out 2>err
"$HONE" run m.hone --plan m.plan --seed 4 --expect whole.npz >out 2>err
grep -q "devices of\|1 device of" err
sed 's/\(device @k0\) = .*/\1 = 1/' m.plan >moved.plan
"$HONE" run m.hone --plan moved.plan --seed 4 --expect whole.npz >out 2>err
grep -q "2 devices of" err
# It says what devices and links do, and why kernels are where they are.
"$HONE" explain m.hone moved.plan --top 3 --plot moved.svg --trace moved.json >out 2>err
contains '^device '
contains '^k0 +1 .* (0|[-+].*) +here$'
grep -q "^step " err
grep -q "device 1" moved.svg
grep -q 'device 1' moved.json
"$HONE" report m.hone --plan moved.plan -o moved.html --json moved.report >out 2>err
grep -q "Why kernels are where they are" moved.html
grep -q '"placement":"device ' moved.report
grep -q '"device 1"' moved.report
"$HONE" explain m.hone moved.plan --threads 1 >out 2>err && exit 1
grep -q -e "--threads does not go with" err
"$HONE" explain m.hone moved.plan --diff default >out 2>err && exit 1
grep -q -e "--diff does not go with" err
"$HONE" explain m.hone --plot moved.svg >out 2>err && exit 1
grep -q -e "--plot is of a plan that places" err
# The command line says who the devices are.
for who in "--devices cpu,cpu" "--devices 2 --transport shared" "--devices 2 --transport tcp"; do
  # shellcheck disable=SC2086  # words
  "$HONE" run m.hone --plan moved.plan --seed 4 $who --expect whole.npz >out 2>err
  grep -q "2 devices of" err
done
"$HONE" run m.hone --plan moved.plan --device cuda >out 2>err && exit 1
grep -q "a GPU takes no such plan" err
"$HONE" run m.hone --plan moved.plan --devices 1 --seed 4 >out 2>err && exit 1
grep -q "no device 1" err
# Runs that follow each other are those of one device, by threads and by processes.
for seed in 4 5 6; do "$HONE" run m.hone --seed $seed -o by$seed >out 2>err; done
wanted=by4/c.npy,by5/c.npy,by6/c.npy
"$HONE" run m.hone --plan moved.plan --seed 4 --repeat 3 --expect $wanted >out 2>err
grep -q "2 devices of .* run 3 times in" err
contains "^c#3 "
"$HONE" run m.hone --plan moved.plan --seed 4 --repeat 3 --devices 2 --transport shared \
  --expect $wanted >out 2>err
refuses() {
  local code=0
  "$HONE" run m.hone "${@:3}" >out 2>err || code=$?
  [[ $code == "$1" ]] && grep -q -e "$2" err
}
refuses 2 "--repeat" --repeat 2
"$HONE" compile m.hone --emit plan >whole.plan 2>err
refuses 2 "--plan is of one device" --plan whole.plan --devices 2
refuses 2 "--threads" --plan moved.plan --devices 2 --threads 1
refuses 5 "900 runs have inputs and outputs of 32" --plan moved.plan --repeat 900 --memory-limit 8
says "by" m.hone --system local:2 --seconds 0 --plan moved.plan -o again.plan
grep -q "device @k0 = 1" again.plan
sed 's/\(device @k0\) = .*/\1 = 7/' m.plan >wrong.plan
fails 3 "no device 7" m.hone --system local:2 --seconds 0 --plan wrong.plan
grep -q "wrong.plan:[0-9]" err
"$HONE" compile m.hone --plan m.plan --emit plan >out 2>err && exit 1
grep -q "m.plan:" err

# The public graphs, if they are there: what their experts say, and the least contiguous load.
data=$ROOT/../shared/data/dnn-partitioning/graphs.tar.xz
[[ -e $data ]] || { echo "skipped: no $data"; exit 0; }
tar -xf "$data"
layers=throughput-inputs/LayerGraphs
expert=human-experts/resnet50_inference_expert.json
says "load 43.9" $layers/resnet50_inference.json --goal load --check $expert
says "load 33.7" $layers/resnet50_inference.json --goal load --by ideals --seconds 100
contains 'exact'
