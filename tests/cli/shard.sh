# Values of a model divided among the devices of a mesh: who holds what, what moves and why.
source "$ROOT/tests/cli/expect.bash"
hone() { "$HONE" shard "$@"; }

cat >two.hone <<'END'
graph @two(%x: f32[8, 6], %v: f32[6, 4], %w: f32[4, 6]) -> f32[8, 6] {
  %h = dot %x, %v {lhs_contract = [1], rhs_contract = [0]}
  %a = tanh %h
  %y = dot %a, %w {lhs_contract = [1], rhs_contract = [0]}
  return %y
}
END
# Rows: nothing moves.
hone two.hone --mesh x=2 --shard 'x=[x, -]' --all >out 2>err
grep -q "2 devices, \[x = 2\]: 0 exchanges, 0 B that each device receives" err
contains '^%x +f32\[8, 6\] +\[x, -'
contains '^%v +f32\[6, 4\] +'
contains '^%a +f32\[8, 4\] +\[x, -'
contains '^%y +f32\[8, 6\] +\[x, -[^]]*\] +96 B'
# Columns, then rows of the weights: one sum, which the last product asks for.
hone two.hone --mesh m=2 --shard 'v=[-, m]' --shard 'w=[m, -]' --shard 'y=[-, -]' -o part.hone \
  >out 2>err
grep -q "2 devices, \[m = 2\]: 1 exchange" err
contains '^all_reduce +%y '
# The program of a device runs natively as in the reference; that it computes what the graph
# computes is in tests/shard.
grep -q "all_reduce" part.hone
"$HONE" check part.hone --devices 2 --cache none >out 2>err
# The file itself says it.
sed 's/%x: f32\[8, 6\]/& on @m [x, -]/; s/-> f32\[8, 6\]/& mesh @m = [x = 4]/' two.hone >said.hone
hone said.hone >out 2>err
grep -q "4 devices, \[x = 4\]: 0 exchanges" err
hone said.hone -o - >out 2>err
grep -q "f32\[2, 6\]" out
# A mesh that is said twice is one, and all commands divide the values as the file says.
"$HONE" check said.hone --mesh x=4 --cache none >out 2>err
never grep -q "a step takes" err
"$HONE" explain said.hone --mesh x=4 >out 2>err
contains '^%y +f32\[8, 6\] +\[x, -'
contains '^by price \(--shard auto\) '
"$HONE" run said.hone --mesh x=4 --shard auto --cache none >out 2>err
grep -q "a step takes" err

# A plan leaves what the file says, and is refused where it says something else.
printf 'mesh x=4\nshard %%v = [-, -]\n' >beside.shard
hone said.hone --shard beside.shard -o kept.shard >out 2>err
grep -q "^shard %x = \[x, -\]$" kept.shard
grep -q "^shard %v = \[-, -\]$" kept.shard
printf 'mesh x=4\nshard %%x = [-, x]\n' >other.shard
fails 3 "the plan divides %x as [-, x], and the graph says [x, -]" said.hone --shard other.shard
# Memory is a limit of what is said, too.
fails 5 "too much" said.hone --memory 1
hone said.hone --memory 1GiB >out 2>err
# Words keep to the same rule, and say each value once.
fails 2 "--shard divides %x as [-, x], and the graph says [x, -]" said.hone --shard 'x=[-, x]'
fails 2 "'x' is divided twice" two.hone --mesh x=2 --shard 'x=[x, -]' --shard 'x=[-, x]'
printf 'mesh x=4\nshard %%x = [-, -]\n' >whole.shard
fails 2 "%x as [x, -], and the graph says [-, -]" two.hone --shard whole.shard --shard 'x=[x,-]'
# The rest follows from what is said. The plan of it gives the same exchanges.
hone two.hone --mesh m=2 --shard 'v=[-, m]' --shard 'y=[-, -]' -o followed.shard >out 2>told
grep -q "^shard %y = \[-, -\] partial sum \[m\]$" followed.shard
hone two.hone --shard followed.shard >again 2>err
grep -qF "1 exchange, 192 B that each device receives" told
grep -qF "1 exchange, 192 B that each device receives" err
"$HONE" check two.hone --shard followed.shard --cache none >out 2>err
# Names of axes may be any.
sed 's/-> f32\[8, 6\]/& mesh @m = ["data-par" = 2]/; s/%x: f32\[8, 6\]/& on @m ["data-par", -]/' \
  two.hone >quoted.hone
