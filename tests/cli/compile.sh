# hone compile shows each stage in each form, and takes plans and targets that fit.
source "$ROOT/tests/cli/expect.bash"
model=zoo:mlp,size=tiny
hone() { "$HONE" "$@" --cache none; }
compile() { "$HONE" compile --cache none "$@" 2>err; }

# The summary ends where it is asked to; the stages that were done have their times.
for stage in graph plan program kernels image; do
  compile "$model" --stop-after "$stage" --time-passes >out
  [[ $(tail -n 1 out) == "$stage "* ]]
  [[ $(grep -Ec "^(graph|plan|program|kernels|image) +[0-9.]+ [a-z]+$" err) == $(wc -l <out) ]]
done
compile "$model" | cmp - out

# So have the passes that prepare the graph, with the nodes that they find and leave. Optional
# passes can be left out; a plan is then for the graph without them.
compile "$model" --stop-after graph --time-passes >out
[[ $(grep -Ec "^[a-z]+ +[0-9.]+ [a-z]+ +[0-9]+ +[0-9]+$" err) == 28 ]]
compile "$model" --stop-after graph --time-passes --without cse,fold --without unshare >out
[[ $(grep -Ec "^[a-z]+ +[0-9.]+ [a-z]+ +[0-9]+ +[0-9]+$" err) == 20 ]]
compile "$model" --without unshare,splats --emit plan >without.plan
compile "$model" --without unshare,splats --plan without.plan --emit plan | cmp - without.plan
fails 3 "the plan is for another graph" compile "$model" --plan without.plan
fails 2 "phases, bytes, fold, sink, splats, spelled, late, between, cse, first, unshare, donate" \
  compile "$model" --without dse
fails 2 "the pass 'names' is required" compile "$model" --without names
fails 2 "--without is for native code" run "$model" --backend reference --without cse

# Every form.
shows() { # shows FORM PATTERN
  compile "$model" --isa x86-64-v2 --emit "$1" >shown."$1"
  grep -Eq "$2" shown."$1" || { echo "--emit $1: no '$2' in:"; head shown."$1"; return 1; }
}
shows graph '^graph @mlp\('
shows plan '^plan @mlp hash 0x'
shows program '^program @mlp \{'
shows tiles '^tiles @'
shows mlir '^ *(llvm|func)\.func '
shows llvm '^define '
shows asm '^kernel.*:'
[[ $(grep -c '^// ' shown.asm) == $(grep -c '^tiles @' shown.tiles) ]]
compile "$model" --emit plan -o written && [[ -s written ]]
# A plan is for a graph whatever its weights are, and wherever they come from.
"$HONE" zoo export mlp --size tiny -o mlp.hone >/dev/null 2>&1
for same in mlp.hone "$model,seed=7"; do
  compile "$same" --plan written --emit plan | cmp - written
done
compile "$model" --emit object -o objects
[[ $(grep -c "^wrote objects/kernel" err) == $(find objects -name 'kernel*.o' -size +0 | wc -l) ]]
fails 2 "-o DIR" compile "$model" --emit object
fails 2 "made in the stage plan, after --stop-after graph" compile "$model" --emit plan \
  --stop-after graph
fails 2 "made in the stage kernels" compile "$model" --emit asm --stop-after program
for stage in plan image; do compile "$model" --emit plan --stop-after $stage | cmp - written; done

# A plan that was printed gives itself; an edited one is taken.
compile "$model" --threads 1 --without chains --emit plan >whole.plan
compile "$model" --plan whole.plan --emit plan | cmp - whole.plan
printf 'plan @mlp {\n  threads = 1\n}\n' >part.plan
compile "$model" --plan part.plan --without chains --emit plan | cmp - whole.plan
"$HONE" run "$model" --plan whole.plan --cache none >out 2>err

# The memory of values is compared with what they could take anywhere, not with where the plan puts
# them.
compile "$model" --plan whole.plan --stop-after plan >out
grep -q "the least that is possible$" out
awk '/^  offset/ { if (n++) next; sub(/= .*/, "= 4096") } 1' whole.plan >far.plan
compile "$model" --plan far.plan --stop-after plan >out
grep -q "more than their bound$" out

