# The page has all commands and options, and groff finds nothing to complain about.
"$HONE" man >hone.1
head -n 1 hone.1 | grep >/dev/null '^\.TH HONE 1'
for word in "hone zoo export" '\\-\\-numerics MODE' '\\-\\-print\\-changed' NO_COLOR; do
  grep -q -- "$word" hone.1
done
# ENVIRONMENT has all variables that the faces read, and that of temporary folders.
sed -n '/^\.SH ENVIRONMENT/,$ s/^\.B //p' hone.1 | sort >listed
reads='getenv\("[A-Z_]+"|environ\.get\("[A-Z_]+"|_folder\("[A-Z_]+"'
grep -rhoE "$reads" "$ROOT/src" "$ROOT/python/hone" | grep -oE '[A-Z_]{2,}' >read
! grep -rq temp_directory_path "$ROOT/src" || echo TMPDIR >>read
sort -u read | diff listed -
if command -v groff >/dev/null; then
  groff -man -Tascii -ww hone.1 >/dev/null 2>err
  [[ ! -s err ]] || { cat err; exit 1; }
fi
