# The list is a table with a row per model, and nothing is said beside it.
"$HONE" zoo list >out 2>err
[[ ! -s err ]]
grep -Eq "^model +parameters +MACs" out
grep -Eq "^resnet18 +11.7 M +1.8 G .*f32\[1, 3, 224, 224\]" out
(($(wc -l <out) > 25))
