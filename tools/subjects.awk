# The rules for the subjects of commits: HASH SUBJECT per line. CONTRIBUTING.md explains them.

function complain(text) {
  printf "commit %s: %s: \"%s\"\n", substr(hash, 1, 12), text, subject
  faults++
}

BEGIN {
  count = split("add allow build call change check choose clean compare compute count cut declare " \
    "delete describe document drop explain extract find fix fold give improve introduce " \
    "join keep let list load make measure merge move name prefer print prove put read " \
    "reduce refactor refuse remove rename replace report return rewrite run say send set " \
    "show simplify skip sort speed split stop support take test try turn update use " \
    "verify write", verbs, " ")
  for (i = 1; i <= count; i++) {
    verb = verbs[i]
    stem = verb
    sub(/e$/, "", stem)
    last = substr(verb, length(verb))
    other[verb "s"] = other[verb "es"] = other[stem "ed"] = other[stem "ing"] = verb
    other[stem last "ed"] = other[stem last "ing"] = verb
    if (last == "y") other[substr(verb, 1, length(verb) - 1) "ies"] = \
      other[substr(verb, 1, length(verb) - 1) "ied"] = verb
  }
}

{
  hash = $1
  subject = substr($0, length(hash) + 2)
  first = tolower($2)
  if (length(subject) > 72) complain("the subject has " length(subject) " columns; at most 72")
  if (subject ~ /\.$/) complain("the subject ends in a period")
  if (first in other) complain("begin with the imperative '" other[first] "'")
}

END { exit faults > 0 }
