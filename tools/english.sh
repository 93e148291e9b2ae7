#!/usr/bin/env bash
# Counts places that are hard to read, and compares the counts with the limits in english.txt.
#   tools/english.sh              fails if a count is above its limit or below it
#   tools/english.sh --lower      lowers the limits to the counts
#   tools/english.sh --list [KIND] [PATH]   names places: of KIND or all, below PATH
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C
limits=tools/english.txt

# docs/cli.md and docs/errors.md are made of strings of src/cli, which are read there.
files() {
  {
    find docs -name '*.md' ! -path docs/cli.md ! -path docs/errors.md
    find . -maxdepth 1 '(' -name README.md -o -name CONTRIBUTING.md ')' -printf '%f\n'
    find src tests tools -type f '(' -name '*.h' -o -name '*.cc' -o -name '*.c' -o -name '*.def' \
      -o -name '*.sh' -o -name '*.bash' -o -name '*.awk' -o -name '*.py' ')'
  } | sort
}

places() { files | xargs awk -f tools/english.awk; }

list() { # list [KIND] [PATH]
  places | awk -v kind="${1:-}" -v path="${2:-}" '
    (kind == "" || kind == "all" || $2 == kind ":") && index($0, path) == 1'
}

# Says where a count is not its limit. With --lower, prints the table with lower limits.
compare() { # compare [--lower]
  places | awk -v lower="${1:-}" '
    NR == FNR { count[substr($2, 1, length($2) - 1)]++; next }
    /^ *(#|$)/ { if (lower) print; next }
    count[$1] + 0 > $2 + 0 {
      printf "%s: %d places, at most %d; tools/english.sh --list %s names them\n", \
        $1, count[$1], $2, $1 >"/dev/stderr"
      failed = 1
    }
    count[$1] + 0 < $2 + 0 {
      if (lower) sub(/[0-9]+ */, sprintf("%-6d", count[$1]))
      else {
        printf "%s: %d places, the limit is %d; lower it by tools/english.sh --lower\n", \
          $1, count[$1], $2 >"/dev/stderr"
        failed = 1
      }
    }
    lower { print }
    END { exit failed }' - "$limits"
}

case ${1:-} in
  '') compare ;;
  --lower)
    compare --lower >"$limits.new" || { rm "$limits.new"; exit 1; }
    mv "$limits.new" "$limits"
    ;;
  --list) list "${@:2}" ;;
  *)
    echo "usage: tools/english.sh [--lower | --list [KIND] [PATH]]" >&2
    exit 2
    ;;
esac
