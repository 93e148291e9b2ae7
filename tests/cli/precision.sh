# ./dev bench precision, without its engines: a program answers for hone and for them.
command -v python3 >/dev/null || { echo "there is no python3"; exit 77; }
cat >fake <<'END'
#!/usr/bin/env bash
# Prints, or writes behind --json, as each command of hone does.
case "$1 $2" in
  "quantize zoo:squeezenet") echo "error: no budget" >&2; exit 1 ;;
  quantize\ *)
    if [[ "$*" == *--target* ]]; then
      line='multiplier = "cut", signed, 0.1 mW, 300 um2, ".*/tables/cut.npy"'
      grep -q "$line" chip.target || exit 3
      printf 'layer\nenergy   0.5 of that of exact products\nunseen   error 0.1\n'
      exit 0
    fi
    file=$(sed -nE 's/.*--json ([^ ]+).*/\1/p' <<<"$*")
    [[ $file ]] || exit 0
    level=$(sed -nE 's/.*--to ([^ ]+).*/\1/p' <<<"$*")
    right=0.9; [[ $level != w2 ]] || right=0.8
    echo '{"measured_f32": 0.004, "measured": 0.002,' \
      "\"unseen\": {\"error\": 0.005, \"right\": $right, \"right_f32\": 0.92}}" >"$file" ;;
  bench\ *)
    [[ "$*" != *openvino* ]] || { echo "error: there is no openvino" >&2; exit 4; }
    echo '{"seconds": {"median": 0.002}, "rival": {"ratio": 1.5}}' ;;
  "target show") printf 'target "x" {\n  cores = 2\n}\n' ;;
  *) ;;
esac
END
chmod +x fake
mkdir tables
printf 'name,kind,power,area\ncut,signed,0.1,300\nplain,unsigned,0.2,400\n' >tables/multipliers.csv
precision() {
  python3 -B "$ROOT/tools/precision/precision.py" --hone "$PWD/fake" --folder "$PWD/bench" "$@"
}

precision --quick --sections bytes,zoo,digits,energy --multipliers "$PWD/tables" >out
cat out
grep -Eq "^mobilenet_v3 +1 +2\.000 +1\.50$" out
grep -Eq "^mobilenet_v3 +2 +2\.000 +1\.50$" out
grep -Eq "^mobilenet_v3: OpenVINO: error: there is no openvino$" out
grep -Eq "^geometric mean +1\.50$" out
grep -Eq "^mlp +4\.000 +2\.000 +2\.00 +5\.0e-03$" out
grep -Eq "^squeezenet: error: no budget$" out
grep -Eq "^f32 +92\.00 %$" out
grep -Eq "^w4 +90\.00 % +2\.00 +2\.00$" out
grep -Eq "^w2 +80\.00 % +12\.00 +12\.00$" out
grep -Eq "^energy +0\.5 of that of exact products$" out
precision --sections energy >out
grep -q "^energy: left out" out
if precision --sections nosuch 2>err; then exit 1; fi
grep -q "there is no section 'nosuch'" err
