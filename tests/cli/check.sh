# hone check judges each output by its type, and marks the one that fails.
check() { "$HONE" check "$@" --cache none; }
cat >sum.hone <<'END'
graph @sum(%x: f64[100]) -> (f64[], f32[]) {
  %s = reduce %x {kind = sum, axes = [0]}
  %f = cast %s {dtype = f32} : f32[]
  return %s, %f
}
END
check sum.hone >out 2>err
grep -Eq "^s +f64\[\] +native +[0-9.e-]+ +[0-9.]+e-1[0-9] .*  ok$" out
grep -Eq "^f +f32\[\] +native +[0-9.e-]+ +[0-9.]+e-0[5-9] .*  ok$" out

# --expect has the tolerance of conformance: relative 1e-3, and 1e-6 of the largest number.
printf 'graph @same(%%x: f32[3]) -> f32[3] { %%y = add %%x, %%x return %%y }\n' >same.hone
expected() { # expected NUMBERS: of an input 1, 2, 0
  "$HONE" run same.hone --backend reference --input "x=3xf32=$1" -o expected.npy >out 2>/dev/null
  check same.hone --input "x=3xf32=1 2 0" --expect expected.npy
}
expected "1.0005 2 0.000001" >out 2>/dev/null
[[ $(grep -c "^ok y against expected.npy" out) == 4 ]]
code=0
expected "1.002 2 0" >out 2>err || code=$?
[[ $code == 1 ]] && [[ $(grep -c "^BAD y" out) == 1 ]] && [[ $(grep -c "^differs y" out) == 3 ]]
grep -q "native: 1 of 1 comparisons" err
code=0
expected "1 2 0.0001" >out 2>err || code=$?
[[ $code == 1 ]] && grep -qF "rtol 0.001, atol 4e-06" out

# --expect judges native code. In f32, 1e8 + 1 - 1e8 is 0; in double it is 1.
cat >lost.hone <<'END'
graph @lost(%x: f32[1], %one: f32[1]) -> f32[1] {
  %s = add %x, %one
  %y = sub %s, %x
  return %y
}
END
cat >neg.hone <<'END'
graph @neg(%x: f32[1]) -> f32[1] {
  %y = neg %x
  return %y
}
END
lost() { # lost MINUS_EXPECTED
  "$HONE" run neg.hone --backend reference --input "x=1xf32=$1" -o expected.npy >out 2>/dev/null
  check lost.hone --input x=1xf32=1e8 --input one=1xf32=1 --expect expected.npy
}
lost 0 >out 2>err
grep -q "^differs y" out && [[ $(grep -c "^ok y against" out) == 3 ]]
code=0
lost -1 >out 2>err || code=$?
[[ $code == 1 ]] && [[ $(grep -c "^BAD y" out) == 1 ]] && [[ $(grep -c "^ok y against" out) == 1 ]]
