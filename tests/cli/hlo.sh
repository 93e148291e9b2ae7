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

# Weights of such programs are inputs.
code=0
"$HONE" grad layer.txt -o step.hone 2>err || code=$?
[[ $code == 3 ]] && grep -q "hint: weights that are inputs" err

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

# A size that follows from no open one may follow from the numbers that are given.
cat >sizes.mlir <<'END'
func.func @main(%x: tensor<?xf32>) -> tensor<?xi32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %k = stablehlo.popcnt %n : tensor<i32>
  %s = stablehlo.reshape %k : (tensor<i32>) -> tensor<1xi32>
  %r = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
  return %r : tensor<?xi32>
}
END
for given in "" "--dim y=7"; do
  code=0
  # shellcheck disable=SC2086  # an option, or none
  "$HONE" run sizes.mlir $given 2>err || code=$?
  [[ $code == 4 ]] && grep -q "sizes.mlir:5:8" err
done
"$HONE" run sizes.mlir --dim x_0=7 | grep -q "i32\[3\]"
"$HONE" check sizes.mlir --shape x=7 >out

"$HONE" ops --hlo reduce-window | grep -q "^stablehlo.reduce_window  *reduce-window"
code=0
"$HONE" ops --hlo reduce-windw 2>err || code=$?
[[ $code == 2 ]] && grep -q "reduce-window" err

# A model whose file does not hold all of it can be looked at, but not run.
cat >missing.txt <<'END'
HloModule f

ENTRY main {
  x = f32[2] parameter(0)
  c = f32[2] constant({...})
  k = (f32[2], u8[1]) custom-call(x), custom_call_target="gpu_kernel"
  y = f32[2] get-tuple-element(k), index=0
  z = f32[2] add(c, y)
  ROOT r = f32[2] add(x, z)
}
END
"$HONE" inspect missing.txt >out 2>err
grep -q "^flops " out || grep -q "f32\[2\]" out
grep -q "gpu_kernel" err && grep -q "missing.txt:5:14" err
code=0
"$HONE" run missing.txt >out 2>err || code=$?
[[ $code == 4 ]] && grep -q "gpu_kernel" err
grep -v "gpu_kernel\|index=0" missing.txt | sed 's/add(c, y)/add(c, x)/' >elided.txt
code=0
"$HONE" run elided.txt >out 2>err || code=$?
[[ $code == 4 ]] && grep -q "5:14" err && grep -q -- "--input" err

# Real models.
data=$ROOT/../shared/data/hlo/modules.tar.xz
[[ -f $data ]] || { echo "skipped the rest: there is no $data"; exit 0; }
tar -xf "$data"
while read -r module; do
  code=0
  "$HONE" inspect "$module" >out 2>err || code=$?
  [[ $code == 0 ]] && grep -q "^ops " out && grep -q "^parameters " out ||
    { echo "$module: $code"; cat err; exit 1; }
done < <(find . -name '*.before_optimizations.txt' -o -name '*.hlo')
for module in xla_tools/hlo_llama3_8b_cp_bf16_1x4.hlo gpt_j_6b/training/module_*.txt; do
  code=0
  "$HONE" run "$module" >out 2>err || code=$?
  [[ $code == 4 ]] && grep -q "te_fused_attn\|numbers of a constant" err ||
    { echo "$module: $code"; cat err; exit 1; }
done
