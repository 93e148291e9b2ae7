# Buffers are placed, or it is said why not.
source "$ROOT/tests/cli/expect.bash"
hone() { "$HONE" alloc "$@"; }

cat >m.csv <<'END'
id,lower,upper,size
b0,0,4,16
b1,2,6,8
b2,4,9,16
END
# Data goes to stdout, talk to stderr.
"$HONE" alloc m.csv --capacity 24 >out 2>err
[[ $(head -1 out) == "id,lower,upper,size,offset" && $(wc -l <out) == 4 ]]
grep -Eq "^3 buffers: height 24, bound 24, gap 0, capacity 24$" err
grep -Eq "^[0-9]+ nodes, [0-9]+ backtracks, [0-9]+ restarts in " err
# Without a capacity it is as low as it goes.
"$HONE" alloc m.csv -o placed.csv >out 2>err
[[ ! -s out ]]
grep -q "wrote placed.csv" err
grep -q "height 24, bound 24, gap 0$" err
"$HONE" alloc - --capacity 100 --minimize <m.csv 2>err | cmp - placed.csv
grep -q "height 24, bound 24, gap 0, capacity 100" err
# The order of the rows changes nothing.
{ head -1 m.csv; tail -n +2 m.csv | tac; } >tac.csv
"$HONE" alloc tac.csv 2>/dev/null | sort >out
sort placed.csv | cmp - out
# A placed buffer stays where it is.
"$HONE" alloc placed.csv 2>/dev/null | cmp - placed.csv
# Each technique can be left out.
for technique in $("$HONE" help alloc | grep -Eo "^ +--no-[a-z]+" | sed 's/.*--no-//'); do
  "$HONE" alloc m.csv --capacity 24 "--no-$technique" 2>/dev/null | grep -q "^b2,4,9,16,"
done
# Each space has its own capacity.
printf 'id,start,end,size,space\nx,0,1,8,\ny,0,1,4,1\n' >two.csv
"$HONE" alloc two.csv --capacity 8,4 2>err | grep -q "^y,0,1,4,1,0$"
grep -q "^space 0, 1 buffers: height 8, bound 8, gap 0, capacity 8$" err
grep -q "^space 1, 1 buffers: height 4, bound 4, gap 0, capacity 4$" err

# A drawing, and numbers as data.
"$HONE" alloc m.csv --capacity 24 --plot m.svg --json m.json -o placed.csv 2>err
grep -Eq "<title>b1: \[2, 6\), 8 bytes at (0|16)</title>" m.svg
grep -q '"verdict": "placed"' m.json
grep -q '"height": 24' m.json
"$HONE" alloc m.csv --plot - -o placed.csv 2>/dev/null | grep -q "^</svg>$"

# An answer may be: they do not fit, with the buffers and the time.
fails 1 "3 buffers do not fit together into the capacity 24: a, b, c; at moment 2 they use 30 " \
  - --capacity 24 --json out.json -o none.csv <<'END'
id,lower,upper,size
a,0,4,10
x,8,9,20
b,1,6,10
c,2,4,10
END
[[ ! -e none.csv ]]
grep -q '"verdict": "infeasible"' out.json
tr -d ' \n' <out.json | grep -q '"witness":\["a","b","c"\],"witness_moment":2'

# Malformed tables: the place and the column.
bad() { # bad TEXT WORDS ARGS...
  local text=$1
  shift
  printf '%b' "$text" >bad.csv
  fails 3 "$@" bad.csv -o none.csv
  [[ ! -e none.csv ]]
}
bad 'id,lower,upper\n' "there is no column 'size' (bad.csv:1:1)"
bad 'id,lower,upper,size\na,1,2,-3\n' "size: -3 is negative (bad.csv:2:7)"
bad 'id,lower,upper,size\na,1,2,99999999999999999999\n' "(bad.csv:2:7)"
bad 'id,lower,upper,size\na,0,1,4611686018427387904\nb,2,3,1\n' "a sum above 2^62 (bad.csv:3:7)"
bad 'id,lower,upper,size\na,5,2,3\n' "upper: 2 is before the begin, 5 (bad.csv:2:5)"
bad 'id,lower,upper,size\na,1,2,3\na,1,2,3\n' "id: 'a' is the one of line 2, too (bad.csv:3:1)"
bad 'id,lower,upper,size,alias\na,1,2,3,b\n' "alias: no buffer has the id 'b' (bad.csv:2:9)"
fails 1 "buffer 'b0': size 16 is above the capacity 15 (m.csv:2:8)" m.csv --capacity 15
fails 1 "buffer 'b2': 16 bytes at offset 8 end above the capacity 20" - --capacity 20 <<'END'
id,lower,upper,size,offset
b2,4,9,16,8
END
fails 3 "<stdin>:1:1" - </dev/null
fails 3 "missing.csv" missing.csv
fails 5 "limit of 536870912" /dev/zero

