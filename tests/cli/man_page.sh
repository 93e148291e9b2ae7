# The page has all commands and options, and groff finds nothing to complain about.
"$HONE" man >hone.1
head -n 1 hone.1 | grep >/dev/null '^\.TH HONE 1'
for word in "hone zoo export" '\\-\\-numerics MODE' '\\-\\-print\\-changed' NO_COLOR; do
  grep -q -- "$word" hone.1
done
if command -v groff >/dev/null; then
  groff -man -Tascii -ww hone.1 >/dev/null 2>err
  [[ ! -s err ]] || { cat err; exit 1; }
fi
