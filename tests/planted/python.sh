# python.sh BUILD FAULT: runs the tests of arrays with the Python package that has planted faults,
# this one turned on. They should fail.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export ROOT BUILD=$1/planted_python HONE_FAULT=$2 PYTHON=${PYTHON:-/usr/bin/python3}
exec "$ROOT/tools/run_script.sh" "$ROOT/tests/python/values.py"