fails 2 "--capacity: '1k'" m.csv --capacity 1k
fails 2 "--capacity: '-1'" m.csv --capacity=-1
fails 2 "--capacity: ''" m.csv --capacity 1,
fails 2 "did you mean '--no-learned'" m.csv --no-learnt
fails 2 "--output and --plot both write to the standard output" m.csv --plot -
fails 2 "no folder" m.csv -o missing/m.csv
fails 2 "no folder" m.csv --plot missing/m.svg

# A deadline is an answer, too: the best so far is saved. Pieces that are cut from a rectangle fit
# into it, but who knows how, where some pieces are gone.
awk 'BEGIN {
  print "id,lower,upper,size"
  srand(1)
  t1[0] = s1[0] = 2 ^ 20
  for (n = 1; n < 3000;) {
    best = -1
    for (k = 0; k < 4; ++k) {
      i = int(rand() * n)
      area = (t1[i] - t0[i]) * (s1[i] - s0[i])
      if (area > best) { best = area; chosen = i }
    }
    i = chosen
    share = 0.2 + 0.6 * rand()
    t0[n] = t0[i]; t1[n] = t1[i]; s0[n] = s0[i]; s1[n] = s1[i]
    if (rand() < 0.5) t1[i] = t0[n] = int(t0[i] + share * (t1[i] - t0[i]))
    else s1[i] = s0[n] = int(s0[i] + share * (s1[i] - s0[i]))
    ++n
  }
  for (i = 0; i < n; ++i)
    if (i % 30 != 0) printf "b%d,%d,%d,%d\n", i, t0[i], t1[i], s1[i] - s0[i]
}' >hard.csv
fails 5 "2900 buffers: height " \
  hard.csv --deadline 0.01 -o best.csv --plot best.svg
[[ ! -s out && $(wc -l <best.csv) == 2901 && -s best.svg ]]
grep -q "wrote best.csv" err
grep -q "a longer --deadline may find a better one" err
# Where nothing was found yet, nothing is saved.
fails 5 "2900 buffers: no placement was found, bound " \
  hard.csv --deadline 0.01 --no-greedy -o none.csv --plot none.svg --json none.json
grep -q "no placement to save; a longer --deadline" err
[[ ! -e none.csv && ! -e none.svg ]]
grep -q '"verdict": "limit"' none.json
grep -q '"bound"' none.json
if grep -q '"height"' none.json; then echo "a height of nothing"; exit 1; fi
# A deadline of more years than a clock has is none.
"$HONE" alloc m.csv --capacity 24 --no-greedy --deadline 1e300 2>/dev/null | grep -q "^b2,4,9,16,"
# The complete search takes a limited number of buffers; for more, time is not what is missing.
awk 'BEGIN {
  print "id,lower,upper,size"
  for (i = 0; i < 5000; ++i) printf "b%d,%d,%d,%d\n", i, i, i + 3, 2 + i * i % 7
}' >many.csv
fails 5 "at most 4096 of a space" \
  many.csv --no-greedy -o none.csv
grep -q "5000 buffers: no placement was found, bound " err
if grep -q "deadline" err; then echo "a deadline where there is none:"; cat err; exit 1; fi

# So is Ctrl-C.
interrupted() { # interrupted ARGS...
  local code=0
  rm err
  "$HONE" alloc hard.csv --progress json "$@" >out 2>err &
  until grep -qs '"start"' err; do sleep 0.05; done
  sleep 0.3
  kill -INT $!
  wait $! || code=$?
  [[ $code == 130 ]] || { echo "exit code $code"; cat err; return 1; }
}
rm best.csv
interrupted -o best.csv
[[ $(wc -l <best.csv) == 2901 ]]
interrupted --no-greedy -o best.csv # also where nothing was found yet
