# Long lists run in parts: `./test` runs one of several parts, another one after each commit;
# `./dev sweep`, which sets HONE_SWEEP, runs all. Scripts begin with `source "$ROOT/tests/share.bash"`.

commit=$((16#$(git -C "$ROOT" rev-parse --short=7 HEAD 2>/dev/null || echo 1)))

in_share() { # in_share NUMBER PARTS: true if this run has the item of that number
  [[ ${HONE_SWEEP:-} ]] || ((($1 + commit) % $2 == 0))
}
