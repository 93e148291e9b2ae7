"""One engine with one model: loads it, compares its outputs with PyTorch's, and then runs it for
as many seconds as each line of the standard input says. Answers are lines of JSON.

    engine.py ENGINE NAME BATCH THREADS FOLDER
"""

import json
import os
import statistics
import sys
import time

ENGINE, NAME = sys.argv[1:3]
BATCH, THREADS = int(sys.argv[3]), int(sys.argv[4])
FOLDER = sys.argv[5]
# Before libraries are loaded, which read it then.
os.environ["OMP_NUM_THREADS"] = str(THREADS)
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

import numpy as np  # noqa: E402

MODEL = os.path.join(FOLDER, "model.onnx")
IS_TRAINING = NAME.startswith("train_")


def stored(name):
    with np.load(os.path.join(FOLDER, name)) as file:
        return {key: file[key] for key in file.files}


def onnxruntime():
    import onnxruntime as module

    options = module.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 3
    session = module.InferenceSession(MODEL, options, providers=["CPUExecutionProvider"])
    inputs = stored("inputs.npz")
    return module.__version__, lambda: session.run(None, inputs)


def openvino(precision="f32"):
    import openvino as module

    core = module.Core()
    options = {
        "INFERENCE_NUM_THREADS": THREADS, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1,
    }  # fmt: skip
    if precision:
        options["INFERENCE_PRECISION_HINT"] = precision
    compiled = core.compile_model(core.read_model(MODEL), "CPU", options)
    request = compiled.create_infer_request()
    request.infer(stored("inputs.npz"))

    def run():  # results lie where they lay before
        results = request.infer(share_inputs=True, share_outputs=True)
        return [results[i] for i in range(len(results))]

    return module.__version__, run


def pytorch(is_compiled=False):
    import torch

    import models

    torch.set_num_threads(THREADS)
    if NAME == "forest":
        raise RuntimeError("scikit-learn's models are none of PyTorch's")
    module, inputs = models.build(NAME, BATCH)
    if is_compiled:
        import torch._inductor.config

        torch._inductor.config.freezing = not IS_TRAINING
    call = torch.compile(module) if is_compiled else module
    if IS_TRAINING:
        return torch.__version__, torch_step(torch, module, call, inputs)

    def run():
        with torch.no_grad():
            results = call(*inputs)
        return results if isinstance(results, (tuple, list)) else [results]

    return torch.__version__, run


def torch_step(torch, module, call, inputs):
    labels = torch.from_numpy(stored("inputs.npz")["labels"])
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)

    def run():
        optimizer.zero_grad()
        output = call(*inputs)
        loss = torch.nn.functional.cross_entropy(output.flatten(0, -2), labels.flatten())
        loss.backward()
        optimizer.step()
        return [loss.detach()]

    return run


def hone(path=None):
    import hone as module

    quiet = {"threads": THREADS, "log": None, "progress": False}
    inputs = stored("inputs.npz")
    if IS_TRAINING:
        inputs.update(stored("step.state.npz"))
        model = module.load(os.path.join(FOLDER, "step.hone"), **quiet)
        SETTLE.append(model.finish)
        given = {one.name: inputs[one.name].astype(one.dtype) for one in model.inputs}
        bound = model.bind(given, donate=True)
        place = [port.name for port in model.outputs].index("loss")
        return module.__version__, lambda: [bound()[place]]
    model = module.load(path or MODEL, **quiet)
    SETTLE.append(model.finish)
    try:
        return module.__version__, outputs_of(model.bind(inputs))
    except module.UsageError:  # sizes depend on data
        return module.__version__, lambda: list(model.run(inputs).values())


def outputs_of(bound):
    results = list(bound.outputs.values())

    def run():
        bound()
        return results

    return run


# Work that an engine still does after its first results; the clock waits for it.
SETTLE = []
ENGINES = {
    "hone": hone,
    "hone_bf16": lambda: hone(os.path.join(FOLDER, "bf16.hone")),
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    "openvino_own": lambda: openvino(""),  # as it comes: bf16 where the processor has it
    "eager": pytorch,
    "inductor": lambda: pytorch(True),
}


def difference(outputs):
    """The largest, in parts of an output's largest number; of a step of training that of the loss,
    which eager PyTorch says first."""
    expected = list(stored("loss.npz" if IS_TRAINING else "outputs.npz").values())
    worst = 0.0
    for mine, theirs in zip(outputs, expected):
        mine, theirs = np.asarray(mine, np.float64), np.asarray(theirs, np.float64)
        if mine.size != theirs.size:
            return "another shape"
        scale = max(np.abs(theirs).max(initial=0), 1e-30)
        worst = max(worst, float(np.abs(mine.ravel() - theirs.ravel()).max(initial=0) / scale))
    return worst


def runs(call, seconds):
    samples, end = [], time.perf_counter() + seconds
    while len(samples) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        samples.append(time.perf_counter() - start)
    return statistics.median(samples)


def answer(**fields):
    print(json.dumps(fields), flush=True)


def main():
    start = time.perf_counter()
    version, call = ENGINES[ENGINE]()
    outputs = call()
    loaded = time.perf_counter() - start
    if IS_TRAINING and ENGINE == "eager":
        np.savez(os.path.join(FOLDER, "loss.npz"), *[np.asarray(one) for one in outputs])
    worst = difference(outputs)
    for settle in SETTLE:
        settle()
    answer(version=version, loaded=loaded, difference=worst)
    call()
    for line in sys.stdin:
        answer(seconds=runs(call, float(line)))


if __name__ == "__main__":
    # Libraries print to the standard output, too: answers go there alone.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.stdout = answers
    try:
        main()
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        answer(failed=lines[0][:200])
        sys.exit(1)
