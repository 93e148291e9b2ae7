# Each kind of failure has its exit code; all of it is said on stderr, with "hone: error:".
expect() { # expect CODE WORDS ARGS...
  local code=0 wanted=$1 words=$2
  shift 2
  "$HONE" "$@" >out 2>err || code=$?
  [[ $code == "$wanted" ]] || { echo "hone $*: exit code $code, not $wanted"; cat err; return 1; }
  [[ ! -s out ]] || { echo "hone $*: a failure wrote to stdout"; return 1; }
  grep -q "^hone: error: " err
  grep -qF -- "$words" err || { echo "hone $*: no '$words' in:"; cat err; return 1; }
}
expect 2 "there is no command 'rnu'" rnu
expect 2 "did you mean 'run'?" rnu
expect 3 "mlp.hone" mlp.hone  # a model alone: hone demo
expect 3 "missing.hone" run missing.hone
expect 3 "folder" inspect .
expect 2 "there is no model 'resnet81'" run zoo:resnet81
expect 5 "2.9 TiB" run zoo:mlp --input x=1000000x784000xf32=1
echo 'graph @f(' >bad.hone
expect 3 "bad.hone:2:1" inspect bad.hone
expect 2 "there is no pass 'fld'" opt zoo:mlp --pass fld
expect 2 "there is no op 'ad'" ops ad
expect 2 "needs one of list, export" zoo
