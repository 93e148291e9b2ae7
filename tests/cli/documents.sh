# The generated pages of docs/ are current; `./dev docs` writes them anew. tests/onnx/standard.sh
# checks docs/conformance.md, which takes longer.
"$HONE" ops --markdown | diff "$ROOT/docs/ops.md" -
"$HONE" ops --onnx --markdown | diff "$ROOT/docs/onnx-ops.md" -
"$HONE" ops --hlo --markdown | diff "$ROOT/docs/hlo-ops.md" -
"$HONE" help --markdown | diff "$ROOT/docs/cli.md" -
"$HONE" help --errors --markdown | diff "$ROOT/docs/errors.md" -
"$ROOT/tools/heuristics_table.sh" | diff <(grep '^| `' "$ROOT/docs/planner.md") -

# Each block of the other pages is run, or its fence says why not:
#   FILE.EXT           it becomes that file
#   (nothing)          it shows commands behind "$ " and what they print: below
#   sh                 commands; examples.sh runs them
#   sh by hand         commands that install things, need a checkout, or take hours
#   python, output     tests/python/documents.py runs it; what it prints
#   python|output of jax|torch|tensorflow
#                      the same where that package is installed: tests/python/of_documents.py
#   c|cpp|cmake part   of a program; hone's names in it exist
#   text               a form or what something looks like
fences='[a-z_]+\.[a-z]+|sh( by hand)?|(c|cpp|cmake) part|text'
fences+='|(python|output)( of (jax|torch|tensorflow))?'
generated='cli|errors|ops|onnx-ops|hlo-ops'
pages=$(cd "$ROOT" && ls README.md docs/*.md docs/formats/*.md)
for page in $(grep -vE "/($generated).md" <<<"$pages"); do
  awk -v page="$page" -v fences="^\`\`\`($fences)?\$" '
    function end_block() {
      if (fence == "```" && !is_shown) {
        printf "%s:%d: nothing runs this block, and its fence does not say why\n", page, begin
        failed = 1
      }
    }
    /^```/ {
      if (is_code) end_block()
      is_code = !is_code; is_shown = 0
      if (is_code) {
        fence = $0; begin = NR
        if (fence !~ fences) { printf "%s:%d: unknown fence\n", page, NR; failed = 1 }
      }
      next
    }
    is_code && /^\$ / { is_shown = 1 }
    END { exit failed }' "$ROOT/$page"
  # Parts of programs call functions that exist.
  awk '/^```/ { is_part = $0 ~ /^```(c|cpp) part$/ && !is_part; next } is_part' "$ROOT/$page" |
    sed 's|//.*||' | grep -oE '\b(hone_)?[a-z_]+\(' | tr -d '(' | sort -u |
    grep -vxE 'if|for|while|switch|move|make_shared|mlp_run|sizeof|printf|return' >calls || true
  while read -r call; do
    grep -rqwF -- "$call" "$ROOT/src" "$ROOT/examples" ||
      { echo "$page: there is no '$call'"; exit 1; }
  done <calls
done

# They show what hone prints. Each page is checked in a folder of its own:
#   - a block whose fence names a file (```layer.hone) becomes that file;
#   - in other blocks a line "$ COMMAND" is run, and the lines below it are all that it prints;
#   - "..." stands for anything within a line, and alone on a line for any number of lines;
#   - times, and how many kernels the plan for this processor has, are not compared;
#   - a command fails exactly if the page shows its "error:".
hone() { "$HONE" "$@"; }

# Writes the files of a page, and prints its commands with their output, each block ended by "$".
transcript_of() {
  awk '/^```/ {
      if (is_code && is_shown) print "$"
      is_code = !is_code; is_shown = 0; file = ""
      if (is_code && /^```.*\./) file = substr($0, 4)
      next
    }
    file != "" { print > file; next }
    is_code && /^\$ / { is_shown = 1 }
    is_code && is_shown && NF' "$1"
}

# The pattern of a line that a page shows.
pattern_of() {
  # shellcheck disable=SC2016  # what has a meaning in patterns
  sed -E 's/[][\.|$(){}?+*^]/\\&/g; s/\\\.\\\.\\\./.*/g
    s/[0-9]+(\\\.[0-9]+)? [mun]?s$/[0-9.]+ [a-z]+/
    s/^[0-9]+ kernels /[0-9]+ kernels? /' <<<"$1"
}

