// Runs a model in ONNX Runtime: node run.js MODULES MODEL FOLDER [THREADS [SECONDS]]
// FOLDER/in0.npy, in1.npy, ... are its inputs in order; out0.npy, ... are written. Then it goes on
// running for SECONDS, and prints what each of those runs took.
'use strict';
const fs = require('fs');
const path = require('path');
const [modules, model, folder, threads = '1', seconds = '0'] = process.argv.slice(2);
const ort = require(path.join(modules, 'onnxruntime-node'));

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
  const [, type, Data] = types.find((t) => t[0] === descr);
  const from = bytes.byteOffset + start + size;
  const data = new Data(bytes.buffer.slice(from, bytes.byteOffset + bytes.length));
  return new ort.Tensor(type, data, dims.split(',').map((d) => d.trim()).filter(Boolean).map(Number));
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
  const session = await ort.InferenceSession.create(
    model, { executionProviders: ['cpu'], intraOpNumThreads: Number(threads), logSeverityLevel: 3 });
  const feeds = {};
  session.inputNames.forEach((name, i) => { feeds[name] = read(path.join(folder, `in${i}.npy`)); });
  const results = await session.run(feeds);
  session.outputNames.forEach((name, i) => write(path.join(folder, `out${i}.npy`), results[name]));
  const samples = [];
  const end = performance.now() + 1000 * Number(seconds);
  while (Number(seconds) > 0 && (samples.length < 3 || performance.now() < end)) {
    const start = performance.now();
    await session.run(feeds);
    samples.push((performance.now() - start) / 1000);
  }
  console.log(JSON.stringify(samples));
}

main().catch((error) => {
  console.error(String(error.message || error));
  process.exit(1);
});
