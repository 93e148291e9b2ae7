#pragma once

#include <string_view>

// The scripts that rivals.cc has node and Python run, with the arguments
//   MODULES MODEL FOLDER THREADS SECONDS WRITES   (node: ONNX Runtime alone)
//   RIVAL MODEL FOLDER THREADS SECONDS WRITES     (Python)
// An empty MODEL asks for the version alone. The last line of the output is the answer. Exit
// code 77: the interpreter lacks the engine.

namespace hone {

inline constexpr std::string_view kNodeScript = R"js('use strict';
const fs = require('fs');
const path = require('path');
const [modules, model, folder, threads, seconds, writes] = process.argv.slice(1);
const where = modules ? path.join(modules, 'onnxruntime-node') : 'onnxruntime-node';
let ort;
try {
  ort = require(where);
} catch (error) {
  console.error(String(error.message || error));
  process.exit(77);
}

// numpy's name of an element type, ONNX Runtime's, and the array that holds it.
const types = [
  ['<f4', 'float32', Float32Array], ['<f8', 'float64', Float64Array],
  ['<f2', 'float16', Uint16Array], ['<i8', 'int64', BigInt64Array],
  ['<u8', 'uint64', BigUint64Array], ['<i4', 'int32', Int32Array],
  ['<u4', 'uint32', Uint32Array], ['<i2', 'int16', Int16Array],
  ['<u2', 'uint16', Uint16Array], ['|i1', 'int8', Int8Array],
  ['|u1', 'uint8', Uint8Array], ['|b1', 'bool', Uint8Array],
];

function read(file) {
  const bytes = fs.readFileSync(file);
  const start = bytes[6] === 1 ? 10 : 12;
  const size = bytes[6] === 1 ? bytes.readUInt16LE(8) : bytes.readUInt32LE(8);
  const header = bytes.toString('latin1', start, start + size);
  const descr = /'descr': '([^']+)'/.exec(header)[1];
  const dims = /'shape': \(([^)]*)\)/.exec(header)[1];
  const found = types.find((t) => t[0] === descr);
  if (!found) throw new Error(`node has no array of ${descr}`);
  const from = bytes.byteOffset + start + size;
  const data = new found[2](bytes.buffer.slice(from, bytes.byteOffset + bytes.length));
  const shape = dims.split(',').map((d) => d.trim()).filter(Boolean).map(Number);
  return new ort.Tensor(found[1], data, shape);
}

function write(file, tensor) {
  const [descr] = types.find((t) => t[1] === tensor.type);
  const shape = tensor.dims.map((d) => d + ',').join(' ');
  let header = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${shape}), }`;
  header += ' '.repeat(63 - (10 + header.length) % 64) + '\n';
  const prefix = Buffer.alloc(10);
  prefix.write('\x93NUMPY\x01\x00', 'latin1');
  prefix.writeUInt16LE(header.length, 8);
  const { buffer, byteOffset, byteLength } = tensor.data;
  fs.writeFileSync(file, Buffer.concat(
    [prefix, Buffer.from(header, 'latin1'), Buffer.from(buffer, byteOffset, byteLength)]));
}

async function main() {
  const { version } = require(path.join(where, 'package.json'));
  const samples = [];
  if (model) {
    const session = await ort.InferenceSession.create(model, {
      executionProviders: ['cpu'], intraOpNumThreads: Number(threads), logSeverityLevel: 3 });
    const feeds = {};
    session.inputNames.forEach((name, i) => {
      feeds[name] = read(path.join(folder, `in${i}.npy`));
    });
    const results = await session.run(feeds);
    if (writes === '1') {
      session.outputNames.forEach(
        (name, i) => write(path.join(folder, `out${i}.npy`), results[name]));
    }
    if (Number(seconds) > 0) await session.run(feeds);
    const end = performance.now() + 1000 * Number(seconds);
    while (Number(seconds) > 0 && (samples.length < 3 || performance.now() < end)) {
      const start = performance.now();
      await session.run(feeds);
      samples.push((performance.now() - start) / 1000);
    }
  }
  console.log(JSON.stringify({ version, seconds: samples }));
}

main().catch((error) => {
  console.error(String(error.message || error));
  process.exit(1);
});
)js";

inline constexpr std::string_view kPythonScript = R"py(import json, os, sys, time
_, engine, model, folder, threads, seconds, writes = sys.argv
threads, seconds = int(threads), float(seconds)

def inputs():
    return {int(name[2:-4]): numpy.load(os.path.join(folder, name)) for name in os.listdir(folder)
            if name.startswith('in') and name.endswith('.npy')}

def in_order(names):  # by name, and the place among the inputs of the file
    given = inputs()
    return {name: given[i] for i, name in enumerate(names)}

def onnxruntime_runs():
    options = module.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = module.InferenceSession(model, options, providers=['CPUExecutionProvider'])
    feeds = in_order([port.name for port in session.get_inputs()])
    return lambda: session.run(None, feeds)

def openvino_runs():
    core = module.Core()
    options = {'INFERENCE_NUM_THREADS': threads, 'PERFORMANCE_HINT': 'LATENCY', 'NUM_STREAMS': 1,
               'INFERENCE_PRECISION_HINT': 'f32'}
    network = core.read_model(model)
    given = inputs()
    network.reshape({port: given[i].shape for i, port in enumerate(network.inputs)})
    request = core.compile_model(network, 'CPU', options).create_infer_request()
    request.infer(given)
    def run():  # results lie where they lay before
        results = request.infer(share_inputs=True, share_outputs=True)
        return [results[i] for i in range(len(results))]
    return run

def torch_program():
    program = os.path.splitext(model)[0] + '.pt2'
    if os.path.exists(program):
        return module.export.load(program).module()
    try:
        import onnx2torch
    except ImportError:
        sys.exit('onnx2torch is missing, and there is no %s: pip install onnx2torch, or '
                 'torch.export.save(torch.export.export(module, arguments), ...)' % program)
    return onnx2torch.convert(model).eval()

def torch_runs():
    module.set_num_threads(threads)
    given = inputs()
    arguments = [module.from_numpy(given[i]) for i in sorted(given)]
    program = torch_program()
    if engine == 'inductor':
        import torch._inductor.config
        torch._inductor.config.freezing = True
        program = module.compile(program)
    def run():
        with module.no_grad():
            results = program(*arguments)
        if isinstance(results, dict):
            results = list(results.values())
        return results if isinstance(results, (list, tuple)) else [results]
    return run

def main():
    samples = []
    if model:
        runs = {'onnxruntime': onnxruntime_runs, 'openvino': openvino_runs}.get(engine, torch_runs)
        run = runs()
        outputs = run()
        if writes == '1':
            for i, output in enumerate(outputs):
                numpy.save(os.path.join(folder, 'out%d.npy' % i), numpy.asarray(output))
        if seconds > 0:
            run()
        end = time.perf_counter() + seconds
        while seconds > 0 and (len(samples) < 3 or time.perf_counter() < end):
            start = time.perf_counter()
            run()
            samples.append(time.perf_counter() - start)
    version = getattr(module, '__version__', '')
    print()
    print(json.dumps({'version': str(version).split('-')[0].split('+')[0], 'seconds': samples}))

try:
    import importlib, numpy
    module = importlib.import_module('torch' if engine == 'inductor' else engine)
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(77)
main()
)py";

}  // namespace hone
