#!/usr/bin/env bash
# tools/first_run.sh [MODEL]: how long a newcomer waits. Clones this checkout into an empty folder
# of a user with empty caches, and times each part of `./run MODEL` up to its table, then
# `pip install .` and `import hone`. Takes as long as a whole build. Packages that the machine has
# count as 0 s: for all of it, run this in a bare root (debootstrap).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

model=${1:-zoo:resnet18}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/home"
clone=$scratch/hone

alone() { # alone COMMAND...: as a user whose home and caches are empty
  env -i HOME="$scratch/home" PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 CCACHE_DISABLE=1 "$@"
}
in_clone() { (cd "$clone" && alone "$@"); }
# shellcheck disable=SC2016  # for the shell of the clone
part_of_run() { in_clone bash -c 'source tools/common.sh; "$@"' bash "$@"; }

total=0
timed() { # timed WORDS COMMAND...
  local words=$1 start=$EPOCHREALTIME took
  shift
  "$@" >"$scratch/out" 2>&1 || { cat "$scratch/out" >&2; die "failed: $*"; }
  took=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
  total=$(awk -v a="$total" -v b="$took" 'BEGIN { printf "%.1f", a + b }')
  printf '%-44s %9s s\n' "$words" "$took"
}

timed "git clone" git clone --quiet "$root" "$clone"
timed "packages" part_of_run install_dependencies
timed "configure" part_of_run build release help
timed "build of the binary" part_of_run build release hone_binary
timed "./run $model" in_clone ./run "$model"
awk -v s="$total" 'BEGIN { printf "%-44s %9.1f s, %.1f minutes\n", "to the table", s, s / 60 }'
tail -5 "$scratch/out"
timed "python3 -m venv" alone python3 -m venv --system-site-packages "$scratch/venv"
timed "pip install ." in_clone "$scratch/venv/bin/pip" install --quiet --no-build-isolation .
timed "import hone" alone "$scratch/venv/bin/python" -c 'import hone'

printf '\nslowest parts of the build, s:\n'
awk 'NR > 1 { printf "%8.1f  %s\n", ($2 - $1) / 1000, $4 }' "$clone/build/release/.ninja_log" |
  sort -rn | awk 'NR <= 10'
