# Data sets: built, gone on with, merged, split, and what is refused.
source "$ROOT/tests/cli/expect.bash"

fails 2 "-o names the folder" dataset build zoo:mlp
fails 2 "not a time" dataset build zoo:mlp -o set --budget soon
fails 3 "there is no file 'none.onnx'" dataset build none.onnx -o set
fails 2 "standard input" dataset build - -o set
fails 3 "none.db" dataset build zoo:mlp -o set --from none.db
fails 3 "data set" dataset inspect set
[[ ! -e set ]]

build_set zoo:mlp zoo:lstm,size=tiny -o set --kernels 2 --schedules 8
contains "^[12] programs, "
[[ -e set/log.db && -e set/programs.jsonl && -e set/dataset.json ]]
"$HONE" dataset inspect set >out
contains "^kind "
contains "^all "
contains "^zoo:mlp "
"$HONE" dataset inspect set --json - | grep -q '"zoo:mlp"'

# A second build has nothing to measure.
"$HONE" dataset build -o set --kernels 2 --schedules 8 >out 2>err
contains "^0 compiled, "

# A set is of one number of threads, and of one target.
fails 3 "one is of 1 threads, the other of 2" dataset build -o set --threads 2
cp -r set other
sed -i 's/"threads": 1/"threads": 2/' other/dataset.json
fails 3 "one is of 1 threads, the other of 2" dataset merge set other -o both
[[ ! -e both ]]
says "added" dataset merge set set -o both
"$HONE" dataset inspect set >one
"$HONE" dataset inspect both >two
cmp one two

# Plans that ran in turns are not dropped in silence.
mkdir other/plans
fails 2 "has plans that ran in turns, which are not merged" dataset merge set other -o three
fails 2 "--small makes sets of tasks of its own" dataset build --small --task plans -o small
[[ ! -e three && ! -e small ]]

# Data of another protocol, or without programs, is not dropped in silence.
cp -r set mixed
sed -i 's/protocol=1/protocol=9/' mixed/dataset.json
fails 3 "mixed/log.db, record" dataset inspect mixed
cp set/dataset.json mixed
rm mixed/programs.jsonl
fails 3 "it names no program, but the log has" dataset inspect mixed

# Splits.
printf 'train zoo:mlp\ntest zoo:mlp\n' >bad.split
fails 3 "the program 'zoo:mlp' is in train and in test" dataset split set --check bad.split
printf 'train zoo:mlq\n' >bad.split
fails 3 "did you mean 'zoo:mlp'" dataset split set --check bad.split
printf 'train zoo:mlp # all of it\n' >good.split
"$HONE" dataset split set --check good.split >out
contains "^train +1 "
fails 3 "cannot be split" dataset split set --validation 0.15
# Two families are enough to train with one and test with the other.
if "$HONE" dataset inspect set | grep -q '^zoo:lstm'; then
  says "none is for validation" dataset split set -o two.split
  [[ $(cut -d' ' -f1 two.split | sort | xargs) == "test train" ]]
  says "wrote" dataset export set -o parts --split two.split
fi

# Export.
says "wrote" dataset export set -o npz
files=(npz/*.npz)
[[ -e ${files[0]} ]]
fails 3 "is there already" dataset export set -o npz
says "columns that are lost: " dataset export set -o published --schema tpu
says "columns that are lost: " dataset export npz -o cut --schema tpu
for file in published/*.npz; do cmp "$file" "cut/${file#published/}"; done
fails 2 "--split is for data sets" dataset export npz -o no --split good.split
fails 3 "none.pb" dataset export none.pb -o pb
printf 'abc' >bad.pb
fails 3 "bad.pb" dataset export bad.pb -o pb
: >empty.pb
fails 3 "there are no timed runs in the 0 modules" dataset export empty.pb -o pb
[[ ! -e pb ]]
data=$ROOT/../shared/data/tpu
if [[ -e $data ]]; then
  says "wrote 15 " dataset export "$data/op_tuning_data.pb" -o tiles
  says "wrote 1 " dataset export "$data/module_tuning_data_layout.pb" -o layouts --features extended
else
  echo "there is no $data: its files are not converted"
fi

# Small sets: of every level of instructions, an archive within 2 MB, and about the time.
"$HONE" dataset build --small zoo:squeezenet --random-graphs 1 --budget 12s --each 1s -o small \
  >out 2>err
contains " in small$"
(($(tar czf - small | wc -c) <= 2000000))
for set in small/*-cold.set small/avx2.set; do [[ -e $set/dataset.json ]]; done
grep -q '"probe"' small/*-cold.set/dataset.json
grep -q 'cold=all' small/*-cold.set/dataset.json
