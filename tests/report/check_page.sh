#!/usr/bin/env bash
# check_page.sh PAGE...: looks at reports in a headless browser, wide and light, narrow and dark.
# Exits with 77 if there is none. Only pages of tests are opened, so that no sandbox is needed.
set -euo pipefail

browser=$(command -v chromium) || {
  echo "skipped: chromium is not installed"
  exit 77
}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The page with what collects faults before its own script, and what looks at it behind that.
with_test() {
  awk -v test="$here/page_test.js" '
    /^<head>$/ {
      print
      print "<script>const faults = [];"
      print "addEventListener(\"error\", event => faults.push(event.message));"
      print "addEventListener(\"securitypolicyviolation\", e => faults.push(e.violatedDirective));"
      print "console.error = text => faults.push(text);</script>"
      next
    }
    /^<\/body>$/ {
      print "<script>"
      while ((getline line < test) > 0) print line
      print "</script>"
    }
    1' "$1"
}

look() { # look SIZE SCHEME PAGE
  local code=0
  timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
    --user-data-dir="$work/profile" --host-resolver-rules="MAP * ~NOTFOUND" --window-size="$1" \
    --blink-settings=preferredColorScheme="$([[ $2 == dark ]] && echo 0 || echo 1)" \
    --virtual-time-budget=20000 --enable-logging=stderr --dump-dom "file://$work/page.html#$2" \
    >"$work/dom" 2>"$work/err" || code=$?
  [[ $code == 0 ]] && grep -q '<pre id="verdict">passed</pre>' "$work/dom" &&
    ! grep -q CONSOLE "$work/err" && return
  echo "$3, $1, $2: exit code $code"
  grep -o '<pre id="verdict">.*' "$work/dom" || echo "no verdict"
  grep CONSOLE "$work/err" || true
  return 1
}

for page in "$@"; do
  with_test "$page" >"$work/page.html"
  look 1400,1000 light "$page"
  look 500,900 dark "$page"
done
