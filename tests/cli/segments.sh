# Models of several segments run and are described; what takes a single graph says so.
cat >loop.hone <<'END'
model @"loop\x1b"(%trips: i64[], %start: f32[]) -> (%end: f32[], %history: f32[H])
    where H in 0..1000 {
  %empty, %yes = run graph @initial() {
    %0 = constant [] : f32[0]
    %1 = constant true : bool[]
    return %0, %1
  }
  %end, %history = loop trip %trips while %yes with %state = %start grow %empty {
    %next, %row, %more = run %state graph @step(%s: f32[]) {
      %n = add %s, %s
      %row = reshape %s {dims = [1]}
      %more = compare %n, 100 {direction = lt}
      return %n, %row, %more
    }
    yield %next grow %row while %more
  }
}
END
"$HONE" run loop.hone --input trips=i64=3 --input start=f32=5 -o all.npz >out 2>/dev/null
grep -Eq "^end +f32\[\] +40 " out
grep -Eq "^history +f32\[3\] +5 .* 5, 10, 20$" out
"$HONE" run loop.hone --input trips=i64=3 --input start=f32=5 --expect all.npz >out
[[ $(grep -c "^ok " out) == 2 ]]
"$HONE" run loop.hone --input trips=i64=3 --input start=f32=6 --expect all.npz >out 2>err &&
  exit 1
grep -q "^BAD end " out

# A plan that does not fit a segment is named.
printf 'plan @initial {\n  threads = 5000\n}\n' >bad.plan
"$HONE" run loop.hone --plan bad.plan --cache none >out 2>err && exit 1
grep -q "bad.plan" err

"$HONE" inspect loop.hone >out
grep -qF 'model loop\x1b' out
grep -Eq "^outputs +end +f32\[\]$" out
grep -Eq "^run initial +2 .* empty, yes$" out
grep -Eq "^loop .* end, history$" out
grep -Eq "^  run step " out
"$HONE" inspect loop.hone --format json >out
grep -q '"kind": "loop"' out

for arguments in "inspect loop.hone --dot -" "opt loop.hone --pass cse"; do
  code=0
  # shellcheck disable=SC2086
  "$HONE" $arguments >out 2>err || code=$?
  [[ $code == 4 && ! -s out ]]
  grep -q "a tree of segments" err
done

# Each segment is compiled under a heading; what cannot be measured or shown is said first.
"$HONE" compile loop.hone --emit plan --cache none >out 2>/dev/null
grep -qF "# segment 1 of 2: initial" out
grep -qF "# segment 2 of 2: step" out
[[ $(grep -c "^plan @" out) == 2 ]]
"$HONE" compile loop.hone --emit object -o objects --cache none 2>/dev/null
[[ -s objects/segment2/kernel0.o ]]
"$HONE" compile loop.hone --stop-after plan | grep -c "^plan " | grep -qx 2
for arguments in "demo loop.hone" "bench loop.hone --profile"; do
  code=0
  # shellcheck disable=SC2086
  "$HONE" $arguments >out 2>err || code=$?
  [[ $code == 4 && ! -s out ]]
  grep -q "a tree of segments" err
done

# A size that is known from the command line, and one that is not.
cat >sizes.hone <<'END'
model @sizes(%p: bool[], %x: f32[N]) -> (%y: f32[K]) where N in 4..8, K in 1..8 {
  %y = if %p {
    %a = run %x graph @half(%x: f32[M]) where M in 4..8 {
      %a = slice %x {start = [0], limit = [2]}
      return %a
    }
    yield %a
  } else {
    yield %x
  }
}
END
"$HONE" run sizes.hone --dim N=6 --input p=bool=1 | grep -Eq "^y +f32\[2\]"
"$HONE" run sizes.hone --dim N=6 --input p=bool=0 | grep -Eq "^y +f32\[6\]"
"$HONE" inspect sizes.hone --dim N=6 >out
grep -Eq "x +f32\[6\]" out
grep -Eq "^if p " out
grep -Eq "^else$" out