hone quoted.hone --shard auto -o quoted.shard >out 2>err
grep -q '^mesh "data-par"=2$' quoted.shard
hone quoted.hone --shard quoted.shard >out 2>err
hone two.hone --mesh '"data-par"=2' --shard 'x=["data-par", -]' >out 2>err
fails 2 "'data-par' is no name of an axis" two.hone --mesh data-par=2

# Divisions that do not fit together: both decisions, and the least that moves.
hone two.hone --mesh x=2 --shard 'x=[x, -]' --shard 'v=[-, x]' --system ring:2 >out 2>err
contains "^conflict at +kept +because +against +because +bytes +takes$"
contains "^node '%h' \\(dot\\) +%h \\[x open, .* +96 B +[0-9.]+ .?s$"
"$HONE" explain two.hone --mesh x=2 --shard 'x=[x, -]' --shard 'v=[-, x]' >out 2>err
contains "^node '%h' \\(dot\\) +%h \\[x open, .* +96 B +[0-9.]+ .?s$"

# Where prices choose the rest, they are told, too.
hone two.hone --mesh x=2 --shard 'x=[x, -]' --shard 'v=[-, x]' --shard auto >out 2>err
contains "^node '%h' \\(dot\\) +%h \\[x open, .* +96 B +[0-9.]+ .?s$"
"$HONE" explain two.hone --mesh x=2 --shard 'x=[x, -]' --shard 'v=[-, x]' --shard auto >out 2>err
contains "^node '%h' \\(dot\\) +%h \\[x open, .* +96 B +[0-9.]+ .?s$"

# Sizes that do not divide have padding, and windows ask neighbours for what they need.
cat >image.hone <<'END'
graph @image(%x: f32[2, 1, 7, 5], %k: f32[3, 1, 3, 3]) -> (f32[2, 3, 7, 5], f32[2, 3, 5]) {
  %y = conv %x, %k {pad_low = [1, 1], pad_high = [1, 1]}
  %s = reduce %y {kind = max, axes = [2]}
  return %y, %s
}
END
rows="--mesh r=3 --shard x=[-,-,r,-] --shard y=[-,-,r,-]"
hone image.hone $rows >out 2>err
contains '^%x +f32\[2, 1, 7, 5\] +\[-, -, r, -\] +120 B'
contains "^permute +%x +node '%y' \\(conv\\)"
never grep -q "all_gather" out
"$HONE" check image.hone $rows --cache none >out 2>err
# The mesh says how many processes there are.
"$HONE" check image.hone $rows --cache none --transport tcp >out 2>err
grep -q "mesh r=3: 3 devices" err

# A table by rows: each device looks up what it has, and the table stays where it is.
cat >table.hone <<'END'
graph @table(%t: f32[64, 8], %i: i32[4, 1]) -> f32[4, 8] {
  %y = gather %t, %i {offset_dims = [1], collapsed_dims = [0], index_map = [0],
    index_vector_dim = 1, sizes = [1, 8]}
  return %y
}
END
hone table.hone --mesh x=4 --shard 't=[x, -]' >out 2>err
contains '^all_reduce +%y +output 0 +192 B'
never grep -q "all_gather" out
"$HONE" check table.hone --mesh x=4 --shard 't=[x, -]' --cache none >out 2>err
# A value that is divided by its word, and made whole, is told with the reason.
cat >bits.hone <<'END'
graph @bits(%k: u64[], %c: u64[]) -> u32[6, 4] {
  %y = rng_bits %k, %c {dtype = u32, dims = [6, 4]}
  return %y
}
END
hone bits.hone --mesh x=2 --shard 'y=[-, x]' >out 2>err
contains '^%y +u32\[6, 4\] +\[-, x\], made whole +96 B'
contains "^node '%y' \\(rng_bits\\) +its elements are numbered across the dim"
# Weights of layers in a loop: the exchange counts as often as the loop runs.
cat >loop.hone <<'END'
graph @loop(%x: f32[16, 256], %w: f32[8, 256, 256]) -> f32[16, 256] {
  %y = scan %x, %w {carried = 1} body (%h: f32[16, 256], %v: f32[256, 256]) {
    %d = dot %h, %v {lhs_contract = [1], rhs_contract = [0]}
    %t = tanh %d
    return %t
  } : f32[16, 256]
  return %y
}
END
hone loop.hone --mesh x=4 --shard 'w=[-, -, x]' --memory 1500KiB >out 2>err
contains ', 8 times +'
"$HONE" explain loop.hone --mesh x=4 --shard 'w=[-, -, x]' >out 2>err
contains ', 8 times +'
hone loop.hone --mesh x=4 --memory 1500KiB >out 2>err
grep -q "a step takes" err
# Windows by a plan are those that are said.
hone image.hone $rows --shard auto -o image.shard >out 2>err
contains "^permute +%x +node '%y' \\(conv\\)"
hone image.hone --shard image.shard >again 2>err
cmp out again

