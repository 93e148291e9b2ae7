# The examples in C++: one compiles a model and runs it, one runs what was compiled with the runtime
# alone. Both compute the same.
for example in compile_model run_model; do
  [[ -x $BUILD/$example ]] || { echo "there is no $BUILD/$example"; exit 77; }
  [[ $(wc -l <"$ROOT/examples/$example.cc") -lt 60 ]]
done
export XDG_CACHE_HOME=$PWD/cache
"$BUILD/compile_model" zoo:mlp,size=tiny >compiled
grep -q '^f32\[2, 10\]: .* \.\.\.$' compiled
"$HONE" compile zoo:mlp,size=tiny --cache none -o mlp.honec 2>/dev/null
"$BUILD/run_model" mlp.honec | cmp - compiled

for example in compile_model run_model; do
  code=0
  "$BUILD/$example" none.honec 2>err || code=$?
  [[ $code == 3 || $code == 4 ]] && grep -q "none.honec" err
done
