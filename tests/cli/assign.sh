# One option per node: solved within limits, judged, and refused with the place.
source "$ROOT/tests/cli/expect.bash"
hone() { "$HONE" assign "$@"; }

cat >three.json <<'END'
{"problem": {"usage_limit": 10,
  "nodes": {"intervals": [[0,3], [1,4], [2,5]], "costs": [[4,9], [1,6], [0,2]],
            "usages": [[8,3], [6,2], [4,1]]},
  "edges": {"nodes": [[0,1], [1,2]], "costs": [[0,5,5,0], [0,3,3,0]]}}}
END
says "cost 17, bound 17, gap 0.000 %, the least" three.json
[[ $(<out) == "[1, 1, 1]" ]]
gzip -c three.json >three.json.gz
says "cost 17" three.json.gz -o solution.txt
[[ ! -s out && $(<solution.txt) == "[1, 1, 1]" ]]
says "cost 17" - --no-reduce --seconds 1 <three.json
says "cost 17; highest usage 6 of 10, at moment 2" three.json --check solution.txt
says "cost 17" three.json --from solution.txt --steps 10 --threads 1
# The message says how much is too much, and when.
echo "[0, 0, 0]" >full.txt
fails 1 "at moment 2 the 3 nodes alive use 18, 8 above the limit 10" three.json --check full.txt
sed 's/"usage_limit": 10/"usage_limit": 5/' three.json >tight.json
fails 1 "at moment 2 the 3 nodes alive use at least 6, 1 above the limit 5" tight.json -o none.txt
[[ ! -e none.txt ]]
# Errors have a place.
sed 's/\[8,3\]/[8,-3]/' three.json >bad.json
fails 3 "bad.json:3:27" bad.json
head -c 40 three.json.gz >cut.json.gz
fails 3 "cut.json.gz" cut.json.gz
echo "[0, 9, 0]" >wrong.txt
fails 3 "node 1: there is no option 9 among its 2" three.json --check wrong.txt
echo "[0]" >short.txt
fails 3 "1 options are given for 3 nodes" three.json --check short.txt
fails 3 "1 options for 3 nodes" three.json --from short.txt
fails 2 "--threads" three.json --threads 3
fails 2 "--seconds" three.json --seconds=-1
fails 2 "--check" three.json --check solution.txt --from solution.txt
# Other searches behind the same options.
for search in windows chain greedy random; do
  says "cost 17, bound " three.json --search $search --seconds 0 --steps 500
  [[ $(<out) == "[1, 1, 1]" ]]
done
fails 2 "'best' is not one of windows, chain, greedy, random" three.json --search best

# A larger one: the same seed gives the same, and Ctrl-C keeps the best so far.
awk 'BEGIN {
  srand(3)
  n = 300
  for (i = 0; i < n; ++i) {
    b = int(rand() * 90)
    iv = iv (i ? "," : "") "[" b "," b + 1 + int(rand() * 20) "]"
    c = u = ""
    for (x = 0; x < 6; ++x) {
      c = c (x ? "," : "") int(rand() * 1000)
      u = u (x ? "," : "") int(rand() * 50)
    }
    cs = cs (i ? "," : "") "[" c "]"
    us = us (i ? "," : "") "[" u "]"
    for (k = 1; k <= 2 && i >= k; ++k) {
      t = ""
      for (x = 0; x < 36; ++x) t = t (x ? "," : "") int(rand() * 1000)
      e = e (e ? "," : "") "[" i - k "," i "]"
      ts = ts (ts ? "," : "") "[" t "]"
    }
  }
  print "{\"problem\":{\"usage_limit\":800,\"nodes\":{\"intervals\":[" iv "],\"costs\":[" cs \
    "],\"usages\":[" us "]},\"edges\":{\"nodes\":[" e "],\"costs\":[" ts "]}}}"
}' >large.json
hone large.json --seconds 0 --steps 500 --seed 4 --threads 1 -o one.txt 2>err
hone large.json --seconds 0 --steps 500 --seed 4 --threads 2 -o two.txt 2>err
cmp one.txt two.txt
grep -Eq "^cost [0-9]+, bound [0-9]+, gap [0-9.]+ %; [0-9]+ steps, [0-9]+ sweeps$" err
hone large.json --check one.txt 2>err
rm err
"$HONE" assign large.json --seconds 0 --progress json -o best.txt >out 2>err &
until grep -qs '"start"' err; do sleep 0.05; done
sleep 1
kill -INT $!
code=0
wait $! || code=$?
[[ $code == 130 ]] || { echo "exit code $code"; cat err; exit 1; }
hone large.json --check best.txt 2>err
