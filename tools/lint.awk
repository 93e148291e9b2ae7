# The rules behind tools/lint.sh. The first file is the table of floors, the second one the page with
# the table of places that assume a CPU. The rest is checked.

function complain(text) {
  printf "%s:%d: %s\n", FILENAME, FNR, text
  faults++
}

function top(path) {
  sub("/.*", "", path)
  return path
}

function check_size() {
  if (length($0) > 100) complain("the line has " length($0) " columns; at most 100")
  if (FNR == 1001) complain("the file has more than 1000 lines; split it by concept")
}

function check_include(path, quoted, prefix, to) {
  for (prefix in home)
    if (index(path, prefix) == 1 && folder != home[prefix])
      complain("only src/" home[prefix] " includes <" prefix "...>")
  if (!quoted) return
  to = top(path)
  if (!(to in floor) || to == path)
    complain("\"" path "\" is not FOLDER/FILE below src/; other people's headers are <quoted so>")
  else if (to != folder && floor[to] >= floor[folder])
    complain("src/" folder " may not include src/" to ": it is not on a lower floor")
}

function check_manners(code) {
  if (code ~ /std::(cout|cerr|clog)|fmt::(print|println)\(|(printf|puts|putc)\((stdout|stderr)/ ||
      code ~ /(^|[^[:alnum:]_.>:])(std::)?(v?printf|puts|putchar|perror)\(/)
    complain("the library never prints")
  if (code ~ /(^|[^[:alnum:]_.>:])(std::)?(exit|abort|_Exit|quick_exit)\(/)
    complain("the library never exits; return an Error or use HONE_CHECK")
  if (code ~ /(^|[^[:alnum:]_.>:])(std::)?(secure_)?getenv\(/)
    complain("the library never reads the environment")
}

# The op table says what an op is: a switch over opcodes is a second table beside it. Comparisons
# with single opcodes are counted; the limit only goes down.
BEGIN { most_comparisons = 73 }

function check_facts(code) {
  if (FILENAME ~ /^src\/(ir|front|lab\/tpu|zoo|codegen\/emit)\//) return
  if (code ~ /case Opcode::/)
    complain("a switch over opcodes; ask the op table for the fact: class_of, op_def(...).traits")
  comparisons += gsub(/[=!]= Opcode::/, "", code)
}

# An algorithm of kernels touches few files beside its own: winograd, the one with the most, on CPUs
# and GPUs together, at most nine. Apart stand the permission that conv has (ir, rewrite, search),
# faults that tests plant (base), and the features of other people's data sets.
BEGIN { most_files = 9 }

function check_spread(code) {
  if (tolower(code) !~ /winograd/ || FILENAME in names_winograd) return
  if (FILENAME ~ /^src\/(ir|rewrite|search|base|lab)\/|tile_graph|winograd/) return
  names_winograd[FILENAME]
  if (++files_of_winograd > most_files)
    complain("file " files_of_winograd " of the algorithm winograd, at most " most_files)
}

# Code outside of the rooms that are a CPU's by design knows nothing of one, apart from the places in
# the table of docs/adding.md.
function check_device(code) {
  if (FILENAME ~ /^src\/(codegen|runtime|target|cost|report)\// || folder in face) return
  if (FILENAME in assumes_cpu || FILENAME ~ /_(folds|kinds)\.def$/) return
  if (code ~ /(^|[^[:alnum:]_])(Isa|isa|Extension|ExtensionSet|fork_join)([^[:alnum:]_]|$)/ ||
      code ~ /target(_|\(\))?\.(caches|cores|extensions|instructions)/ ||
      code ~ /(^|[^[:alnum:]])(avx|amx_|sse4|__x86)/)
    complain("it assumes a CPU; list the file in docs/adding.md, 'A second kind of device'")
}

function check_comparisons() {
  if (comparisons <= most_comparisons) return
  printf "%d comparisons with single opcodes, at most %d; ask for a fact of src/ir/op_facts.h\n",
    comparisons, most_comparisons
  faults++
}

# Two types of one name are one type to the linker, which takes the destructor of either for both.
function check_names(code, name, where) {
  if (code ~ /^namespace .*\{$/ || code ~ /^namespace \{$/) {
    sub(/^namespace */, "", code)
    sub(/ *\{$/, "", code)
    inside[++depth] = code == "" ? "nobody" : code  # else's: of this file alone
    return
  }
  if (code ~ /^\}$/ && $0 ~ /^\}  \/\/ namespace/) {
    depth--
    return
  }
  if (code !~ /^(struct|class) [A-Z][A-Za-z0-9]* (final |: |\{)/) return
  split(code, words, " ")
  name = words[2]
  for (i = depth; i > 0; i--) {
    if (inside[i] == "nobody") return
    name = inside[i] "::" name
  }
  where = FILENAME ":" FNR
  if (name in defined) complain(name " is a type of " defined[name] ", too; give one another name")
  else defined[name] = where
}

FILENAME == ARGV[1] {
  sub("#.*", "")
  if ($1 == "only") for (i = 3; i <= NF; i++) home[$i] = $2
  else if ($1 == "faces") for (i = 2; i <= NF; i++) face[$i] = 1
  else for (i = 1; i <= NF; i++) floor[$i] = 1000 - FNR
  next
}

FILENAME == ARGV[2] {
  if (/^## /) is_devices = /A second kind of device/
  if (is_devices && /^\| `src\//) {
    split($0, cells, "|")
    while (match(cells[2], /`[^`]+`/)) {
      assumes_cpu[substr(cells[2], RSTART + 1, RLENGTH - 2)]
      cells[2] = substr(cells[2], RSTART + RLENGTH)
    }
  }
  next
}

FNR == 1 {
  folder = ""
  depth = 0
  if (FILENAME ~ /^src\/[^\/]+\//) {
    folder = FILENAME
    sub("^src/", "", folder)
    folder = top(folder)
    if (!(folder in floor)) complain("src/" folder " has no floor; add it to tools/floors.txt")
  }
}

{ check_size() }

folder == "" { next }

/^[[:space:]]*#[[:space:]]*include/ {
  path = $0
  sub(/^[^<"]*[<"]/, "", path)
  sub(/[>"].*/, "", path)
  check_include(path, $0 ~ /include[[:space:]]*"/)
  next
}

{
  code = $0
  sub("//.*", "", code)
  sub(/ +$/, "", code)
  check_names(code)
  check_facts(code)
  check_spread(code)
  check_device(code)
  if (!(folder in face)) check_manners(code)
}

END {
  check_comparisons()
  exit faults > 0
}
