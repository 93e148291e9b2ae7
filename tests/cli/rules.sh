# Rules are listed, shown and verified; what is wrong is refused with its place.
cat >good.rules <<'END'
rule @twice(%x: f32[M, N]) -> f32[M, N] where M in 1..64, N in 1..64 {
  %t = transpose %x {permutation = [1, 0]}
  %y = transpose %t {permutation = [1, 0]}
  return %y
} => {
  return %x
} when M != N by sampled
END
# Without a file, those that are built in, wherever hone is installed.
(cd / && "$HONE" rules list) >built_in
[[ $(wc -l <built_in) -gt $(cat "$ROOT"/rules/*.rules | grep -c '^rule @') ]]
(cd / && "$HONE" rules show dot_associates) >shown
grep -q '^rule @dot_associates(' shown
"$HONE" rules show "$ROOT/rules/dot.rules" dot_associates | cmp - shown
"$HONE" rules explain dot_associates >explained
[[ -s explained ]]
status=0
"$HONE" rules show good.rules 2>err || status=$?
[[ $status == 2 ]]
grep -q "no rule 'good.rules' of its own" err
grep -q "FILE NAME" err

"$HONE" rules list good.rules | grep -Eq "^twice +2 +0 +sampled +unknown +M != N$"
"$HONE" rules show good.rules twice | grep -q "^} when M != N by sampled$"
"$HONE" rules verify good.rules -o shown.rules --json out.json >out 2>err
grep -Eq "^twice +all_sizes +exact" out
grep -q "1 rules: 1 proved for all sizes, 0 refuted" err
grep -q "by all_sizes, exact" shown.rules
grep -q '"result": "all_sizes"' out.json
"$HONE" rules verify shown.rules >/dev/null 2>&1

sed 's/\[1, 0\]}$/[0, 1]}/;s/f32\[M, N\] where/f32[M, N] where/' good.rules >square.rules
sed -i '0,/\[0, 1\]/s//[1, 0]/' square.rules
status=0
"$HONE" rules verify square.rules 2>err >/dev/null || status=$?
[[ $status == 3 ]]  # the results have different types
grep -q "square.rules:1:" err

cat >wrong.rules <<'END'
rule @wrong(%x: f32[N], %y: f32[N]) where N in 1..64 {
  %d = sub %x, %y
  return %d
} => {
  %d = sub %y, %x
  return %d
} by all_sizes
END
status=0
"$HONE" rules verify wrong.rules 2>err >out || status=$?
[[ $status == 1 ]]
grep -q "^wrong .*refuted" out
grep -q "wrong: at N = .* element \[0\] of result 0 differs" err

# Proofs are written, checked by themselves, and refused when they are changed or of another rule.
"$HONE" rules verify good.rules --proofs good.proofs >/dev/null 2>&1
grep -Eq "^certificate @twice [0-9a-f]{16}$" good.proofs
"$HONE" rules check good.rules good.proofs 2>err
grep -q "1 rules: 1 certificates are good, 0 refused, 0 missing" err
sed 's/box/cut 0 M + N\n  box/' good.proofs >bad.proofs
status=0
"$HONE" rules check good.rules bad.proofs 2>err || status=$?
[[ $status == 1 ]]
grep -q "twice: .*end of the loop (certificate of 'twice', line 3)" err
sed 's/1..64, N/1..32, N/' good.rules >other.rules
status=0
"$HONE" rules check other.rules good.proofs 2>err || status=$?
[[ $status == 1 ]]
grep -q "the certificate is of another rule" err
sed 's/@twice/@thrice/;s/sampled/all_sizes/' good.rules >missing.rules
status=0
"$HONE" rules check missing.rules good.proofs 2>err || status=$?
[[ $status == 1 ]]
grep -q "thrice: there is no certificate" err

# A rule that is false in general gets a guard.
cat >row.rules <<'END'
rule @row(%x: f32[M, N]) -> f32[N] where M in 1..64, N in 1..64 {
  %s = reduce %x {kind = sum, axes = [0]}
  return %s
} => {
  %s = reduce %x {kind = max, axes = [0]}
  return %s
}
END
status=0
"$HONE" rules verify row.rules >/dev/null 2>&1 || status=$?
[[ $status == 1 ]]
"$HONE" rules verify row.rules --guards -o guarded.rules --proofs guarded.proofs \
  --json row.json >out 2>err
grep -q "row: at M = .*; true when M = 1" err
grep -q "0 refuted, 0 not tested, 1 got a guard" err
grep -q "^} when M = 1 by all_sizes, exact$" guarded.rules
grep -q '"guard"' row.json
"$HONE" rules check guarded.rules guarded.proofs 2>/dev/null

# A rule that is wrong at its borders computes those as its left side does.
cat >rows.rules <<'END'
rule @rows(%x: f32[B, C, H], %w: f32[F, C, 3]) -> f32[B, F, H]
    where B in 1..64, C in 1..64, H in 4..64, F in 1..64 {
  %y = conv %x, %w {pad_low = [1], pad_high = [1]}
  return %y
} => {
  %0 = constant 0 : f32[]
  %c = conv %x, %w {pad_high = [1]}
  %y = pad %c, %0 {low = [0, 0, 1], high = [0, 0, 0]}
  return %y
}
END
"$HONE" rules verify rows.rules --corrections -o corrected.rules --proofs corrected.proofs \
  --json rows.json >out 2>err
grep -q "rows: at B = .*; true with corrections in \[0:B, 0:F, 0:1\]" err
grep -q "0 refuted, 0 not tested, 1 got corrections" err
grep -q '"corrections"' rows.json
"$HONE" rules check corrected.rules corrected.proofs 2>/dev/null
status=0
"$HONE" rules verify wrong.rules --corrections >/dev/null 2>err || status=$?
[[ $status == 1 ]]
grep -q "wrong: no correction was found: all of result 0 is wrong" err

status=0
"$HONE" rules show good.rules twcie 2>err || status=$?
[[ $status == 2 ]]
grep -q "twice" err

# The report tells rung by rung what is shown, and why no more.
"$HONE" rules explain good.rules twice >out
grep -Eq "^nodes +2 become 0$" out
grep -Eq "^sizes +M in 1..64, N in 1..64, when M != N$" out
grep -Eq "^sampled +equal at [0-9]+ lists of sizes, .* at most 2\^-[0-9]+$" out
grep -Eq "^small +the same polynomials at [0-9]+ lists" out
grep -Eq "^all sizes +proved: one normal form in all of the results$" out
grep -Eq "^certificate +[0-9]+ steps, good$" out
grep -Eq "^floats +exact: all bits are equal$" out
grep -Eq "^by default +used$" out
status=0
"$HONE" rules explain wrong.rules wrong >out 2>err || status=$?
[[ $status == 1 ]]
grep -Eq "^sampled +refuted: at N = .* differs$" out
grep -q "the rule 'wrong' is not true" err
cat >weak.rules <<'END'
rule @weak(%x: f32[N], %y: f32[N]) -> bool[N] where N in 1..64 {
  %m = max %x, %y
  %b = compare %x, %m {direction = lt}
  return %b
} => {
  %b = compare %x, %y {direction = lt}
  return %b
}
END
"$HONE" rules explain weak.rules weak >out
grep -Eq "^sampled +equal .*; the probability .* not known$" out
grep -Eq "^all sizes +not proved: " out
grep -Eq "^certificate +none$" out
grep -Eq "^by default +not used$" out
status=0
"$HONE" rules explain good.rules twcie 2>err || status=$?
[[ $status == 2 ]]

"$HONE" rules generate --list | grep -q "^dot "
"$HONE" rules generate elementwise --ops 2 -o found.rules --progress none 2>counts
grep -Eq "^rules +[1-9]" counts
grep -Eq "^ +rejected +0$" counts
"$HONE" rules verify found.rules >/dev/null 2>&1
"$HONE" rules generate --all --ops 1 -o found --progress none >out
grep -Eq "^family +ops +made +distinct +candidates +rules +proved +guarded +rejected +s +MiB$" out
grep -Eq "^conv +1 " out
grep -Eq "^all " out
"$HONE" rules check found/dot.rules found/dot.proofs 2>/dev/null
"$HONE" rules generate --all --ops 1 -o found --progress none 2>err >out
grep -q "^.*order: [0-9]* blocks of candidates are known" err
status=0
"$HONE" rules generate --all 2>err || status=$?
[[ $status == 2 ]]
grep -q -- "-o FOLDER" err
"$HONE" rules generate reduction --ops 2 --guards -o found.rules --proofs found.proofs \
  --rejected no.rules --progress none 2>counts
grep -Eq "^ +with a guard that was found +[1-9]" counts
"$HONE" rules check found.rules found.proofs 2>/dev/null
"$HONE" rules list no.rules >/dev/null
"$HONE" rules generate reduction --ops 2 --state search.state -o first.rules --progress none \
  2>/dev/null
"$HONE" rules generate reduction --ops 2 --state search.state -o again.rules --progress none \
  2>err
grep -q "blocks of candidates are known" err
cmp first.rules again.rules
status=0
"$HONE" rules generate reduction --ops 1 --state search.state 2>err || status=$?
[[ $status == 3 ]]
grep -q "is not the state of this search" err
status=0
"$HONE" rules generate dto 2>err || status=$?
[[ $status == 2 ]]
grep -q "'dot'" err
status=0
"$HONE" rules generate nofamily 2>err || status=$?
[[ $status == 2 ]]
grep -q "the families are elementwise, order, choice, dot" err
status=0
"$HONE" rules generate dot --max-candidates 3 2>err || status=$?
[[ $status == 5 ]]
grep -q "more than 3 different candidates" err

# Rules of other systems are verified as all others: one is true, one false, one of unknown ops.
printf '\x0a\x98\x01\x0a\x26\x08\x12\x12\x0d\x08\xff\xff\xff\xff\xff\xff\xff\xff' >>three.pb
printf '\xff\x01\x10\x00' >>three.pb
printf '\x12\x0d\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x00\x1a\x04\x08' >>three.pb
printf '\x09\x10\x00\x0a' >>three.pb
printf '\x1d\x08\x12\x12\x04\x08\x00\x10\x00\x12\x0d\x08\xfd\xff\xff\xff\xff\xff' >>three.pb
printf '\xff\xff\xff\x01' >>three.pb
printf '\x10\x00\x1a\x04\x08\x09\x10\x00\x12\x26\x08\x12\x12\x0d\x08\xfe\xff\xff' >>three.pb
printf '\xff\xff\xff\xff' >>three.pb
printf '\xff\xff\x01\x10\x00\x12\x0d\x08\xfd\xff\xff\xff\xff\xff\xff\xff\xff\x01' >>three.pb
printf '\x10\x00\x1a\x04' >>three.pb
printf '\x08\x09\x10\x00\x12\x1d\x08\x12\x12\x0d\x08\xff\xff\xff\xff\xff\xff\xff' >>three.pb
printf '\xff\xff\x01\x10' >>three.pb
printf '\x00\x12\x04\x08\x00\x10\x00\x1a\x04\x08\x09\x10\x00\x1a\x08\x08\x01\x10' >>three.pb
printf '\x01\x18\x00\x20' >>three.pb
printf '\x00\x0a\x5a\x0a\x26\x08\x12\x12\x0d\x08\xff\xff\xff\xff\xff\xff\xff\xff' >>three.pb
printf '\xff\x01\x10\x00' >>three.pb
printf '\x12\x0d\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x00\x1a\x04\x08' >>three.pb
printf '\x09\x10\x00\x12' >>three.pb
printf '\x26\x08\x12\x12\x0d\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x00' >>three.pb
printf '\x12\x0d\x08\xff' >>three.pb
printf '\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x00\x1a\x04\x08\x09\x10\x00\x1a' >>three.pb
printf '\x08\x08\x00\x10' >>three.pb
printf '\x00\x18\x00\x20\x00\x0a\x30\x0a\x11\x08\x60\x12\x0d\x08\xff\xff\xff\xff' >>three.pb
printf '\xff\xff\xff\xff' >>three.pb
printf '\xff\x01\x10\x00\x12\x11\x08\x60\x12\x0d\x08\xff\xff\xff\xff\xff\xff\xff' >>three.pb
printf '\xff\xff\x01\x10' >>three.pb
printf '\x00\x1a\x08\x08\x00\x10\x00\x18\x00\x20\x00' >>three.pb
"$HONE" rules import three.pb -o taso.rules --proofs taso.proofs --json taso.json >out 2>err
grep -Eq "^rule_0 +proved" out
grep -Eq "^rule_1 +guarded .*when A = 1" out
grep -Eq "^rule_2 +outside .*operator 96" out
grep -q "3 rules: 1 proved, 1 guarded, 0 shown, 0 rejected, 1 outside the ops of hone" err
grep -q '"result": "outside"' taso.json
"$HONE" rules check taso.rules taso.proofs 2>err
grep -q "2 certificates are good" err
head -c 40 three.pb >cut.pb
status=0
"$HONE" rules import cut.pb 2>err || status=$?
[[ $status == 3 ]]
grep -q "claims .*(cut.pb)" err
echo '(ewadd ?x ?y) => (ewadd ?y ?x)' >lines.txt
"$HONE" rules import lines.txt -o lines.rules >/dev/null 2>&1
"$HONE" rules export lines.rules good.rules -o again.txt 2>err
grep -q "twice: it has a guard" err
grep -q "1 of 2 rules are written" err
[[ $(cat again.txt) == "(ewadd ?x0 ?x1) => (ewadd ?x1 ?x0)" ]]
echo '(ewadd ?x' >lines.txt
status=0
"$HONE" rules import lines.txt 2>err || status=$?
[[ $status == 3 ]]
grep -q "lines.txt:1:" err

# The report tells which rules follow from others.
"$HONE" rules needed taso.rules lines.rules -o needed.rules >out 2>err
grep -Eq "^rule_0 +needed" out
grep -q "3 of 3 rules are needed, 0 follow from them" err
"$HONE" rules list needed.rules >/dev/null
