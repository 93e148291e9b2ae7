# The cache of what was compiled is listed, checked and emptied, wherever it is.
source "$ROOT/tests/cli/expect.bash"

# The user's own that is not there is empty, and looking does not make it. One that is named has to
# be there.
XDG_CACHE_HOME=$PWD says "0 entries" cache ls
XDG_CACHE_HOME=$PWD says "0 entries in $PWD/hone are good" cache verify
XDG_CACHE_HOME=$PWD says "kept 0 entries" cache gc
for command in ls verify gc; do
  fails 3 "there is no folder 'here'" cache $command --cache here
done
[[ ! -e here && ! -e hone ]]

# The default folder.
XDG_CACHE_HOME=$PWD/xdg says "in $PWD/xdg/hone" cache ls
XDG_CACHE_HOME=relative HOME=$PWD/home says "in $PWD/home/.cache/hone" cache ls
XDG_CACHE_HOME='' HOME='' fails 2 "name one with --cache" cache ls

# Other files stay; a file that looks like an entry and is not one is removed.
mkdir -m 700 here
bad=here/0123456789abcdef0123456789abcdef.entry
echo "no object" >"$bad"
echo "a note" >here/README
"$HONE" cache ls --cache here 2>/dev/null | grep -q "0123456789abcdef0123456789abcdef"
fails 1 "1 entries were damaged" cache verify --cache here
grep -q "removed 0123456789abcdef0123456789abcdef: it has 10 bytes" out
says "0 entries in here are good" cache verify --cache here
echo "no object" >"$bad"
says "removed 0 files, kept 1 entries" cache gc --cache here
says "removed 1 files, kept 0 entries" cache gc --cache here --limit 0
[[ ! -e $bad && -e here/README ]]

# Plans and kernels are made once; plans that are drawn are not kept.
count() { # count WORDS
  "$HONE" cache ls --cache made 2>/dev/null | grep -cF -- "$1" || true
}
compile() { "$HONE" compile zoo:mlp,size=tiny --cache made "$@" 2>err; }
compile --plan-seed 1 --stop-after plan >out
[[ $(count "plan @") == 0 ]]
compile --emit plan >first
[[ $(count "plan @mlp") == 1 && $(count "kernel ") == 0 ]]
compile >out
kernels=$(count "kernel ")
((kernels > 1))
grep -Eq "^$kernels kernels in [0-9.]+ [a-z]+$" err
compile --emit plan >second
compile >out
grep -Eq "^$kernels kernels, all from the cache, in [0-9.]+ [a-z]+$" err
cmp first second
rm "made/$("$HONE" cache ls --cache made 2>err | awk '/ kernel / { print $1; exit }').entry"
compile >out
grep -Eq "^$kernels kernels, $((kernels - 1)) from the cache, in [0-9.]+ [a-z]+$" err
[[ $(count "plan @mlp") == 1 && $(count "kernel ") == "$kernels" ]]
compile --threads 1 --stop-after plan >out
[[ $(count "plan @mlp") == 2 ]]
# A damaged entry is made anew.
for entry in made/*.entry; do
  printf 'x' | dd of="$entry" bs=1 seek=70 conv=notrunc 2>/dev/null
done
compile --emit plan >second
cmp first second
compile >out
[[ $(count "plan @mlp") == 2 && $(count "kernel ") == "$kernels" ]]

# A folder that takes no entries costs time, and is said once.
folder=/proc/cache
"$HONE" run zoo:mlp,size=tiny --cache $folder >out 2>err
[[ $(grep -c "is not kept: .*$folder" err) == 1 && -s out ]]
HOME=$folder XDG_CACHE_HOME='' "$HONE" compile zoo:mlp,size=tiny >out 2>err
[[ $(grep -c "is not kept: .*$folder" err) == 1 && -s out ]]

# Whoever may write to the folder decides what code runs. hone makes its own for the user alone.
(umask 002 && "$HONE" compile zoo:mlp,size=tiny --cache own >out 2>err)
[[ $(stat -c %a own) == 700 ]]
for mode in 777 770 707; do
  chmod $mode here
  fails 3 "its group or others may write to it" cache ls --cache here
  grep -qF "chmod go-w 'here'" err
done
mkdir -p -m 770 xdg/hone
XDG_CACHE_HOME=$PWD/xdg says "chmod go-w '$PWD/xdg/hone'" compile zoo:mlp,size=tiny
[[ -s out && -z $(ls xdg/hone) ]]
chmod go-w here
says "in here" cache ls --cache here
fails 3 "folder" cache ls --cache err
fails 2 "needs one of ls, verify, gc" cache
