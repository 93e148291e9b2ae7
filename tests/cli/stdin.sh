# A graph comes from the standard input.
cat >f.hone <<'END'
graph @f(%x: f32[2]) -> (f32[2]) {
  %y = add %x, %x : f32[2]
  return %y
}
END
"$HONE" run - --input "x=2xf32=1 2" <f.hone 2>/dev/null | grep -Eq "^y +f32\[2\] .* 2, 4$"
"$HONE" inspect - <f.hone | grep -Eq "^ops +1 add"
"$HONE" inspect - </dev/null 2>err && exit 1
grep -q "<stdin>" err
