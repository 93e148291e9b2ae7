# Finds what makes English hard to read, in pages, comments and help texts. Prints, for each place,
# FILE:LINE: KIND: SENTENCE. tools/english.sh counts them.

BEGIN {
  split("of what that whether by those", words, " ")
  for (i in words) is_opening[words[i]] = 1
}

function found(kind, line, text) { printf "%s:%d: %s: %s\n", FILENAME, line, kind, text }

# ---- sentences ----------------------------------------------------------------------------------

function end_sentence(plain, first) {
  if (count == 0) return
  plain = " " tolower(sentence) " "
  gsub(/[^a-z0-9']+/, " ", plain)
  first = substr(plain, 2)
  sub(/ .*/, "", first)
  if (count > 30) found("long", begin, sentence)
  if (count > 1 && first in is_opening && (is_help || sentence ~ /^[("'*_]*[A-Z]/) &&
      sentence !~ /\?[)"'*_]*$/)
    found("opening", begin, sentence)
  if (plain ~ / so (many|much) /) found("so-many", begin, sentence)
  gsub(/ there is no /, " ", plain)
  if (plain ~ / is no /) found("is-no", begin, sentence)
  if (plain ~ / that which /) found("that-which", begin, sentence)
  sentence = ""
  count = 0
}

# Adds words to the sentence, and ends it where it ends.
function read(text, i, n) {
  gsub(/`[^`]*`/, "code", text)
  n = split(text, token, /[ \t]+/)
  for (i = 1; i <= n; i++) {
    if (token[i] == "") continue
    if (sentence == "") begin = FNR
    sentence = sentence (sentence == "" ? "" : " ") token[i]
    if (token[i] ~ /[A-Za-z0-9{]/) count++
    if (token[i] ~ /[.!?][)"'*_\]]*$/ && token[i] !~ /^(e\.g|i\.e|vs|cf|etc)\.$/) end_sentence()
  }
}

# ---- pages --------------------------------------------------------------------------------------

function read_row(row, i, n, cell) {
  if (row ~ /^[ |:-]+$/) return
  gsub(/\\\|/, "/", row)
  n = split(row, cell, "|")
  for (i = 2; i < n; i++) {
    gsub(/[\200-\277]/, "", cell[i])  # a character counts once
    gsub(/^ +| +$/, "", cell[i])
    if (length(cell[i]) > 160) found("cell", FNR, cell[i])
    read(cell[i])
    end_sentence()
  }
}

function read_page(line) {
  if (line ~ /^ *```/) {
    end_sentence()
    is_code = !is_code
    return
  }
  if (is_code) return
  gsub(/\]\([^)]*\)/, "]", line)
  if (line ~ /^ *(\||#+ |$)/) end_sentence()
  if (line ~ /^ *#+ /) return
  if (line ~ /^ *\|/) {
    read_row(line)
    return
  }
  if (sub(/^ *([-*]|[0-9]+\.) /, "", line)) end_sentence()
  read(line)
}

# ---- comments -----------------------------------------------------------------------------------

# A line of a comment. Indented lines are examples, except in a list.
function read_comment(line) {
  if (line ~ /^ *$/ || line ~ /----/) {
    end_sentence()
    is_list = 0
    return
  }
  if (sub(/^ *([-*]|[0-9]+\.) /, "", line)) {
    end_sentence()
    is_list = 1
  } else if (line ~ /^   / && !is_list) {
    end_sentence()
    return
  } else if (line ~ /^ ?[^ ]/ && is_list) {
    end_sentence()
    is_list = 0
  }
  read(line)
}

# A comment goes on in the next line if that has a comment alone, in the same column.
function take_comment(line, at, mark, is_alone) {
  if (at == 0) {
    if (column) end_sentence()
    column = 0
    return
  }
  is_alone = substr(line, 1, at - 1) ~ /^[ \t]*$/
  if (at != column || !is_alone) {
    end_sentence()
    is_list = 0
  }
  column = at
  read_comment(substr(line, at + length(mark)))
}

# Where the comment of a line of C++ begins; strings are not searched.
function find_comment(line, i) {
  if (!index(line, "//")) return 0
  gsub(/'\\?"'/, "'_'", line)
  while (match(line, /"([^"\\]|\\.)*"/)) {
    i = RLENGTH
    line = substr(line, 1, RSTART - 1) filling(i) substr(line, RSTART + i)
  }
  return index(line, "//")
}

function filling(n) {
  while (length(filler) < n) filler = filler "________________"
  return substr(filler, 1, n)
}

# ---- help texts ---------------------------------------------------------------------------------

# The strings of a line. Strings that follow one another, also on the next line, are one text.
function read_strings(line, text, rest, part) {
  rest = line
  gsub(/'\\?"'/, "'_'", rest)
  is_help = FILENAME ~ /(^|\/)(commands\.cc|rows_[a-z]*\.h)$/
  while (match(rest, /"([^"\\]|\\.)*"/)) {
    if (substr(rest, 1, RSTART - 1) !~ /^[ \t]*$/) end_sentence()
    text = substr(rest, RSTART + 1, RLENGTH - 2)
    rest = substr(rest, RSTART + RLENGTH)
    gsub(/\\"/, "\"", text)
    while (match(text, /\\n/)) {
      read(substr(text, 1, RSTART - 1))
      end_sentence()
      text = substr(text, RSTART + 2)
    }
    read(text)
  }
  if (rest !~ /^[ \t]*$/) end_sentence()
}

# True in a raw string, also in its first line.
function is_raw(line) {
  if (raw_end != "") {
    if (index(line, raw_end)) raw_end = ""
    return 1
  }
  if (!match(line, /R"[a-zA-Z]*\(/)) return 0
  raw_end = ")" substr(line, RSTART + 2, RLENGTH - 3) "\""
  if (index(substr(line, RSTART + RLENGTH), raw_end)) raw_end = ""
  return 1
}

# -------------------------------------------------------------------------------------------------

FNR == 1 {
  end_sentence()
  is_page = FILENAME ~ /\.md$/
  is_source = FILENAME ~ /\.(h|cc|c|def)$/
  has_help = FILENAME ~ /^src\/cli\//
  is_code = is_list = is_help = column = 0
  raw_end = ""
}

is_page {
  read_page($0)
  next
}

is_source {
  if (is_raw($0)) next
  at = find_comment($0)
  if (has_help && !column && !at && index($0, "\"") && $0 !~ /^#/) {
    read_strings($0)
    next
  }
  if (has_help && !at && !column) end_sentence()
  is_help = 0
  take_comment($0, at, "//")
  next
}

# Scripts. "#" after two spaces begins a comment; "$#" and "#!" begin none.
{
  at = 0
  if (index($0, "#") && $0 !~ /^#!/ && match($0, /^ *# |  # |^ *#$/))
    at = RSTART + RLENGTH - 1 - ($0 !~ /^ *#$/)
  take_comment($0, at, "#")
}

END { end_sentence() }