fail() {
  echo "$page: $*"
  echo "It prints:"
  cat said
  exit 1
}

# Ends the command before: all that it printed was shown.
end_command() {
  [[ $command ]] || return 0
  [[ $has_gap || $at == "${#lines[@]}" ]] || fail "'$command' also prints '${lines[at]}'"
  [[ $has_failed == "$shows_error" ]] || fail "'$command' ends with ${has_failed:-no error}"
}

run_command() {
  command=$1 at=0 has_gap='' shows_error='' has_failed=''
  eval "$command" >said 2>&1 </dev/null || has_failed=error
  mapfile -t lines < <(grep -v '^ *$' said)
}

# Finds a shown line: the next one that was printed, or a later one where "..." stands before it.
find_line() {
  local pattern
  pattern="^$(pattern_of "$1")\$"
  [[ $1 != *error:* ]] || shows_error=error
  while ((at < ${#lines[@]})); do
    [[ ${lines[at++]} =~ $pattern ]] && { has_gap=''; return; }
    [[ $has_gap ]] || break
  done
  fail "'$command' does not print '$1' here"
}

check_page() {
  local line command=''
  transcript_of "$1" >transcript
  while IFS= read -r line; do
    case $line in
      '$'*) end_command; command='' ;;&
      '$ '*) run_command "${line#\$ }" ;;
      '$') ;;
      ...) has_gap=1 ;;
      *) find_line "$line" ;;
    esac
  done <transcript
  end_command
}

for page in $pages; do
  mkdir -p "pages/$page"
  (cd "pages/$page" && export XDG_CACHE_HOME=$PWD/cache HONE_LOG=$PWD/log.db &&
    check_page "$ROOT/$page")
done

# Links between files of the repository lead somewhere.
(cd "$ROOT" && grep -oE ']\([^)#: ]+' ./*.md docs/*.md docs/formats/*.md) | sort -u >links
while IFS=: read -r page link; do
  [[ -e $ROOT/$(dirname "$page")/${link#*(} ]] || { echo "$page: no file ${link#*(}"; exit 1; }
done <links

# So do those to a heading of a page, or to a place with a name in it.
anchors_of() {
  awk '/^```/ { is_code = !is_code } !is_code && /^(#+ |<a id=)/' "$1" |
    sed -E 's/^#+ //; s/^<a id="(.*)".*/\1/; s/\[([^]]*)\]\([^)]*\)/\1/g' |
    sed -E 's/.*/\L&/; s/[^a-z0-9 _-]//g; s/ /-/g'
}
(cd "$ROOT" && grep -oE ']\([^)#: ]*#[^) ]+' ./*.md docs/*.md docs/formats/*.md) | sort -u >links
while IFS=: read -r page link; do
  file=${link#*(} heading=${link#*#}
  file=${file%%#*}
  file=${file:+$(dirname "$page")/$file}
  anchors_of "$ROOT/${file:-$page}" >anchors
  grep -qxF -- "$heading" anchors || { echo "$page: no place ${link#*(}"; exit 1; }
done <links

# The glossary is in alphabetical order.
sed -nE "s/^\| \*\*([a-zA-Z']+).*/\1/p" "$ROOT/docs/glossary.md" | LC_ALL=C sort -fc

# The commands, and the models of the zoo, that the pages name elsewhere exist.
# shellcheck disable=SC2086  # a list of words
pages=$(printf "$ROOT/%s " $pages)
# shellcheck disable=SC2086
awk '/^```/ { is_in = !is_in; is_code = is_in && !/^```output/ }
  is_code && /^hone [a-z]/ { print $2 }' $pages | sort -u |
  while read -r command; do
    "$HONE" help "$command" >/dev/null || { echo "docs: there is no command $command"; exit 1; }
  done
"$HONE" zoo list >listed
# shellcheck disable=SC2086
grep -Eho "(^hone zoo export |zoo:)[a-z0-9_]+" $pages | sed 's/.*[ :]//' | sort -u >models
[[ -s models ]]
while read -r model; do
  grep -q "^$model " listed || { echo "docs: there is no model $model"; exit 1; }
done <models
