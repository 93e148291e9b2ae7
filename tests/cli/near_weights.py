"""near_weights.py A B MOST: the tensors of two .safetensors differ by at most MOST."""

import json
import struct
import sys


def tensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        head = json.loads(file.read(length))
        data = file.read()
    head.pop("__metadata__", None)
    for name, one in head.items():
        begin, end = one["data_offsets"]
        yield name, (one["dtype"], one["shape"], data[begin:end])


first, second, most = dict(tensors(sys.argv[1])), dict(tensors(sys.argv[2])), float(sys.argv[3])
assert first.keys() == second.keys(), (first.keys(), second.keys())
for name, (dtype, shape, data) in first.items():
    assert (dtype, shape) == second[name][:2], name
    if dtype != "F32" or most == 0:
        assert data == second[name][2], name
        continue
    form = f"<{len(data) // 4}f"
    for a, b in zip(struct.unpack(form, data), struct.unpack(form, second[name][2])):
        assert abs(a - b) <= most, (name, a, b)