# A plan that does not fit is a fault of the file, which is named.
refused() { # refused WORDS FILE ARGS...: by all that take a plan
  local words=$1 plan=$2
  shift 2
  for command in compile run demo; do
    fails 3 "$words" "$command" "$model" --plan "$plan" "$@"
    grep -qF "$plan" err || { echo "$command does not name $plan"; cat err; return 1; }
  done
}
sed 's/algorithm = [a-z]*/algorithm = generic, points = 4/' whole.plan >generic.plan
refused "algorithm generic has no field" generic.plan
sed 's/threads = 1/threads = 5000/' whole.plan >threads.plan
refused "5000 is outside of" threads.plan
sed 's/order = \[@k0, @k1/order = [@k1, @k0/' whole.plan >order.plan
refused "order" order.plan
sed 's/^plan @mlp/plam @mlp/' whole.plan >bad.plan
refused "bad.plan:" bad.plan
refused "missing.plan" missing.plan
fails 3 "the plan is for another graph" compile "$model,depth=3" --plan whole.plan
fails 2 "--threads 2, but the plan says 1" compile "$model" --plan whole.plan --threads 2

# Each refusal has the line of its entry.
line=$(grep -n "  order" order.plan | cut -d: -f1)
fails 3 "order.plan:$line, order" compile "$model" --plan order.plan
line=$(grep -n "  threads" threads.plan | cut -d: -f1)
fails 3 "threads.plan:$line, threads" compile "$model" --plan threads.plan

# A group that is edited takes along what depended on it, and no more.
sed 's/\(  fuse @k0 = {\)%[^,]*, /\1/' whole.plan >edited.plan
cmp -s edited.plan whole.plan && exit 1
fails 3 "edited.plan:" compile "$model" --plan edited.plan
compile "$model" --plan edited.plan --plan-lenient --emit plan >lenient.plan
grep -Eq "^dropped edited.plan:[0-9]+: " err
compile "$model" --plan lenient.plan --emit plan | cmp - lenient.plan
grep -q "$(grep "fuse @k0" edited.plan)" lenient.plan
"$HONE" check "$model" --plan edited.plan --plan-lenient --cache none >out 2>/dev/null
compile "$model,depth=3" --plan whole.plan --plan-lenient >out
fails 2 "--plan-lenient needs --plan" compile "$model" --plan-lenient

# A summary is not a result.
fails 2 "-o summary" compile "$model" -o summary
[[ ! -e summary ]]

# Another machine.
"$HONE" target show --isa x86-64-v2 | sed 's/^target .*{/target "other" {/' >other.target
compile "$model" --target other.target --emit plan >other.plan
grep -q 'on "other"' other.plan
fails 3 "other.plan" compile "$model" --plan other.plan
fails 3 "missing.target" compile "$model" --target missing.target
fails 2 "--isa" compile "$model" --isa avx1024
fails 2 "the target's cores" run "$model" --threads 99
fails 2 "--threads" run "$model" --threads 0
# Code for more than this machine has is made, and not run.
if ! grep -q "amx_int8" <("$HONE" target show); then
  sed 's/isa = .*/isa = avx512 + amx_int8/' other.target >more.target
  compile "$model" --target more.target >out
  fails 4 "the target needs " run "$model" --target more.target
  # Before the reference computes anything.
  fails 4 "the target needs " check "$model" --target more.target
  [[ $(head -n 1 err) == "hone: error: "* ]] || { cat err; exit 1; }
fi

# Sizes may stay open until memory is laid out; the hint can be typed as it is.
open=$model,symbolic-batch
compile "$open" >out
[[ $(tail -n 1 out) == kernels* ]] && grep -q -- "--dim N=1$" err
fails 2 "--dim N=1" compile "$open" --stop-after image
for form in plan program tiles asm; do compile "$open" --emit $form | grep >/dev/null .; done
compile "$open" --dim N=1 | grep >/dev/null "^image"

# The plan of a graph with open sizes serves all sizes; what is made for some says so.
compile "$open" --emit plan >open.plan
compile "$open" --dim N=2 --emit plan >two.plan
for command in run check "bench --seconds 0.01" "bench --seconds 0.01 --profile"; do
  # shellcheck disable=SC2086
  "$HONE" $command "$open" --dim N=3 --plan open.plan --cache none >out 2>err
  [[ -s out ]]
