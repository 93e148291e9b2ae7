"""A model written in Python: a layer for any batch, compiled, held against the reference, saved."""

import numpy as np

import hone
import hone.graph as hg

b = hg.Builder("layer")
x = b.parameter("x", "f32", [b.symbol("batch", 1, 64), 3])
weights = np.arange(6, dtype=np.float32).reshape(3, 2)  # becomes a constant
graph = b.finish(hg.softmax(x @ weights - 1).named("y"))

model = hone.compile(graph)
data = np.ones((4, 3), np.float32)
np.testing.assert_allclose(model(data), graph.evaluate([data])[0], rtol=1e-5)
graph.save("layer.onnx")
print(graph)
