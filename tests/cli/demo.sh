# hone demo takes sizes, threads, instructions, plans and a cache like the other commands.
"$HONE" demo zoo:mlp,size=tiny,symbolic-batch --dim N=3 --threads 1 --isa x86-64-v2 >out 2>err
grep -Eq "^inputs +x +f32\[3, 16\]$" out
grep -Eq "^plan .* on 1 threads(; values take .*)?$" out
grep -Eq "^logits +f32\[3, 10\] .* ok$" out
# Sizes that nobody chose are the smallest; a cache is used if there is one.
"$HONE" demo zoo:mlp,size=tiny,symbolic-batch --cache made >out 2>err
grep -q "^N=1 (the smallest" err
grep -Eq "^logits +f32\[1, 10\] .* ok$" out
"$HONE" cache ls --cache made 2>/dev/null | grep -q "plan @mlp"
# A model alone is taken so, and what comes next is about it.
"$HONE" zoo export mlp --size tiny -o "my model.onnx" 2>/dev/null
"$HONE" "my model.onnx" --threads 1 >out 2>err
grep -Eq "^logits +f32\[2, 10\] .* ok$" out
grep -Eq "^  hone compile 'my model.onnx' -o model.honec +a file for your program$" out
sed -n "s/^  \(hone [brtc].*\)  .*/\1/p" out | sed 's/ *$//; s/^hone tune .*/& --budget 1s/' >next
[[ $(wc -l <next) == 4 ]]
hone() { "$HONE" "$@"; }
export HONE_LOG=$PWD/log.db
while read -r line; do
  eval "$line --cache made" >out 2>err </dev/null || { cat err; exit 1; }
done <next
[[ -s model.honec && -s report.html ]]
