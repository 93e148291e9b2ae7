#!/usr/bin/env bash
# The rival of bench_learn: PyTorch of the distribution, with OpenBLAS: without it, PyTorch takes a
# BLAS that is ten times slower. Exits 77 where they are not installed.
/usr/bin/python3 -c 'import torch' 2>/dev/null && ldconfig -p | grep -q libopenblas && exit 0
packages="python3-torch libopenblas0-pthread"
echo "skipped, PyTorch is not installed; on Debian: apt-get install $packages" >&2
exit 77