# ---- By price -----------------------------------------------------------------------------------

cat >wide.hone <<'END'
graph @wide(%x: f32[64, 256], %v: f32[256, 1024], %w: f32[1024, 256]) -> f32[64, 256] {
  %h = dot %x, %v {lhs_contract = [1], rhs_contract = [0]}
  %a = tanh %h
  %y = dot %a, %w {lhs_contract = [1], rhs_contract = [0]}
  return %y
}
END
hone wide.hone --mesh x=2 -o wide.shard >out 2>err
grep -q "a step takes .* on 2 devices, and .* undivided; .* a device" err
grep -q "bound .*, gap 0.00 %: " err
grep -q "^mesh x=2" wide.shard
grep -q "^shard %v = \[" wide.shard
grep -q "^output 0 = \[" wide.shard
# The plan gives the same; less of it is completed; a line of it stays.
hone wide.hone --shard wide.shard >again 2>err
cmp out again
grep -q "a step takes .* on 2 devices; .* a device" err
printf 'mesh x=2\nshard %%w = [-, x]\n' >part.shard
hone wide.hone --shard part.shard -o full.shard >out 2>err
grep -q "^shard %w = \[-, x\]$" full.shard
grep -q "gap" err
# Another search, whose plan is one like any other.
hone wide.hone --mesh x=2 --search chain --budget 1s -o chain.shard >out 2>err
grep -q "bound .*, gap " err
"$HONE" check wide.hone --shard chain.shard --cache none >out 2>err
fails 2 "'best' is not one of windows, chain" wide.hone --mesh x=2 --search best
# A value may be stated by parts of axes, or in another order: all that can take it have the option.
printf 'mesh x=2,y=2\nshard %%x = [y x, -]\n' >order.shard
for how in "--mesh x=4 --shard x=[x:(1)2,-] --shard auto" \
  "--mesh x=2,y=2 --shard x=[y&x,-] --shard auto" "--shard order.shard"; do
  read -ra words <<<"$how"
  hone two.hone "${words[@]//&/ }" --all >out 2>err
  grep -q ": 0 exchanges, 0 B" err
done
contains '^%y +f32\[8, 6\] +\[y x, -\]'
# Four axes have more ways than the search compares: it uses all devices, and claims no bound.
cat >four.hone <<'END'
graph @four(%x: f32[16, 16, 16, 16]) -> f32[16, 16, 16, 16] {
  %t = tanh %x
  %e = exp %t
  return %e
}
END
hone four.hone --mesh a=16 >one 2>err
hone four.hone --mesh a=2,b=2,c=2,d=2 --all --budget 60s >out 2>err
contains ' 16.0 KiB$'
never contains ' 32.0 KiB$'
grep -q "sum of the parts [^,]*: 512 of 2500 options of 4 nodes" err
# The budget is also that of the prices.
hone four.hone --mesh a=2,b=2,c=2,d=2 --budget 0.1s >out 2>err
grep -q "; --budget was over at [1-9] of them, which are computed whole" err
hone four.hone --mesh a=2,b=2,c=2,d=2 --shard 'x=[a,b,c,d]' --shard auto >out 2>err
contains '^%x .* \[a, b, c, d\] +16.0 KiB$'
fails 4 "dim 0 has 16 for 32 devices" four.hone --mesh x=32 --shard 'x=[x,-,-,-]' --shard auto
fails 5 "make one axis of two" four.hone --mesh a=2,b=2,c=2,d=2,e=2
# A model that is too large for one device runs on four.
fails 5 "within 1.7 MiB" wide.hone --mesh x=1 --memory 1800000
hone wide.hone --mesh x=4 --memory 1800000 -o four.shard >out 2>err
"$HONE" check wide.hone --shard four.shard --cache none >out 2>err
grep -q "mesh x=4: 4 devices" err
# It runs, and gives what one device gives.
"$HONE" check wide.hone --shard full.shard --cache none >out 2>err
grep -q "mesh x=2" err
"$HONE" run wide.hone --devices 2 --shard auto --cache none -o auto.npz >out 2>err
"$HONE" run wide.hone --mesh a=2,b=2 --shard 'x=[a, -]' --shard 'v=[-, b]' --cache none \
  --expect auto.npz >out 2>err