done
# The last command shows: types and prices are those of the sizes that ran.
grep -Eq "^output: .* k[0-9]+ +f32\[3, 10\] .*%$" out
"$HONE" run "$open" --dim N=2 --plan two.plan --cache none >out 2>err
for command in compile demo reduce; do
  hint="it is for open sizes; 'hone compile' with --dim N=2 makes one for these"
  code=0
  "$HONE" $command "$open" --dim N=2 --plan open.plan >out 2>err || code=$?
  [[ $code == 3 && ! -s out ]] && grep -qF "$hint" err || { cat err; exit 1; }
done
fails 3 "it may be for other sizes; 'hone compile' with --dim N=3" run "$open" --dim N=3 \
  --plan two.plan
fails 3 "it may be for other sizes" compile "$open" --plan two.plan
# So does one that leaves some sizes open, where the others are as they were for it.
cat >sizes.hone <<'END'
graph @sizes(%x: f32[N, M], %w: f32[M, 8]) -> f32[N, 8] where N in 1..8, M in 1..16 {
  %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  return %y
}
END
compile sizes.hone --dim M=4 --emit plan >some.plan
compile sizes.hone --dim M=4 --plan some.plan --emit plan | cmp - some.plan
for command in run check "bench --seconds 0.01"; do
  # shellcheck disable=SC2086
  "$HONE" $command sizes.hone --shape w=4x8 --input x=3x4xf32=1 --plan some.plan --cache none \
    >out 2>err
  [[ -s out ]]
done
some="it may be for other sizes; 'hone compile' with --dim M=4 --dim N=3 makes one for these; one "
some+="that leaves some of them open wants the others from --dim"
fails 3 "$some" run sizes.hone --input x=3x4xf32=1 --plan some.plan
fails 3 "it may be for other sizes" run sizes.hone --dim M=5 --plan some.plan
fails 3 "'hone compile' with --dim M=4 --dim N=1 makes one for these" demo sizes.hone --dim M=4 \
  --plan some.plan

# Heuristics that are left out give another plan, from the cache too, which computes the same.
conv=zoo:squeezenet,size=tiny
compile "$conv" --emit plan >all.plan
compile "$conv" --without fuse_elementwise,gemm --emit plan >less.plan
cmp -s all.plan less.plan && exit 1
for time in 1 2; do
  for without in gemm fuse_elementwise,gemm; do
    "$HONE" compile "$conv" --without $without --emit plan --cache plans >$without.$time 2>err
  done
  cmp fuse_elementwise,gemm.$time less.plan
  cmp -s gemm.$time less.plan && exit 1
done
"$HONE" check "$model" --without gemm,chains --cache none >out 2>err
fails 2 "there is no pass 'speed'" compile "$model" --without gemm,speed
grep -q "can be left out are .*; the heuristics are groups, .*gemm.*" err
fails 2 "there is no pass ''" run "$model" --without gemm,
fails 2 "does not go with 'gemm'" compile "$model" --without cse,gemm --plan-seed 1
compile "$model" --without cse --plan-seed 1

# How sure learned prices have to be is a probability; without measuring, plans are equal.
for sure in 0.5 0.999; do compile "$model" --sure $sure >out; done
for sure in 0.4 1; do
  fails 2 "not a probability from 0.5 to 0.999" compile "$model" --sure $sure
done
for time in 1 2; do "$HONE" compile "$model" --no-measure --emit plan --cache none >$time.plan; done
cmp 1.plan 2.plan

# Options that only native code takes.
for option in --plan=missing.plan --threads=77 --isa=avx2 --target=none --plan-seed=1 --sure=0.9 \
  --no-measure; do
  fails 2 "${option%%=*} is for native code" run "$model" --backend reference "$option"
  fails 2 "${option%%=*} is for native code" run "$model" --numerics wide "$option"
done

# Each process computes the same bits, from the cache too.
for name in one two; do
  "$HONE" run zoo:squeezenet,size=tiny --cache none -o "$name.npz" >/dev/null
done
cmp one.npz two.npz
for time in 1 2; do
  "$HONE" run zoo:squeezenet,size=tiny --cache kept -o two.npz >/dev/null
  cmp one.npz two.npz
done
