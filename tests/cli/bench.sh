# hone bench tells what runs take, and with --profile which kernels take it.
"$HONE" bench zoo:mlp,size=tiny --seconds 0.01 --cache none >plain 2>err
grep -Eq "^median .* of [0-9]+ runs$" plain
[[ $(wc -l <plain) == 1 ]]
grep -q "compiled and run once in" err

"$HONE" bench zoo:mlp,size=tiny --seconds 0.01 --cache none --threads 1 --profile >profile 2>err
grep -Eq "^kernel +first +launches +writes +algorithm +schedule +time +share" profile
grep -Eq "^all +[0-9.]+ [a-z]+$" profile
grep -q "compiled and run once in" err
# Its keys are those of the plan.
"$HONE" compile zoo:mlp,size=tiny --threads 1 --cache none --emit plan >plan
for key in $(grep -Eo "0x[0-9a-f]{16}" profile); do grep -q "schedule $key = " plan; done
[[ $(grep -Ec "0x[0-9a-f]{16}" profile) -gt 0 ]]

# Inputs that are given up are changed in place.
"$HONE" bench zoo:gpt2_decode,size=tiny --seconds 0.01 --cache none --donate --profile >donated
grep -q "^dynamic_update " donated
cat >step.hone <<'END'
graph @step(%w: f32[64] donate 0, %g: f32[64]) -> f32[64] {
  %v = sub %w, %g
  return %v
}
END
"$HONE" bench step.hone --seconds 0.01 --cache none --donate >stepped
grep -q "^median " stepped
code=0
"$HONE" bench zoo:mlp,size=tiny --seconds 0.01 --cache none --donate 2>err || code=$?
[[ $code == 2 ]]
grep -q "the model changes no input in place" err
