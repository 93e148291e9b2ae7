# The check of English: each kind of fault is found, with its place, and limits only go down.
mkdir -p clone/tools clone/docs clone/src/cli clone/src/ir clone/tests
cp "$ROOT"/tools/english.* clone/tools/
cd clone || exit

limits() { # limits LONG OPENING SO_MANY IS_NO THAT_WHICH CELL
  printf '%-11s %-6s# a kind\n' long "$1" opening "$2" so-many "$3" is-no "$4" \
    that-which "$5" cell "$6" >tools/english.txt
}
places() { # places KIND: "FILE:LINE" of each
  tools/english.sh --list "$1" | sed -E 's/^([^:]*:[0-9]+): .*/\1/' | tr '\n' ' '
}
expect_places() { # expect_places KIND PLACES
  [[ $(places "$1") == "$2" ]] || { echo "$1: $(places "$1")instead of $2"; exit 1; }
}
words() { for ((i = 0; i < $1; i++)); do printf 'word '; done; } # words NUMBER

{
  echo '# What a heading says is not a sentence'
  echo
  echo "Thirty words are fine: $(words 26). One more is too many:"
  echo "$(words 27)."
  echo
  echo '- What follows is a list. A [link](that-which.md) and `so many` are not read.'
  echo '- By now it ends'
  echo '- What is a question?'
  echo
  echo '```'
  echo 'Of code nothing is read; so many words.'
  echo '```'
  echo
  echo '| column | text |'
  echo '|---|---|'
  printf '| ok | %0160d |\n' 0
  printf '| %0161d | Whether a cell is long |\n' 0
} >docs/page.md
cat >src/ir/graph.h <<'END'
#include "ir/of.h"  // That it is used is plain.
// A comment goes on in the next line. Of
// two lines.
int count = 0;  // so much
                // and more
int other = 0;  // another one
const char* text = "Of a string // nothing is read";
//   What is indented is an example.
END
cat >src/cli/rows_run.h <<'END'
    {.doc = "of a help text, "
            "which is no long one",
     .other = "there is no fault"},
END
cat >src/cli/run.cc <<'END'
print("That is read,\nof lines as they come");
print(R"(Those are not: that which is raw)");
END
mark='#'
printf '%s\n' "$mark!/bin/sh" "$mark It prints that which is given." "echo \$$mark" >tests/run.sh

expect_places long 'docs/page.md:3 '
pages='docs/page.md:6 docs/page.md:7 docs/page.md:17'
sources='src/cli/rows_run.h:1 src/cli/run.cc:1 src/ir/graph.h:1 src/ir/graph.h:2'
expect_places opening "$pages $sources "
expect_places so-many 'src/ir/graph.h:4 '
expect_places is-no 'src/cli/rows_run.h:1 '
expect_places that-which 'tests/run.sh:2 '
expect_places cell 'docs/page.md:17 '
[[ $(tools/english.sh --list opening docs/ | wc -l) == 3 ]]
[[ $(tools/english.sh --list all src/ir | wc -l) == 3 ]]

limits 1 7 1 1 1 1
tools/english.sh

# More than the limit, or fewer.
limits 0 8 1 1 1 1
if tools/english.sh 2>said; then exit 1; fi
grep -q '^long: 1 places, at most 0; ' said
grep -q '^opening: 7 places, the limit is 8; ' said
# A limit that would have to go up stays, and so do the others.
cp tools/english.txt before
if tools/english.sh --lower 2>said; then exit 1; fi
cmp tools/english.txt before
limits 9 9 9 9 9 9
tools/english.sh --lower
limits 1 7 1 1 1 1 && mv tools/english.txt before
limits 9 9 9 9 9 9 && tools/english.sh --lower
cmp tools/english.txt before
tools/english.sh
if tools/english.sh --raise 2>said; then exit 1; fi
