# A C program, compiled by a C compiler, runs what hone compile wrote with the runtime alone.
if grep -q __asan_init "$BUILD/libhone_runtime.a"; then
  echo "the library needs the sanitizer's own linker"
  exit 77
fi
cc=${CC:-cc}
command -v "$cc" >/dev/null || { echo "there is no C compiler"; exit 77; }
"$cc" -std=c99 -O1 -Wall -Wextra -Wpedantic -Werror -I"$ROOT/src/runtime" \
  "$ROOT/examples/run_model.c" "$BUILD/libhone_runtime.a" -lfmt -lstdc++ -lm -pthread -o run_model
[[ $(wc -l <"$ROOT/examples/run_model.c") -lt 60 ]]
ldd run_model >libraries
if grep -Eiq "llvm|mlir|protobuf|sqlite" libraries; then cat libraries; exit 1; fi

"$HONE" compile zoo:mlp,size=tiny --cache none -o mlp.honec 2>/dev/null
./run_model mlp.honec >out
grep -q '^input x f32 2 16$' out
grep -q '^output logits f32 2 10: ' out
# The number is that of hone run.
"$HONE" run mlp.honec --input x=2x16xf32=0 -o y.npy >table 2>/dev/null
first=$(sed -nE 's/^output .*: (.*) \.\.\.$/\1/p' out)
grep -Eq "  ${first:0:5}" table || { cat out table; exit 1; }

code=0
./run_model none.honec 2>err || code=$?
[[ $code == 3 ]] && grep -q "none.honec" err
