"""Writes a model as ONNX by today's exporter, with its inputs and PyTorch's outputs beside it.

    export.py NAME BATCH FOLDER
"""

import os
import sys

import numpy as np

import names


def main(name, batch, folder):
    path = os.path.join(folder, "model.onnx")
    if name == "forest":
        import models

        data, inputs, outputs = models.forest()
        with open(path, "wb") as file:
            file.write(data)
    else:
        import torch

        import models

        module, tensors = models.build(name, batch)
        with torch.no_grad():
            results = module(*tensors)
        results = results if isinstance(results, (tuple, list)) else [results]
        inputs_of = [f"x{i}" for i in range(len(tensors))]
        torch.onnx.export(
            module, tensors, path, dynamo=True, external_data=False, input_names=inputs_of,
            output_names=[f"y{i}" for i in range(len(results))], verbose=False,
        )  # fmt: skip
        inputs = {one: tensor.numpy() for one, tensor in zip(inputs_of, tensors)}
        outputs = [one.numpy() for one in results]
        if name in names.TRAINING:
            inputs["labels"] = models.labels_of(results[0]).numpy()
    np.savez(os.path.join(folder, "inputs.npz"), **inputs)
    np.savez(os.path.join(folder, "outputs.npz"), *outputs)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