grep -q "mesh a=2,b=2" err
"$HONE" bench wide.hone --mesh x=2 --cache none --runs 3 >out 2>err
contains '^device +computing +moving +waiting$' # no device has rows of a batch

# A compiled file has the division, and the constants once: whole tensors in and out.
"$HONE" compile wide.hone --shard full.shard --cache none --threads 1 -o wide.honec >out 2>err
grep -q "for 2 devices" err
"$HONE" run wide.honec --expect auto.npz >out 2>err
grep -q "2 devices of 1 thread, which meet in collectives" err
"$HONE" check wide.honec --model wide.hone >out 2>err
"$HONE" inspect wide.honec --verify >out 2>err
contains '^a device +w f32\[1024, 128\]$'
contains '^devices +2$'
contains '^mesh +x=2$'
# It is for this mesh, and says so.
"$HONE" run wide.honec --mesh x=2 --expect auto.npz >out 2>err
grep -q "mesh x=2: 2 devices" err
hone() { "$HONE" run "$@"; }
fails 4 "compiled for the mesh x=2, not x=4" wide.honec --mesh x=4
grep -q -- "--mesh x=2 fits it" err
fails 2 "the axis '' has no size" wide.honec --mesh ''
fails 4 "compiled for 2 devices" wide.honec --devices 2
fails 4 "compiled for 2 devices" wide.honec --mesh x=2 --shard auto
hone() { "$HONE" compile "$@"; }
fails 2 "--memory is for values that a mesh divides" wide.hone --memory 1GiB -o one.honec
fails 2 "--budget is for values that a mesh divides" wide.hone --budget 1s -o one.honec
hone() { "$HONE" shard "$@"; }
"$HONE" compile zoo:mlp,size=tiny,batch=4 --mesh x=2 --shard auto --cache none -o mlp.honec \
  >out 2>err
"$HONE" check mlp.honec --model zoo:mlp,size=tiny,batch=4 >out 2>err

# A training step: forward, derivative and optimizer.
hone zoo:mlp,size=tiny,batch=8 --train --optimizer momentum --mesh x=2 >out 2>err
grep -q "a step takes .* on 2 devices" err
contains '^%rate +f32\[\]'
# Where memory asks for it, a device has parts of weights and of what the optimizer keeps.
# The prices are of a fixed processor, so that the same parts are chosen on all.
cat >fixed.target <<'END'
target "fixed" {
  cpu = "fixed"
  isa = avx2
  cores = 4
  cache = 48 KiB for 1 core at 300 GB/s
  cache = 16 MiB for 4 cores at 100 GB/s
  memory = 16 GiB at 12 GB/s a core, 40 GB/s in all
  peak f64 = 50 Gop/s
  peak f32 = 100 Gop/s
  peak bf16 = 100 Gop/s
  peak i8 = 200 Gop/s
  fork_join = 2 us
  measured = true
}
END
fixed="--mesh x=4 --system ring:4 --target fixed.target"
hone zoo:mlp,size=tiny,batch=8 --train $fixed >out 2>err
all=$(sed -n 's/.* \([0-9.]*\) \([KM]\)iB a device.*/\1\2/p' err | numfmt --from=iec)
hone zoo:mlp,size=tiny,batch=8 --train $fixed --memory "$((all * 7 / 10))" >out 2>err
contains '^%.*(mean|square|momentum|adam).* +\[.*x.*\] '

# ---- Pipelines ----------------------------------------------------------------------------------

