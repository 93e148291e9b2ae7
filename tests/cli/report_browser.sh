# Reports work in a browser: nothing fails, all marks are there, searching and folding work, wide
# and narrow, light and dark, and by keys alone (tests/report/page_test.js).
"$HONE" zoo export mobilenet_v2 --size tiny -o net.onnx 2>/dev/null
"$HONE" report net.onnx --cache none --threads 1 --seconds 0.05 --alone -o net.html 2>/dev/null
head -c 100 net.onnx >cut.onnx
"$HONE" report cut.onnx -o cut.html 2>/dev/null && exit 1
cat >sum.hone <<'END'
graph @sum(%x: f32[8, 64]) -> f32[8, 64] {
  %s = all_reduce %x {kind = sum, group_size = 4}
  return %s
}
END
"$HONE" report sum.hone --cache none --system ring:4 -o sum.html 2>/dev/null
"$ROOT/tests/report/check_page.sh" "$PWD/net.html" "$PWD/cut.html" "$PWD/sum.html"
