# Every command's help has examples, and each of them does what it shows: it is run in a folder that
# has the files that examples speak of. Long ones are cut: models are tiny, budgets a second. So are
# the commands of pages, in blocks whose fence says sh; documents.sh tells of the other blocks. A
# run takes a tenth of the commands and of the pages, `./dev sweep` all.
source "$ROOT/tests/cli/expect.bash"
source "$ROOT/tests/share.bash"
# shellcheck source=tests/cli/examples.bash
source "$ROOT/tests/cli/examples.bash"
root=$PWD
mkdir given bin
ln -s "$HONE" bin/hone
export PATH=$root/bin:$PATH XDG_CACHE_HOME=$root/cache
export HONE_LOG=$root/given/log.db HONE_PRICES=$root/given/prices
(cd given; make_models; make_measured; make_learned; make_rest) >made 2>&1 &
wait $! || { cat made; exit 1; }
kernel=$(sed -nE '/.*"kind":"kernel","subject":"(0x[0-9a-f]+).*/ { s//\1/p; q }' given/log.jsonl)
[[ $kernel ]] || { echo "no kernel in the log"; cat made; exit 1; }

# An example becomes the same command with the same options, cut short.
shortened() { # shortened EXAMPLE
  sed -E "
    s/zoo:([a-z0-9_]+)( |,symbolic|\$)/zoo:\1,size=tiny\2/
    s/build zoo /build zoo:mlp,size=tiny /
    s/train cost --budget/train cost set --budget/
    s/(zoo export [a-z0-9_]+)/\1 --size tiny/
    s/--budget [0-9]+[smh]/--budget 1s/
    s/--count [0-9]{2,}/--count 5/
    s/--at-least [0-9]+/--at-least 0/
    s/--deadline [0-9]+/--deadline 1/
    s/--splits [0-9]+/--splits 1/
    s/--seconds [0-9.]+/--seconds 0.1/
    s/log show 17/log show 1/
    s/0x9c2b5e3f00d1a764/$kernel/
    /^hone (tune|calibrate|dataset build)/ { /--budget/! s/\$/ --budget 1s/ }
    /^hone (bench|compare|report|target probe)/ { /--seconds|--baseline/! s/\$/ --seconds 0.1/ }
    s/--fail-below [0-9.]+/--fail-below 0.01/
    /^hone system calibrate/ s/\$/ --seconds 0.1/
    /^hone (compare|explain) .* log/ { /--threads/! s/\$/ --threads 1/ }
    /^hone dataset build/ { s/--kernels [0-9]+//; s/\$/ --kernels 2 --schedules 4/ }
    /^hone (train cost|eval [^p])/ s/\$/ --members 2 --epochs 1/
    /^hone eval price/ s/\$/ --members 2 --epochs 1 --parts 2 --seconds 1/
    /^hone train layout/ s/\$/ --epochs 1/
    /^hone worker/ s/--listen [0-9.:]+/--listen 0/
    /^hone worker/ s/.*/timeout -s INT 1 & || [[ \$? == 124 ]]/
    /^hone conformance/ { /--filter/! s/\$/ --filter '*relu*'/ }
    s/--filter '\*conv\*'/--filter '*basic_conv*'/
  " <<<"$1"
}

doctor=$("$HONE" doctor 2>/dev/null)
# The worker of my.hosts.
"$HONE" worker --listen 0 --secret given/my.secret >listens 2>served &
trap "kill $!" EXIT
until [[ -s listens ]]; do sleep 0.05; done
sed 's/^listens at \(.*\)/\1 1/' listens >given/my.hosts

# Says what an example needs and this machine lacks.
lacking() { # lacking EXAMPLE
  case $1 in
    *"--device cuda"*) [[ $doctor != *"models run on the CPU"* ]] || echo "GPU" ;;
    *op_tuning_data.pb*) [[ -e op_tuning_data.pb ]] || echo "data of TpuGraphs" ;;
    *"hone conformance"*) [[ -e $standard ]] || echo "the package libonnx-testdata" ;;
    *"--emit library"*) command -v cc >/dev/null || echo "a C compiler" ;;
    *zen3.set*) [[ -e zen3.set ]] || echo "xz" ;;
    *"gcc "*) command -v gcc >/dev/null || echo "gcc" ;;
    *module_tuning*.pb*) [[ -e module_tuning_data_layout.pb ]] || echo "layouts of TpuGraphs" ;;
    *"| man"*) man -w man >/dev/null 2>&1 || echo "the program man" ;;
    *onnxruntime* | *"--vs best"*)
      [[ $doctor != *"ONNX Runtime  not found"* ]] || echo "ONNX Runtime"
      ;;
  esac
}

