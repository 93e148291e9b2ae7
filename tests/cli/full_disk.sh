# Output that could not be written is a failure.
[[ -e /dev/full ]] || { echo "skipped: there is no /dev/full"; exit 77; }
code=0
"$HONE" help >/dev/full 2>err || code=$?
[[ $code == 5 ]]
grep -q "cannot write to the standard output" err
