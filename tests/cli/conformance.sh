# `hone conformance` sorts cases into pass, wrong, unsupported and crashed.
code=0
mkdir empty
"$HONE" conformance empty 2>err || code=$?
[[ $code == 3 ]] && grep -q "there are no test cases in empty" err
code=0
"$HONE" conformance empty --constants --symbolic 2>err || code=$?
[[ $code != 0 ]]

# Whatever the file holds, the run goes on.
mkdir -p cases/{garbage,void}
for name in garbage void; do : >cases/$name/output_0.npy; done
echo "this is no model" >cases/garbage/model.onnx
: >cases/void/model.onnx
code=0
"$HONE" conformance cases --json out.json --markdown out.md >out 2>err || code=$?
[[ $code == 1 ]] && grep -q "of 2 cases 2 are wrong and 0 crashed" err
grep -q "^wrong  *cases/garbage: " out
grep -q '"wrong": 2' out.json
grep -q "## wrong" out.md
code=0
"$HONE" conformance cases --filter 'v*d' --json - >out 2>err || code=$?
[[ $code == 1 ]] && [[ $(head -c1 out) == "{" ]] && ! grep -q garbage out
code=0
"$HONE" conformance cases --filter nothing 2>err || code=$?
[[ $code == 3 ]] && grep -q "none of the 2 cases matches 'nothing'" err
# No time is a crash, not an error of the run.
code=0
"$HONE" conformance cases --time-limit 0.000001 >out 2>err || code=$?
[[ $code == 1 ]] && grep -q "^crashed .*: no result within" out

# A text of StableHLO may contain its answers: each function is a case.
mkdir answers
cat >answers/two.txt <<'END'
func.func @good() {
  %x = stablehlo.constant dense<[1.0, -0.0, 0x7FC00000]> : tensor<3xf32>
  %y = stablehlo.negate %x : tensor<3xf32>
  %z = stablehlo.negate %y : tensor<3xf32>
  check.expect_eq %x, %z : tensor<3xf32>
  func.return
}

// -----

func.func @bad() {
  %x = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %y = stablehlo.add %x, %x : tensor<2xi32>
  check.expect_eq_const %y, dense<[2, 5]> : tensor<2xi32>
  func.return
}

// -----

func.func @lacking() {
  %x = stablehlo.constant dense<1.0> : tensor<f32>
  %y = stablehlo.foo %x : tensor<f32>
  check.expect_almost_eq_const %y, dense<1.0> : tensor<f32>
  func.return
}
END
for mode in "" --constants "--backend native"; do
  code=0
  # shellcheck disable=SC2086  # an option, or none
  "$HONE" conformance answers $mode >out 2>err || code=$?
  [[ $code == 1 ]] && grep -q "of 3 cases 1 are wrong and 0 crashed" err
  grep -q "^wrong  *answers/two.txt/2:bad: 1 of 2 elements differ; element 1 is 4, expected 5" out
  grep -q "stablehlo.foo" out
done
"$HONE" conformance answers/two.txt --filter '*good*' >out
# The processor as a device is native code in as much memory, and the reference stays on request.
codes=
for native in "--backend native" "--device cpu"; do
  code=0
  # shellcheck disable=SC2086  # two words
  "$HONE" conformance answers/two.txt --filter '*good*' $native --memory-limit 1 >out 2>err ||
    code=$?
  codes="$codes $code"
done
[[ $codes == " $code $code" ]]
"$HONE" conformance answers/two.txt --filter '*good*' --device cpu --backend reference \
  --cache /dev/null/none >out

# Cases that their authors do not run are run too, and stand apart with the reason.
echo '// RUN-DISABLED(inaccurate): stablehlo-translate' >off.txt
sed '/-----/,$d' answers/two.txt >>off.txt
"$HONE" conformance answers/two.txt off.txt --filter '*o*' >out 2>err || true
grep -q "^off.txt, disabled  *1  *1" out && grep -q "^off.txt  *inaccurate  *pass" out

data=$ROOT/../shared/data/stablehlo/programs.tar.xz
if [[ -f $data ]]; then
  mkdir programs
  tar -C programs -xf "$data" --wildcards 'testdata/[adr]*' 'testdata/sort*' 'interpret/*'
  "$HONE" conformance programs >out
else
  echo "skipped: there is no $data"
fi

data=/usr/share/libonnx-testdata/data/node
[[ -d $data ]] || { echo "skipped the rest: there is no $data"; exit 0; }
mkdir standard
cp -r "$data"/test_relu "$data"/test_strnormalizer_nostopwords_nochangecase standard/
"$HONE" conformance standard --jobs 2 >out
grep -q "^standard  *2  *1  *0  *1  *0$" out
grep -q "computes with strings" out
"$HONE" conformance standard --constants >out
"$HONE" conformance standard --symbolic >out
grep -q "^symbolic dims: all in 1 cases" out
# The output of another case.
cp "$data"/test_abs/test_data_set_0/output_0.pb standard/test_relu/test_data_set_0/
code=0
"$HONE" conformance standard --verbose >out 2>err || code=$?
[[ $code == 1 ]]
grep -Eq "^wrong +standard/test_relu: [0-9]+ of 60 elements differ .*worst at \[.*output 'y'" out
