# Values for which ONNX has no result: computed on by default, named with --checked.

# y = Gather(x, i) of three floats.
base64 -d > gather.onnx <<'END'
CAg6SQoRCgF4CgFpEgF5IgZHYXRoZXISAWdaDwoBeBIKCggIARIECgIIA1oPCgFpEgoK
CAgHEgQKAggCYg8KAXkSCgoICAESBAoCCAJCBAoAEA0=
END

for backend in native reference; do
  run() { "$HONE" run gather.onnx --input x='3xf32=1 2 3' --backend "$backend" "$@"; }
  run --input i='2xi64=-1 7' > clamped.txt
  grep -q '3, 3' clamped.txt
  run --input i='2xi64=-1 0' --checked > good.txt 2> talk.txt
  grep -q 'y .*3, 1' good.txt
  grep -q 'no value is out of range in 1 checks' talk.txt
  status=0
  run --input i='2xi64=-1 7' --checked > bad.txt 2> talk.txt || status=$?
  [[ $status == 3 && ! -s bad.txt ]]
  grep -q "element 1 is 7, want an index in -3..3 - 1" talk.txt
  grep -q "(Gather)" talk.txt
done

status=0
"$HONE" run zoo:mlp,size=tiny --checked 2> talk.txt || status=$?
[[ $status == 2 ]]
grep -q 'ONNX file' talk.txt