hone wide.hone --pipeline 2 --micro-batches 4 --schedule gpipe -o wide.pipeline >out 2>err
grep -q "2 stages on 2 devices, 4 micro-batches, gpipe: .* on one device, by the prices of" err
contains '^ +0 +0 +[0-9]+ '
contains '^ +2 +gpipe +4 '
grep -q "^pipeline 4 micro-batches, gpipe$" wide.pipeline
grep -q "^stage on 1 = %" wide.pipeline
"$HONE" run wide.hone --pipeline wide.pipeline --cache none --expect auto.npz >out 2>err
grep -q "2 stages, 4 micro-batches, gpipe on 2 devices" err
"$HONE" check wide.hone --pipeline wide.pipeline --cache none --transport shared >out 2>err
# Forward, back, and the update, in two processes: what one device computes.
"$HONE" grad zoo:mlp,size=tiny,batch=8 --optimizer momentum -o step.hone 2>err
hone step.hone --pipeline 2 --micro-batches 4 --schedule 1f1b -o step.pipeline >out 2>err
"$HONE" check step.hone --pipeline step.pipeline --cache none >out 2>err
"$HONE" check step.hone --pipeline step.pipeline --cache none --transport tcp >out 2>err
# Each stage is a mesh, which divides its values. Forward, back, and the update, in 4 processes.
hone step.hone --pipeline 2 --mesh x=2 --micro-batches 2 -o sharded.pipeline >out 2>err
grep -q "2 stages on 4 devices, 2 micro-batches, .* on one device" err
contains '^ +1 +2 3 +\[x = 2\] '
grep -q "^stage on 2 3 = %" sharded.pipeline
grep -q "^mesh x=2$" sharded.pipeline
grep -q "^shard %.* = \[.*x.*\]" sharded.pipeline
"$HONE" check step.hone --pipeline sharded.pipeline --cache none >out 2>err
"$HONE" check step.hone --pipeline sharded.pipeline --cache none --transport tcp >out 2>err
"$HONE" explain step.hone --pipeline sharded.pipeline >out 2>err
grep -q "2 stages on 4 devices" err
# Prices choose the rest, if a stage leaves it open.
sed '/^shard/d; /^output/d' sharded.pipeline >open.pipeline
"$HONE" check step.hone --pipeline open.pipeline --cache none >out 2>err
hone zoo:mlp,size=tiny,batch=8 --train --pipeline auto --system local:2 >out 2>err
grep -qE "(on|of) 2 devices, .* micro-batch" err
# A plan is explained: the work of each stage, the order of each device, the other orders.
"$HONE" explain step.hone --pipeline step.pipeline >out 2>err
grep -q "2 stages on 2 devices, 4 micro-batches, 1f1b: a step takes .* on one device" err
contains '^ +1 +.* +F0 B0 F1 B1 F2 B2 F3 B3$'
contains '^ +0 +.* +F0 F1 B0 F2 B1 F3 B2 B3$'
contains '^1f1b, the plan '
contains '^gpipe '
fails 2 "does not say how many stages" wide.hone --pipeline none
fails 2 "needs devices" wide.hone --pipeline auto
fails 2 "with --pipeline prices divide them" wide.hone --pipeline 2 --shard 'x=[x, -]'
fails 2 "with --pipeline prices divide them" wide.hone --pipeline 2 --search chain
fails 2 "2 stages of 2 devices are not the 3 of 'ring:3'" wide.hone --pipeline 2 --mesh x=2 \
  --system ring:3
fails 2 "of 4096 stages and any number of micro-batches" wide.hone --pipeline 4096
fails 2 "add --pipeline" wide.hone --mesh x=2 --micro-batches 2
fails 2 "add --train" wide.hone --mesh x=2 --loss mse
fails 2 "64 rows" wide.hone --pipeline 2 --micro-batches 100
fails 5 "no pipeline keeps a device within 1.0 KiB" wide.hone --pipeline 2 --memory 1KiB
hone() { "$HONE" run "$@"; }
fails 3 "first line" wide.hone --pipeline wide.shard
fails 3 "called '" zoo:mlp,size=tiny,batch=8 --pipeline wide.pipeline
fails 2 "mesh does not go with --pipeline" wide.hone --pipeline wide.pipeline --mesh x=2
fails 2 "both say" wide.hone --pipeline wide.pipeline --plan wide.pipeline
fails 2 "pipeline is for models that are not compiled yet" wide.honec --pipeline wide.pipeline
fails 2 "pipeline is for native code" wide.hone --pipeline wide.pipeline --backend reference
hone() { "$HONE" check "$@"; }
fails 2 "pipeline is for models that are not compiled yet" wide.honec --model wide.hone \
  --pipeline wide.pipeline
