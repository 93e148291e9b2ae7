"""Runs a model once on zeros: run_model.py [MODEL], which is compiled (.honec) or not."""

import sys

import numpy as np

import hone

model = hone.load(sys.argv[1] if len(sys.argv) > 1 else "zoo:mlp,size=tiny")
inputs = {}
for port in model.inputs:
    shape = [size if isinstance(size, int) else 1 for size in port.shape]  # a name: any size
    inputs[port.name] = np.zeros(shape, port.dtype)
for name, array in model.run(inputs).items():
    print(name, array.dtype, array.shape, array.ravel()[:4])