run_example() { # run_example EXAMPLE
  local line missing code=0
  missing=$(lacking "$1")
  [[ ! $missing ]] || { echo "skipped, for there is no $missing: $1"; return; }
  files_for "$1"
  line=$(shortened "$1")
  HOME=$PWD HONE_LOG=$PWD/log.db HONE_PRICES=$PWD/prices \
    timeout 300 bash -euo pipefail -c "$line" >said 2>&1 </dev/null || code=$?
  [[ $code == 0 ]] && return
  printf 'an example ends with %s: %s\nas: %s\n' "$code" "$1" "$line"
  cat said
  return 1
}

# The examples of a command, in order, in a folder of their own.
check_command() { # check_command NAME
  local example examples=()
  # shellcheck disable=SC2086  # a group and its member are two words
  mapfile -t examples < <("$HONE" $1 --help |
    sed -n '/^Examples$/,/^$/ { /^  [^#]/ s/^  //p }')
  [[ ${#examples[@]} -gt 0 ]] || { echo "the help of 'hone $1' has no example"; return 1; }
  cp -a "$root/given" "$root/run"
  cd "$root/run"
  for example in "${examples[@]}"; do
    run_example "$example" || return 1
  done
  cd "$root"
  rm -rf run
}

"$HONE" --help | sed -n '/^Commands$/,/^$/ s/^  \([a-z]\+\( [a-z]\+\)\?\)  .*/\1/p' >commands
[[ $(wc -l <commands) -gt 40 ]]

# The commands of a page, in order, in a folder of their own.
check_page() { # check_page FILE
  local line lines=()
  mapfile -t lines < <(awk '/^```/ { is_sh = $0 == "```sh" && !is_sh; next } is_sh && NF' "$1")
  [[ ${#lines[@]} -gt 0 ]] || return 0
  cp -a "$root/given" "$root/run"
  cp "$ROOT"/examples/*.c "$root/run"
  cd "$root/run"
  # A block whose language is the name of a file is that file.
  awk '/^```/ {
      name = !inside && /^```[a-z]+[.][a-z]+$/ ? substr($0, 4) : ""
      inside = !inside
      next
    }
    name { print >name }' "$1"
  for line in "${lines[@]}"; do
    run_example "$(sed 's/ *#.*//' <<<"$line")" || { echo "of ${1#"$ROOT"/}"; return 1; }
  done
  cd "$root"
  rm -rf run
}
failed=''
check_command '' || failed=1
number=0
while read -r command; do
  in_share "$((number++))" 10 || continue
  began=$SECONDS
  (check_command "$command") || { failed=1; rm -rf run; }
  ((SECONDS - began < 8)) || echo "$((SECONDS - began)) s: hone $command"
done <commands
check_page "$ROOT/README.md" || failed=1
for page in "$ROOT"/docs/*.md "$ROOT"/docs/formats/*.md; do
  in_share "$((number++))" 10 || continue
  began=$SECONDS
  (check_page "$page") || { failed=1; rm -rf run; }
  ((SECONDS - began < 8)) || echo "$((SECONDS - began)) s: ${page#"$ROOT"/}"
done
[[ ! $failed ]]
