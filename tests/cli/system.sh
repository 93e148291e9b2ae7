# Systems can be listed, printed, read back and asked for routes; bad ones are refused by name.
source "$ROOT/tests/cli/expect.bash"
"$HONE" system presets >list
grep -q "^ring:N " list
sed -n 's/^\([a-z]*\):.*/\1/p' list >names
[[ $(wc -l <names) == 6 ]]

"$HONE" target show --isa x86-64-v2 >my.target
while read -r name; do
  case $name in
    mesh | torus | tree) size=2x3 ;;
    *) size=6 ;;
  esac
  "$HONE" system show "$name:$size" --target my.target >my.system
  "$HONE" system show my.system | cmp - my.system
  "$HONE" system show my.system --from 5 >routes
  [[ $(wc -l <routes) == 6 ]]
  [[ $(awk 'NR > 1 { print $1 }' routes | paste -sd ' ') == "0 1 2 3 4" ]]
done <names
grep -q "isa = x86-64-v2$" my.system
"$HONE" system show local:2 | grep -q '^  devices = 2 of '

"$HONE" system show ring:4 >ring.system
edited() { sed "$1" ring.system >bad.system; }
edited 's/, 12 GB/, 0 GB/'
fails 3 "0 GB/s" system show bad.system
edited 's/axis x = 4/axis x = 3/'
fails 3 "bad.system:" system show bad.system
fails 3 "multiply to 3" system show bad.system
edited '/link ring/s/.*/  link ring = cable 0 to 4, full duplex, 1 GB\/s, 1 us/'
fails 3 "no device 4" system show bad.system
edited '/link ring/d'
fails 3 "no way leads from device 0 to device 1" system show bad.system
fails 3 "missing.system" system show missing.system
fails 5 "limit of 1048576" system show /dev/zero
fails 2 "'circle'" system show circle:8
fails 2 "the form is ring:N" system show ring:0
fails 2 "65536 devices" system show tree:1000x1000
fails 2 "no device 4" system show ring:4 --from 4
fails 2 "--target is for presets" system show ring.system --target my.target
fails 2 "SYSTEM" system show

# The time of a sum by each schedule, the best first.
"$HONE" system show ring:4 --target my.target --all-reduce 1000000 >sums
grep -qE '^(ring|two_rings)(, [248] pieces)? +[0-9.]+ [mu]s +[0-9.]+ GB/s$' <(sed -n 2p sums)
grep -q '^doubling ' sums
grep -q '^hierarchical of 2, 8 pieces ' sums
fails 2 "does not go with --from" system show ring:4 --all-reduce 8 --from 0
fails 2 "--all-reduce" system show ring:4 --all-reduce 0
fails 5 "256 devices" system show tree:16x16 --all-reduce 8

# Calibration: figures of one transport, and a system that can be read back.
"$HONE" system calibrate --transport threads --seconds 0.1 --devices 3 -o threads.system >out
grep -q "^transport .* worst error" out
grep -q "^threads .* GB/s" out
grep -q "^copies of memory: .* GB/s" out
"$HONE" system show threads.system | cmp - threads.system
grep -q '^  devices = 3 of ' threads.system
grep -q '^  link threads = star over all, full duplex, ' threads.system
"$HONE" system calibrate --transport threads --seconds 0.1 -o - >out
never grep -q "worst error" out
grep -q '^  link memory = bus over all, ' out
fails 2 "'smoke'" system calibrate --transport smoke
fails 2 "--seconds" system calibrate --seconds 0
fails 2 "--seconds" system calibrate --seconds 61

# Without -o the links are kept, and devices plan by them.
export HONE_PRICES=$PWD/prices
cat >sum.hone <<'END'
graph @sum(%x: f32[8, 128]) -> f32[128, 128] {
  %g = dot %x, %x {lhs_contract = [0], rhs_contract = [0]}
  return %g
}
END
"$HONE" run sum.hone --devices 2 -o before.npz 2>told
never grep -q "links measured" told
"$HONE" explain sum.hone --devices 2 --top 20 >before
says "--devices plans by the links of threads" system calibrate --transport threads --seconds 0.1
kept=$(echo prices/*.system)
"$HONE" system show "$kept" | grep -q '^  link threads = star over all, '
"$HONE" run sum.hone --devices 2 --expect before.npz --rtol 1e-5 2>told
grep -q "links measured on this machine, .*system" told
sed -i 's/\(star over all, full duplex\), .*/\1, 1 GB\/s, 1 s/' "$kept"
"$HONE" explain sum.hone --devices 2 --top 20 >after 2>/dev/null
grep -qE ", by price [0-9.]+ [mu]s" before
grep -qE ", by price [0-9.]+ s" after
echo "none" >"$kept"
says "measured links are not used" run sum.hone --devices 2
HONE_PRICES=/proc/none fails 3 "cannot be kept" system calibrate --seconds 0.1

# Or by a system that is said, whose products may be in steps.
cat >steps.hone <<'END'
graph @steps(%x: f32[256, 512], %w: f32[512, 512]) -> f32[512, 512] {
  %all = all_gather %x {axis = 0, group_size = 2}
  %y = dot %all, %w {lhs_contract = [1], rhs_contract = [0]}
  return %y
}
END
"$HONE" system show ring:2 | sed 's/\(link ring = .*duplex\), .*/\1, 0.2 GB\/s, 1 us/' >slow.system
"$HONE" run steps.hone --devices 2 --batch x -o whole.npz
says "is in steps by overlap" run steps.hone --devices 2 --batch x --system slow.system \
  --expect whole.npz --rtol 1e-4
"$HONE" check steps.hone --devices 2 --batch x --system slow.system >/dev/null
says "for 2 devices" compile sum.hone --devices 2 --system slow.system -o sum.honec
fails 2 "3 devices: 'ring:2' has 2" run steps.hone --devices 3 --batch x --system slow.system
fails 2 "a model needs --devices" run steps.hone --system slow.system
fails 2 "--system goes with --devices" compile sum.hone --system slow.system -o sum.honec
