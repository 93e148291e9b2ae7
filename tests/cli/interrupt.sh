# Ctrl-C ends long work soon, with its own exit code.
"$HONE" run zoo:vgg19,batch=8 >out 2>err &
sleep 1
kill -INT $!
code=0
wait $! || code=$?
[[ $code == 130 ]]
grep -q "^hone: error: " err
[[ ! -s out ]]
