# A signal in the middle of the work leaves a reproducer, and exits as other faults of hone do.
grep -q __asan_init "$HONE" && { echo "skipped: the sanitizer has these signals"; exit 77; }
ulimit -c 0
crash() { # crash CODE SIGNAL ARGS...: once the work has begun
  local code=0 waited=0 wanted=$1 signal=$2
  shift 2
  rm -rf out err hone-crash-*
  "$HONE" "$@" >out 2>err &
  until grep -Eqs '"start"|^begin' err out; do
    sleep 0.05
    ((++waited < 600)) || { echo "hone $*: no progress"; cat err; return 1; }
  done
  kill "-$signal" $!
  wait $! || code=$?
  [[ $code == "$wanted" ]] || { echo "hone $*: exit code $code"; cat err; return 1; }
}

for signal in SEGV BUS FPE ILL ABRT; do
  crash 6 $signal compile zoo:resnet50 --cache none --emit asm --progress json
  grep -q "^hone: error: ended by SIG$signal" err
  folder=$(sed -n 's/^hint: this is a fault of hone.* the folder //p' err)
  [[ $folder == "$PWD"/hone-crash-* ]]
  grep -q "^ended by SIG$signal" "$folder/report.txt"
  grep -qxF "hone compile zoo:resnet50 --cache none --emit asm --progress json" "$folder/command.sh"
  grep -q "^graph @resnet50" "$folder/graph.hone"
done

# Whoever runs cases in child processes sees the signal, and saves the case.
crash 139 SEGV fuzz-cases --seed 1 --count 100000
[[ -z $(compgen -G 'hone-crash-*') ]]
