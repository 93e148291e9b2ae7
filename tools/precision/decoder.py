"""Writes a decoder as it is exported today: 2 layers, 2048 and 8192 wide, as an ONNX file.

    decoder.py LEVEL ROWS FILE    LEVEL is f32, f16, int8 or int4 (groups of 32)
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, HIDDEN, LAYERS, HEADS, GROUP = 2048, 8192, 2, 16, 32


class Decoder:
    def __init__(self, level, rows):
        self.level, self.rows = level, rows
        self.dtype = np.float16 if level == "f16" else np.float32
        self.random = np.random.default_rng(1)
        self.nodes, self.weights, self.count = [], [], 0

    def node(self, op, inputs, domain="", **attributes):
        self.count += 1
        name = f"v{self.count}"
        self.nodes.append(helper.make_node(op, inputs, [name], domain=domain, **attributes))
        return name

    def constant(self, array):
        self.count += 1
        name = f"c{self.count}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def product(self, x, inputs, outputs):
        if self.level not in ("int8", "int4"):
            weights = self.random.standard_normal((inputs, outputs), np.float32) * 0.02
            return self.node("MatMul", [x, self.constant(weights.astype(self.dtype))])
        bits = 8 if self.level == "int8" else 4
        groups = inputs // GROUP
        numbers = self.random.integers(0, 256, (outputs, groups, GROUP * bits // 8), np.uint8)
        scales = self.random.uniform(0.5, 1, outputs * groups) * (0.04 if bits == 4 else 0.0025)
        names = [x, self.constant(numbers), self.constant(scales.astype(np.float32))]
        return self.node("MatMulNBits", names, "com.microsoft", K=inputs, N=outputs, bits=bits,
                         block_size=GROUP)

    def norm(self, x):
        scale = self.constant(np.ones(WIDTH, self.dtype))
        return self.node("LayerNormalization", [x, scale], axis=-1)

    def heads(self, x, permutation):
        shape = self.constant(np.array([self.rows, HEADS, WIDTH // HEADS], np.int64))
        return self.node("Transpose", [self.node("Reshape", [x, shape])], perm=permutation)

    def attention(self, x):
        query = self.heads(self.product(x, WIDTH, WIDTH), [1, 0, 2])
        key = self.heads(self.product(x, WIDTH, WIDTH), [1, 2, 0])
        value = self.heads(self.product(x, WIDTH, WIDTH), [1, 0, 2])
        scale = self.constant(np.array((WIDTH // HEADS) ** -0.5, self.dtype))
        scores = self.node("Mul", [self.node("MatMul", [query, key]), scale])
        mixed = self.node("MatMul", [self.node("Softmax", [scores], axis=-1), value])
        shape = self.constant(np.array([self.rows, WIDTH], np.int64))
        rows = self.node("Reshape", [self.node("Transpose", [mixed], perm=[1, 0, 2]), shape])
        return self.product(rows, WIDTH, WIDTH)

    def layer(self, x):
        x = self.node("Add", [x, self.attention(self.norm(x))])
        y = self.norm(x)
        gate = self.product(y, WIDTH, HIDDEN)
        gate = self.node("Mul", [gate, self.node("Sigmoid", [gate])])
        both = self.node("Mul", [gate, self.product(y, WIDTH, HIDDEN)])
        return self.node("Add", [x, self.product(both, HIDDEN, WIDTH)])

    def write(self, path):
        x = "x"
        for _ in range(LAYERS):
            x = self.layer(x)
        kind = TensorProto.FLOAT16 if self.level == "f16" else TensorProto.FLOAT
        graph = helper.make_graph(
            self.nodes, "decoder",
            [helper.make_tensor_value_info("x", kind, [self.rows, WIDTH])],
            [helper.make_tensor_value_info(x, kind, [self.rows, WIDTH])], self.weights,
        )  # fmt: skip
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)


def weight_bytes(level):
    """The bytes that a step reads, with f32 scales of groups."""
    numbers = LAYERS * (4 * WIDTH * WIDTH + 3 * WIDTH * HIDDEN)
    return numbers * {"f32": 4, "f16": 2, "int8": 1 + 4 / GROUP, "int4": 0.5 + 4 / GROUP}[level]


if __name__ == "__main__":
    Decoder(sys.argv[1], int(sys.argv[2])).write(sys.argv[3])
