# hone report writes a page that shows a model, and says what failed.
source "$ROOT/tests/cli/expect.bash"
export HONE_LOG=$PWD/log.db
hone() { "$HONE" report "$@" --cache none --threads 1 --seconds 0.05; }

says "wrote page.html" zoo:mlp,size=tiny --alone -o page.html --json data.json
[[ ! -s out ]]
for part in summary sides graphs machine commands; do grep -q "\"$part\":" data.json; done
grep -q '"roofline"' page.html
grep -q '<title>zoo:mlp,size=tiny - hone report</title>' page.html
grep -qF "hone report zoo:mlp,size=tiny --output page.html" data.json
# It loads nothing: the only address is the name of SVG.
[[ $(grep -oE '(https?:|src=|url\()[^"]*' page.html | sort -u) == http://www.w3.org/2000/svg ]]
grep -q "the planner's own" data.json
# The headline says how long a run takes, and under which load.
grep -qE '"headline":\["A run takes [^"]* runs on 1 thread\.","The machine.s load was ' data.json
grep -q 'Its kernels and copies come to ' data.json
grep -q '"computes":"dot' data.json

# The page to the standard output, and no rival.
hone zoo:mlp,size=tiny --alone -o - >out 2>err
head -1 out | grep -q '^<!DOCTYPE html>$'
never grep -q "ONNX Runtime" err

# A run on the devices of a system is drawn, not measured.
cat >gathered.hone <<'END'
graph @gathered(%x: f32[8, 64], %w: f32[64, 32]) -> f32[32, 32] {
  %all = all_gather %x {axis = 0, group_size = 4}
  %y = dot %all, %w {lhs_contract = [1], rhs_contract = [0]}
  return %y
}
END
says "wrote page.html" gathered.hone --system ring:4 -o page.html --json data.json
grep -q '"devices":{"system":"ring:4","seconds":' data.json
grep -q '\["device 3",false,\[\["' data.json
grep -q '\["ring 0 > 1",true,\[\["' data.json
grep -q '"sides":\[\]' data.json
fails 3 "groups of 4" gathered.hone --system ring:3 -o page.html
# Devices divide a batch.
cat >mean.hone <<'END'
graph @mean(%x: f32[5, 64]) -> f32[5, 64] {
  %s = reduce %x {kind = sum, axes = [0]}
  %b = broadcast %s {dims = [5, 64], map = [1]}
  %y = sub %x, %b
  return %y
}
END
says "with 3 of 5 rows" mean.hone --devices 2 -o page.html --json data.json
grep -q '"devices":{"system":"local:2","seconds":' data.json
fails 2 "does not go with --devices" mean.hone --devices 2 --plan-seed 1 -o page.html
fails 2 "'ring:3' has 3 devices" mean.hone --devices 2 --system ring:3 -o page.html
fails 3 "missing.system" gathered.hone --system missing.system -o page.html

# Devices divide values: who holds what, each exchange with its reason, the memory of a device.
says "wrote page.html" mean.hone --mesh r=5 --shard 'x=[r, -]' -o page.html --json data.json
grep -q '"sharding":{"mesh":"r=5","devices":5,"seconds":' data.json
grep -q '\["%x","f32\[5, 64\]","\[r, -\]",1280,256\]' data.json
grep -q '\["all_reduce","%s","node ' data.json
grep -q '"devices":{"system":"local:5","seconds":' data.json
grep -q "shardingPart" page.html
fails 2 "needs devices" mean.hone --shard auto -o page.html

# Another plan is measured against the planner's.
"$HONE" compile zoo:mlp,size=tiny --cache none --threads 1 --emit plan -o mlp.plan 2>/dev/null
says "wrote" zoo:mlp,size=tiny --alone --plan mlp.plan -o page.html --json data.json
grep -q '"name":"the planner.s plan"' data.json

# Layers of an ONNX file, and names that would like to be more.
"$HONE" zoo export mlp --size tiny -o net.onnx 2>/dev/null
says "wrote" net.onnx --alone -o page.html --json data.json
grep -qE '"layers":\["[^"]+"' data.json
cat >evil.hone <<'END'
graph @"</script><script>alert(1)</script>"(%"<!--": f32[4]) -> f32[4] {
  %"\x01\xff\"><img src=x onerror=alert(2)>" = exp %"<!--"
  return %"\x01\xff\"><img src=x onerror=alert(2)>"
}
END
says "wrote" evil.hone --alone -o page.html --json data.json
never grep -qE '<script>alert|<img|<!--' page.html
grep -qF '\u003c/script>' page.html
grep -qF '\\xff' data.json

# Several segments: each graph that ran has its part.
cat >two.hone <<'END'
model @two(%x: f32[4]) -> (%y: f32[4]) {
  %a = run %x
    graph @first(%x: f32[4]) -> f32[4] {
      %h = exp %x
      return %h
    }
  %y = run %a
    graph @second(%x: f32[4]) -> f32[4] {
      %h = tanh %x
      return %h
    }
}
END
says "wrote" two.hone --alone -o page.html --json data.json
grep -q '"graph_count":2' data.json
grep -q '"name":"second"' data.json

# A failure is in the page, with what is known all the same; the exit code is that of the failure.
head -c 100 net.onnx >cut.onnx
fails 3 "cannot read the model" cut.onnx -o cut.html --json cut.json
grep -q '"what":"read the model"' cut.json
grep -q '"machine":{"name"' cut.json
never grep -q "hone bench" cut.json
grep -q 'Failed to' cut.html
cat >big.hone <<'END'
graph @big(%x: f32[1000000, 784000]) -> f32[1000000, 784000] {
  %y = exp %x
  return %y
}
END
fails 5 "cannot make inputs" big.hone -o big.html --json big.json
grep -q '"summary":{"name"' big.json
grep -q '"what"' big.html

# An error of the command line makes no page.
rm -f report.html
fails 2 "size" zoo:mlp,size=tiny,symbolic-batch
fails 3 "no such file" none.onnx
fails 3 "none.plan" zoo:mlp,size=tiny --plan none.plan
fails 2 "standard output" zoo:mlp,size=tiny -o - --json -
"$HONE" compile zoo:mlp,size=tiny --cache none -o net.honec 2>/dev/null
code=0
"$HONE" report net.honec 2>err || code=$?
[[ $code != 0 ]]
grep -q "honec" err
[[ ! -e report.html ]]