hone() { "$HONE" bench "$@"; }
hone wide.hone --pipeline wide.pipeline --cache none --runs 3 >out 2>err
contains '3 runs'
grep -q "2 stages, 4 micro-batches, gpipe on 2 devices .*, compiled and run once" err
hone wide.hone --pipeline wide.pipeline --cache none --runs 3 --transport shared >out 2>err
fails 2 "donate does not go with --pipeline" wide.hone --pipeline wide.pipeline --donate
fails 2 "mesh does not go with --pipeline" wide.hone --pipeline wide.pipeline --mesh x=2
fails 2 "pipeline is for models that are not compiled yet" wide.honec --pipeline wide.pipeline
hone() { "$HONE" explain "$@"; }
fails 2 "does not go with --mesh" wide.hone --pipeline wide.pipeline --mesh x=2
fails 2 "does not go with --pipeline" wide.hone default --pipeline wide.pipeline
fails 3 "no device 1; 'ring:1' has 1" wide.hone --pipeline wide.pipeline --system ring:1
hone() { "$HONE" shard "$@"; }

# Devices may be GPUs, which have prices of their own kind.
system_with_gpu gpus.system 2 0
says "2 devices" two.hone --mesh x=2 --system gpus.system
says "2 devices" two.hone --mesh x=2 --target sm_90

# ---- Bad input ----------------------------------------------------------------------------------

fails 2 "no mesh" two.hone --shard 'x=[x, -]'
fails 2 "a mesh of its own" said.hone --mesh x=2
fails 2 "chosen by price" two.hone --mesh x=2 --shard 'x=[x, -]' --budget 1s
fails 2 "chosen by price" two.hone --mesh x=2 --shard 'x=[x, -]' --search chain
fails 2 "chosen by price" wide.hone --shard wide.shard --budget 1s
fails 2 "chosen by price" wide.hone --shard wide.shard --search chain
fails 2 "is not a number of bytes" two.hone --mesh x=2 --memory much
fails 2 "has 2 devices, and 'ring:4' 4" two.hone --mesh x=2 --system ring:4
# How much is missing, and which parts take it.
fails 5 "too much" wide.hone --mesh x=2 --memory 64KiB
grep -q "within 64.0 KiB: the best takes .*, .* too much" err
grep -qE "the largest of a device are %[vw] \[.*x.*\] 512.0 KiB, %[vw] \[.*x.*\] 512.0 KiB" err
# All commands that divide values keep within the memory that is given.
for command in run check bench explain report; do
  hone() { "$HONE" $command "$@"; }
  fails 5 "within 64.0 KiB" wide.hone --mesh x=2 --shard auto --memory 64KiB --budget 1s
  fails 2 "--memory is for values that a mesh divides" wide.hone --memory 1GiB
done
hone() { "$HONE" shard "$@"; }
fails 3 "mesh x=2 on 2 devices fits it" wide.hone --shard wide.shard --mesh x=4
fails 3 "no decision" wide.hone --shard wide.hone
fails 2 "has no value 'z'" two.hone --mesh x=2 --shard 'z=[x, -]'
fails 3 "cannot read 'x'" two.hone --mesh x=2 --shard 'x'
fails 2 "has no size" two.hone --mesh x --shard 'x=[x, -]'
fails 2 "size" two.hone --mesh x=0 --shard 'x=[x, -]'
fails 2 "axis" two.hone --mesh x=2 --shard 'x=[q, -]'
fails 2 "dims" two.hone --mesh x=2 --shard 'x=[x]'
fails 2 "twice" two.hone --mesh x=2 --shard 'x=[x, x]'
fails 2 "expected" two.hone --mesh x=2 --shard 'x=[x, -'
fails 3 "cannot" none.onnx --mesh x=2 --shard 'x=[x]'
