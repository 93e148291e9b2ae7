# Scripts of this folder expect things of commands; they begin with `source
# "$ROOT/tests/cli/expect.bash"`. Standard output is left in `out`, standard error in `err`.

# The command that is tested. A script about one of them may say more: hone() { "$HONE" tune "$@"; }
hone() { "$HONE" "$@"; }

has_said() { # has_said WORDS COMMAND...: on standard error
  grep -qF -- "$1" err && return
  echo "hone ${*:2}: no '$1' in:"
  cat err
  return 1
}
says() { # says WORDS ARGS...
  local words=$1
  shift
  hone "$@" >out 2>err || { echo "hone $*: exit code $?"; cat err; return 1; }
  has_said "$words" "$@"
}
# A comparison that failed (1) may have printed it; other failures print nothing.
fails() { # fails CODE WORDS ARGS...
  local code=0 wanted=$1 words=$2
  shift 2
  hone "$@" >out 2>err || code=$?
  [[ $code == "$wanted" ]] || { echo "hone $*: exit code $code, not $wanted"; cat err; return 1; }
  [[ $code == 1 || ! -s out ]] || { echo "hone $*: a failure wrote to stdout"; return 1; }
  has_said "$words" "$@"
}
contains() { # contains PATTERN: a line of standard output
  grep -qE -- "$1" out || { echo "no '$1' in:"; cat out; return 1; }
}

# A command must not succeed: `! command` alone would not end a script.
never() { # never COMMAND...
  if "$@"; then
    echo "it succeeded: $*"
    return 1
  fi
}

# A System of a GPU and as many devices of this machine, which may be none.
system_with_gpu() { # system_with_gpu FILE GPUS CPUS
  local all=$(($2 + $3)) own
  "$HONE" target show >own.target 2>err
  own=$(sed -nE '1s/target (".*") \{/\1/p' own.target)
  {
    echo 'system "mixed" {'
    "$HONE" target show sm_90
    [[ $3 == 0 ]] || cat own.target
    echo "devices = $2 of \"sm_90\""
    [[ $3 == 0 ]] || echo "devices = $3 of $own"
    echo "level machine = $all devices"
    echo 'link pcie = bus over machine, 25 GB/s, 5 us'
    echo '}'
  } >"$1"
}

# A data set. A measurement that a busy machine spoils is measured again by the next build.
build_set() { # build_set ARGS of hone dataset build
  for _ in 1 2 3 4 5; do
    "$HONE" dataset build "$@" >out 2>err
    if grep -Eq '; ([0-9]+) of \1 wanted are done' out; then break; fi
  done
}

# Some kernels of a set that comes with hone, of another processor. It takes xz.
unpack_some() { # unpack_some NAME
  tar -xf "$ROOT/data/$1.tar.xz"
  grep -E '"zoo:(alexnet|gnmt|dlrm|bert_base)"' "$1.set/programs.jsonl" |
    awk -F'"' '++seen[$8] <= 3' >"$1.some"
  mv "$1.some" "$1.set/programs.jsonl"
}

# A log that has measured kernels of the model, for this processor and one thread. It has the plan
# of the file as its best one, 1.5x as fast as the default.
log_with_plan() { # log_with_plan LOG MODEL PLAN
  local target='' plan budget
  # On a busy machine a short budget may be over before anything is measured.
  for budget in 4s 20s 60s; do
    "$HONE" tune "$2" --cache none --threads 1 --budget $budget --only schedules --log "$1" \
      >out 2>err
    "$HONE" log export --log "$1" >out
    target=$(grep -oEm1 '"target":"0x[0-9a-f]+"' out) || continue
    break
  done
  plan=$(sed -e ':all' -e 'N; $!b all' -e 's/"/\\"/g; s/\n/\\n/g' "$3")
  printf '{"plan":{"graph":"%s",%s,"threads":1,"plan":"%s\\n","gain":1.5,"low":1.25,"high":1.75,%s}}\n' \
    "$(grep -oEm1 'hash 0x[0-9a-f]+' "$3" | cut -c6-)" "$target" "$plan" \
    '"version":"0.1.0","time":1700000000' | "$HONE" log import - --log "$1" 2>err
}
# A case of 'hone fuzz' that does not fail.
write_case() { # write_case FILE
  cat >"$1" <<'CASE'
case x86-64-v2 accurate
graph @main(%x: f32[2]) {
  %y = exp %x : f32[2]
  return %y
}
---- inputs
graph @inputs() {
  %0 = constant [1, 2] : f32[2]
  return %0
}
CASE
}
# The middle of the file is overwritten.
damage() { # damage LOG
  head -c 4096 /dev/zero | tr '\0' 'x' | dd of="$1" bs=4096 seek=1 conv=notrunc 2>/dev/null
}
