# Texts of StableHLO and HLO are models like others.
cat >layer.txt <<'END'
// JAX wrote this.
module @jit_f {
  func.func public @main(%x: tensor<2x3xf32>) -> tensor<2xf32> {
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.exponential %x : tensor<2x3xf32>
    %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [1] :
      (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    return %1 : tensor<2xf32>
  }
}
END
"$HONE" inspect layer.txt | grep -q "x  *f32\[2, 3\]"
"$HONE" check layer.txt >out
"$HONE" run layer.txt >out
check='check.expect_eq_const %1, dense<0.0> : tensor<2xf32>'
sed "s/return %1/$check\n    return %1/" layer.txt >checks.mlir
"$HONE" run checks.mlir >out 2>err
grep -q "check" err # they are left out, and the user hears of it
"$HONE" convert layer.txt -o layer.hone >out
"$HONE" check layer.hone >out
"$HONE" inspect - <layer.txt | grep -q "f32\[2, 3\]"

# From each format to each, by the name of the output: the results are the same.
"$HONE" run layer.hone --seed 3 --backend reference >first
for format in mlir hlo onnx hone; do
  "$HONE" convert layer.hone -o "written.$format" >out
  "$HONE" convert "written.$format" -o again.mlir >out
  "$HONE" run again.mlir --seed 3 --backend reference >out
  cmp out first
done
grep -q "^module @" written.mlir && grep -q "^HloModule " written.hlo

printf 'ML\xefR\x01' >bytecode.mlir
code=0
"$HONE" inspect bytecode.mlir 2>err || code=$?
[[ $code == 4 ]] && grep -q "stablehlo-translate --deserialize" err
sed 's/stablehlo.exponential/stablehlo.foo/' layer.txt >lacking.mlir
code=0
"$HONE" inspect lacking.mlir 2>err || code=$?
[[ $code == 4 ]] && grep -q "lacking.mlir:5:10" err && grep -q "'stablehlo.foo' (1 use)" err
head -c 200 layer.txt >cut.mlir
code=0
"$HONE" inspect cut.mlir 2>err || code=$?
[[ $code == 3 ]] && grep -q "cut.mlir:5:" err

"$HONE" ops --hlo reduce-window | grep -q "^stablehlo.reduce_window  *reduce-window"
code=0
"$HONE" ops --hlo reduce-windw 2>err || code=$?
[[ $code == 2 ]] && grep -q "reduce-window" err

# Real models: all but one, which calls kernels of another machine.
data=$ROOT/../shared/data/hlo/modules.tar.xz
[[ -f $data ]] || { echo "skipped the rest: there is no $data"; exit 0; }
tar -xf "$data"
while read -r module; do
  code=0
  "$HONE" inspect "$module" >out 2>err || code=$?
  case $module in
    *hlo_llama3_8b_cp_bf16_1x4*) [[ $code == 4 ]] && grep -q "'all-reduce'" err ;;
    *) [[ $code == 0 ]] && grep -q "^ops " out && grep -q "^parameters " out ;;
  esac || { echo "$module: $code"; cat err; exit 1; }
done < <(find . -name '*.before_optimizations.txt' -o -name '*.hlo')
