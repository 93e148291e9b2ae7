# Without arguments hone describes, compiles, checks and measures a model, and says what is next.
"$HONE" >out 2>err
grep -q "^graph squeezenet" out
grep -Eq "^parameters +1.2 M" out
grep -Eq "^kernels .* of code" out
grep -Eq "^logits +f32\[1, 1000\] .* ok$" out
grep -q "^native  min" out
grep -Eq "digest [0-9a-f]{16}$" out
grep -q "hone zoo list" out

# Every time the same.
"$HONE" >again 2>/dev/null
[[ $(grep -o "digest .*" out) == $(grep -o "digest .*" again) ]]
