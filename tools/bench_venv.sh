# Environments of benchmarks that need packages of PyPI; sourced by their scripts.

# bench_venv FOLDER PACKAGE...: makes the environment FOLDER/venv, and installs what it lacks. A
# package that PyPI does not give is named, and left out. PYTHON names the interpreter.
bench_venv() {
  local folder=$1 missing
  shift
  local python=$folder/venv/bin/python
  if [[ ! -x $python ]]; then
    mkdir -p "$folder"
    "${PYTHON:-/usr/bin/python3}" -m venv "$folder/venv" ||
      die "no environment can be made: apt-get install python3-venv"
  fi
  missing=$(bench_venv_lacks "$python" "$@")
  if [[ $missing ]]; then
    # shellcheck disable=SC2086  # a name a word
    "$folder/venv/bin/pip" install --disable-pip-version-check $missing || true
  fi
  missing=$(bench_venv_lacks "$python" "$@" | tr '\n' ' ')
  [[ ! $missing ]] || say "missing, so what needs them is left out:" $missing
}

bench_venv_lacks() { # bench_venv_lacks PYTHON PACKAGE...
  "$1" - "${@:2}" <<'PYTHON'
import importlib.metadata as metadata, sys

for package in sys.argv[1:]:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        print(package)
PYTHON
}
