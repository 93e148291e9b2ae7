# --trace writes events that a viewer of traces reads, of compiling and of runs.
source "$ROOT/tests/cli/expect.bash"
model=zoo:mlp,size=tiny

# tells TRACE CATEGORY...: the file is JSON, and has events of each category and of no other.
tells() {
  python3 - "$@" <<'PY' || { echo "in $1"; head -c 3000 "$1"; return 1; }
import json, sys
trace = json.load(open(sys.argv[1]))
events = [one for one in trace["traceEvents"] if one["ph"] == "X"]
found = {one["cat"] for one in events} - {"copy"}
assert found == set(sys.argv[2:]), found
named = {one["tid"] for one in trace["traceEvents"] if one["name"] == "thread_name"}
for one in events:
    assert one["ts"] >= 0 and one["dur"] >= 0 and one["name"] and one["tid"] in named, one
if "launch" in sys.argv:
    runs = [one for one in events if one["cat"] == "command" and one["name"].startswith("run")]
    inside = lambda a, b: b["ts"] <= a["ts"] + 1 and a["ts"] + a["dur"] <= b["ts"] + b["dur"] + 1
    for one in events:
        if one["cat"] == "launch":
            assert any(inside(one, run) for run in runs), one
PY
}

says "wrote t.json, for ui.perfetto.dev" run "$model" --threads 1 --cache none --trace t.json
tells t.json command stage compile launch
grep -q '"layers":"' t.json
says "wrote c.json" compile "$model" --cache none --trace c.json
tells c.json command stage compile
says "wrote b.json" bench "$model" --cache none --seconds 0.1 --trace b.json
tells b.json command stage compile launch
[[ $(grep -o '"name":"run [0-9]*"' b.json | sort -u | wc -l) == 10 ]]

# Compiled models: how they are made, and runs without a compiler.
says "wrote m.json" compile "$model" --cache none --isa all -o m.honec --trace m.json
tells m.json command stage compile
says "wrote h.json" run m.honec --trace h.json
tells h.json command launch
says "wrote d.json" bench m.honec --seconds 0.1 --trace d.json
tells d.json command launch

# Inputs that are given up; and a model of several segments, of which each is launched.
says "wrote f.json" bench zoo:gpt2_decode,size=tiny --donate --cache none --seconds 0.1 \
  --trace f.json
tells f.json command stage compile launch
cat >loop.hone <<'MODEL'
model @loop(%trips: i64[], %start: f32[]) -> (%end: f32[]) {
  %yes = run graph @initial() {
    %0 = constant true : bool[]
    return %0
  }
  %end = loop trip %trips while %yes with %state = %start {
    %next, %more = run %state graph @step(%s: f32[]) {
      %n = add %s, %s
      %more = compare %n, 100 {direction = lt}
      return %n, %more
    }
    yield %next while %more
  }
}
MODEL
says "wrote l.json" run loop.hone --input trips=i64=3 --input start=f32=5 --cache none \
  --trace l.json
tells l.json command stage compile launch

fails 2 "--trace is for native code" run "$model" --backend reference --trace t2.json
fails 2 "no folder" run "$model" --trace missing/t.json
fails 2 "--trace writes a file" compile "$model" --trace -
[[ ! -e t2.json ]]
