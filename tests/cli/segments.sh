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

# Plans as they are printed are taken, each by its segment; what has none is left to the planner.
native() { "$HONE" "$@" --cache none; }
native compile loop.hone --emit plan -o whole.plan
native compile loop.hone --plan whole.plan --emit plan | cmp - whole.plan
native run loop.hone --plan whole.plan --input trips=i64=3 --input start=f32=5 --expect all.npz >out
sed 's/ hash 0x[0-9a-f]*//' whole.plan >names.plan
native compile loop.hone --plan names.plan --emit plan | cmp - whole.plan
printf 'plan @step {\n  threads = 1\n}\n' >part.plan
native compile loop.hone --plan part.plan --emit plan >out
[[ $(grep -c "threads = 1$" out) == 1 ]]
sed '/@step/,$s/threads = .*/threads = 1/' whole.plan | cmp - out
for command in check "bench --seconds 0.01"; do
  # shellcheck disable=SC2086
  native $command loop.hone --plan whole.plan >out
done

# A plan that does not fit is named with its place.
printf '\nplan @initial {\n  threads = 5000\n}\n' >bad.plan
sed 's/@step hash 0x..../@step hash 0x0000/' whole.plan >hash.plan
sed 's/@step/@stpe/' names.plan >name.plan
sed '/^plan/,$!d' whole.plan whole.plan >twice.plan
refused() { # refused FILE:LINE WORDS HINT
  for command in run compile; do
    code=0
    native $command loop.hone --plan "${1%:*}" >out 2>err || code=$?
    [[ $code == 3 && ! -s out ]] && grep -qF "$1" err && grep -qF "$2" err && grep -qF "$3" err ||
      { cat err; return 1; }
  done
}
refused bad.plan:3 "5000 is outside of" ""
refused hash.plan:9 "segment 'step'" "other sizes"
refused name.plan:9 "the plan '@stpe'" "did you mean 'step'?"
refused twice.plan:17 "segment 'initial' has two plans" "the other is at twice.plan:1"

"$HONE" inspect loop.hone >out
grep -qF 'model loop\x1b' out
grep -Eq "^outputs +end +f32\[\]$" out
grep -Eq "^run initial +2 .* empty, yes$" out
grep -Eq "^loop .* end, history$" out
grep -Eq "^  run step " out
"$HONE" inspect loop.hone --format json >out
grep -q '"kind": "loop"' out

for arguments in "inspect loop.hone --dot -" "opt loop.hone --pass cse" \
  "explain loop.hone" "compare loop.hone default default"; do
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
for arguments in "bench loop.hone --donate" "bench loop.hone --donate --profile"; do
  code=0
  # shellcheck disable=SC2086
  "$HONE" $arguments >out 2>err || code=$?
  [[ $code == 4 && ! -s out ]]
  grep -q "a tree of segments" err
done

# A profile says which segments take how long, and their kernels; the demo shows all of the way.
native bench loop.hone --seconds 0.01 --profile --input trips=i64=3 --input start=f32=5 >out
grep -Eq "^segment +sizes +runs +time +share$" out
grep -Eq "^step +3 +[0-9.]+ [a-z]+ +[0-9.]+%$" out
grep -Eq "^initial +1 " out
grep -qx "# segment step" out
grep -Eq "^add, compare +k1 x3 +f32\[\] +nest +" out
[[ $(grep -Ec "^all " out) == 3 ]]
"$HONE" demo loop.hone --plan whole.plan >out
grep -qx "model loop\\\\x1b" out
grep -Eq "^kernels +[0-9.]+ [a-z]+ +2$" out
grep -Eq "^end +f32\[\] .* ok$" out
grep -Eq "^native +min .*, median " out
code=0
"$HONE" demo loop.hone --plan hash.plan >out 2>err || code=$?
[[ $code == 3 && ! -s out ]]

# A plan that leaves some of the model's sizes open serves all of these.
cat >some.hone <<'END'
model @some(%p: bool[], %x: f32[N, M]) -> (%y: f32[N, M]) where N in 1..8, M in 1..8 {
  %y = if %p {
    %a = run %x graph @one(%x: f32[A, B]) where A in 1..8, B in 1..8 {
      %a = exp %x
      return %a
    }
    yield %a
  } else {
    yield %x
  }
}
END
native compile some.hone --dim M=4 --emit plan -o some.plan
native run some.hone --dim M=4 --input p=bool=1 --input x=3x4xf32=1 --plan some.plan >out
grep -Eq "^y +f32\[3, 4\] +2.718" out
code=0
native run some.hone --input p=bool=1 --input x=3x4xf32=1 --plan some.plan >out 2>err || code=$?
[[ $code == 3 ]] && grep -q "one that leaves some of them open wants the others from --dim$" err

# Each segment is a case, for each of its sizes; one that fails is reduced.
cat >grow.hone <<'END'
model @grow(%trips: i64[], %x: f32[1]) -> (%end: f32[H]) where H in 0..64 {
  %end = loop trip %trips with %state = %x {
    %next = run %state graph @twice(%s: f32[S]) where S in 1..32 {
      %n = concat %s, %s {axis = 0}
      return %n
    }
    yield %next
  }
}
END
"$HONE" reduce grow.hone --input trips=i64=4 >out 2>err
[[ ! -s out ]] && grep -qx "no segment fails on its own; 4 cases were tried" err
"$HONE" reduce grow.hone --input trips=i64=4 --time-limit 0.001 -o small.case 2>err
grep -qx "segment 'twice'" err
grep -q "^case .* accurate" small.case
code=0
"$HONE" reduce loop.hone --plan bad.plan >out 2>err || code=$?
[[ $code == 3 && ! -s out ]] && grep -qF "bad.plan" err && grep -q "5000 is outside of" err

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

# Segments are tuned one after another; what is found serves all commands.
native tune loop.hone --threads 1 --budget 2s --log tuned.db -o tuned.plan --json tuned.json >out \
  2>err
grep -qxF "# segment 1 of 2: initial" out
grep -qxF "# segment 2 of 2: step" out
grep -q '"segment": "step"' tuned.json
native run loop.hone --plan tuned.plan --input trips=i64=3 --input start=f32=5 --expect all.npz >out
