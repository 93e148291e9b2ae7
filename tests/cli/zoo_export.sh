# An exported model is a graph with its weights; what it computes is what the zoo model computes.
"$HONE" zoo export gpt2 --size tiny --seed 3 -o gpt.hone 2>err
grep -q "gpt.hone" err
[[ -s gpt.hone && -s gpt.npz ]]
"$HONE" run gpt.hone >a 2>/dev/null
"$HONE" run zoo:gpt2,size=tiny,seed=3 2>/dev/null | cmp - a
"$HONE" run zoo:gpt2,size=tiny,seed=4 2>/dev/null | cmp -s - a && exit 1
# A device gets the text, and nothing beside it.
"$HONE" zoo export mlp --size tiny -o /dev/null 2>err
grep -q "wrote /dev/null" err
[[ ! -e /dev/null.npz ]]
# The same twice.
mkdir again
"$HONE" zoo export gpt2 --size tiny --seed 3 -o again/gpt.hone 2>/dev/null
cmp gpt.hone again/gpt.hone
cmp gpt.npz again/gpt.npz
