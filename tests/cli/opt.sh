# Passes run in order; the result goes to stdout or a file, the talk to stderr.
cat >f.hone <<'END'
graph @f(%x: f32[2]) -> (f32[2]) {
  %a = exp %x : f32[2]
  %b = exp %x : f32[2]
  %c = tanh %x : f32[2]
  %y = add %a, %b : f32[2]
  return %y
}
END
"$HONE" opt f.hone --pass cse,dce --time-passes --print-changed --verify-each >out 2>err
[[ $(grep -c "exp" out) == 1 ]]
grep -q tanh out && exit 1
grep -q "after cse" err
grep -Eq "^cse .* 5 +3$" err
grep -Eq "^dce .* 3 +3$" err
"$HONE" opt f.hone -p cse -p dce -o g.hone 2>/dev/null
"$HONE" opt g.hone -p cse,dce --print-changed 2>err >/dev/null
grep -q "after" err && exit 1
"$HONE" opt --list | grep -Eq "^dce +"
