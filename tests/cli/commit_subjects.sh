# The rules for subjects of commits, which `./dev lint` checks.
subjects() { awk -f "$ROOT/tools/subjects.awk"; }

accept() {
  echo "1234567890abcdef $1" | subjects >said || { cat said; exit 1; }
}
refuse() {
  if echo "1234567890abcdef $1" | subjects >said; then
    echo "accepted: $1"
    exit 1
  fi
  grep -q "^commit 1234567890ab: $2" said || { cat said; exit 1; }
}

accept "Refuse an image whose loop has a negative stride"
accept "Extract Folding::fold_anew"
accept "String tables are sorted"  # no form of a verb in the list
accept "Address the arena by places"
accept "$(printf 'Add %068d' 0)"

refuse "$(printf 'Add %069d' 0)" "the subject has 73 columns; at most 72"
refuse "Fix the order of views." "the subject ends in a period"
for word in Adds Added Adding; do
  refuse "$word a pass" "begin with the imperative 'add'"
done
for word in Removes removed Removing; do
  refuse "$word a pass" "begin with the imperative 'remove'"
done
refuse "Fixes a crash" "begin with the imperative 'fix'"
refuse "Simplifies bounds" "begin with the imperative 'simplify'"
refuse "Splitting a file" "begin with the imperative 'split'"

# A repository without commits, and a folder that is none, have nothing to check.
mkdir -p clone/tools
cp "$ROOT"/tools/subjects.* clone/tools/
GIT_CEILING_DIRECTORIES=$PWD clone/tools/subjects.sh
cd clone || exit
git init --quiet .
tools/subjects.sh

commit() { git -c user.name=n -c user.email=e commit --quiet --allow-empty -m "$1"; }
commit "Added before"
if tools/subjects.sh >said; then exit 1; fi
git update-ref refs/remotes/origin/main HEAD
tools/subjects.sh
commit "Add a pass"
commit "Add a test"
tools/subjects.sh
commit "Fixes it"
if tools/subjects.sh >said; then exit 1; fi
[[ $(wc -l <said) == 1 ]]
