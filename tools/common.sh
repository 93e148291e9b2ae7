# Shared by ./run, ./test, ./dev and the scripts in tools/. Source it; $root is the repository.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034  # used by those who source this
jobs=$(nproc)

say() { printf '%s\n' "$*" >&2; }
die() {
  say "error: $*"
  exit 1
}

# step "Building" COMMAND...: says what runs, and how long it took.
step() {
  local title=$1 start=$SECONDS
  shift
  say "== $title"
  "$@"
  say "== $title: $((SECONDS - start)) s"
}

# packages [all]: what dependencies.txt lists; with `all`, what tests alone need, too.
packages() {
  awk -v all="${1:-}" '!/^(#|$)/ && (all || !/ tests alone:/) { print $1 }' \
    "$root/dependencies.txt"
}

missing_packages() {
  # shellcheck disable=SC2046  # a list of words
  LC_ALL=C comm -23 <(packages "$@" | sort) <(
    dpkg-query -W -f='${db:Status-Status} ${Package}\n' $(packages "$@") 2>/dev/null |
      awk '$1 == "installed" { print $2 }' | sort
  ) | tr '\n' ' '
}

# Installs what tests alone need. They are skipped without it, so that it may fail.
install_test_dependencies() {
  [[ ${HONE_SKIP_SETUP:-} ]] && return
  (install_dependencies all) || say "warning: tests that need the missing packages are skipped"
}

# Installs what dependencies.txt lists and this machine lacks. Silent if there is nothing to do.
install_dependencies() { # install_dependencies [all]
  [[ ${HONE_SKIP_SETUP:-} ]] && return
  if ! command -v dpkg-query apt-get >/dev/null; then
    say "error: this is not a Debian system, so hone cannot install what it needs."
    say "hint: install the equivalents of: $(packages | tr '\n' ' ')"
    die "then run again with HONE_SKIP_SETUP=1"
  fi
  local missing as_root=()
  missing=$(missing_packages "$@")
  [[ $missing ]] || return 0
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      die "not root and no sudo; ask an administrator to run: apt-get install $missing"
    as_root=(sudo)
  fi
  say "Installing: $missing"
  "${as_root[@]}" apt-get update -qq >&2 ||
    say "warning: apt-get update failed; trying with the package lists at hand"
  # shellcheck disable=SC2086  # a list of words
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends $missing >&2 ||
    die "could not install: $missing"
}

# build PRESET [TARGET...]: configures if needed and builds. All output goes to stderr.
build() {
  local preset=$1 folder=$root/build/$1 log
  shift
  if [[ ! $folder/build.ninja -nt $root/CMakePresets.json ]]; then
    mkdir -p "$folder"
    log=$folder/configure.log
    (cd "$root" && cmake --preset "$preset") >"$log" 2>&1 || {
      cat "$log" >&2
      die "could not configure $folder"
    }
  fi
  # The first build shows its progress; later ones speak only when something is wrong.
  if [[ -e $folder/hone ]]; then
    cmake --build "$folder" --target "${@:-all}" -- --quiet 2>&1 |
      { grep -vE '^(ninja: no work to do|-- )' >&2 || true; } || die "the build failed"
  else
    cmake --build "$folder" --target "${@:-all}" >&2 || die "the build failed"
  fi
}
