// Writes small models of ops that hone reads and does not write, with inputs:
//   node models.js FOLDER
// makes FOLDER/NAME/model.onnx, in0.npy, ... for each, and prints the names.
'use strict';
const fs = require('fs');
const path = require('path');

// ---- Protobuf, as far as ONNX needs it ----------------------------------------------------------

function varint(number) {
  let n = BigInt.asUintN(64, BigInt(number));
  const bytes = [];
  for (; n > 127n; n >>= 7n) bytes.push(Number(n & 127n) | 128);
  return Buffer.from([...bytes, Number(n)]);
}
const integer = (field, n) => Buffer.concat([varint(field << 3), varint(n)]);
const bytes = (field, data) => {
  const content = Buffer.isBuffer(data) ? data : Buffer.from(data);
  return Buffer.concat([varint(field << 3 | 2), varint(content.length), content]);
};
const float = (field, x) => {
  const data = Buffer.alloc(4);
  data.writeFloatLE(x);
  return Buffer.concat([varint(field << 3 | 5), data]);
};
const join = (...parts) => Buffer.concat(parts.flat());

// ---- Models -------------------------------------------------------------------------------------

const types = {
  f32: [1, '<f4', Float32Array], u8: [2, '|u1', Uint8Array], i32: [6, '<i4', Int32Array],
  i64: [7, '<i8', BigInt64Array], f64: [11, '<f8', Float64Array],
};

const tensor = (type, dims, values, name = '') => {
  const [code, , Data] = types[type];
  const data = Data.from(values.map((v) => (Data === BigInt64Array ? BigInt(v) : v)));
  return { type, dims, data, proto: join(dims.map((d) => integer(1, d)), integer(2, code),
    bytes(8, name), bytes(9, Buffer.from(data.buffer))) };
};

// Numbers are floats if they are written as {f: ...} or {fs: [...]}.
function attribute([name, value]) {
  const head = bytes(1, name);
  if (value.proto) return join(head, bytes(5, value.proto), integer(20, 4));
  if (value.f !== undefined) return join(head, float(2, value.f), integer(20, 1));
  if (value.fs) return join(head, value.fs.map((x) => float(7, x)), integer(20, 6));
  if (typeof value === 'string') return join(head, bytes(4, value), integer(20, 3));
  if (typeof value === 'number') return join(head, integer(3, value), integer(20, 2));
  if (typeof value[0] === 'string') return join(head, value.map((x) => bytes(9, x)), integer(20, 8));
  return join(head, value.map((x) => integer(8, x)), integer(20, 7));
}

function node(op, inputs, outputs, attributes = {}, domain = 'ai.onnx.ml') {
  return join(inputs.map((i) => bytes(1, i)), outputs.map((o) => bytes(2, o)), bytes(4, op),
    Object.entries(attributes).map((a) => bytes(5, attribute(a))), bytes(7, domain));
}

// An output's dims have names, an input's numbers.
function value(name, type, sizes) {
  const dims = typeof sizes === 'number' ? many(sizes, (i) => bytes(1, bytes(2, `${name}_${i}`)))
    : sizes.map((size) => bytes(1, integer(1, size)));
  return join(bytes(1, name),
    bytes(2, bytes(1, join(integer(1, types[type][0]), bytes(2, join(dims))))));
}

// `outputs`: [name, type, rank].
function model(nodes, inputs, outputs, { opset = 21, ml = 3, constants = [] } = {}) {
  const graph = join(nodes.map((n) => bytes(1, n)), bytes(2, 'graph'),
    constants.map((t) => bytes(5, t.proto)),
    inputs.map(([name, t]) => bytes(11, value(name, t.type, t.dims))),
    outputs.map((o) => bytes(12, value(...o))));
  return join(integer(1, opset > 24 ? 13 : 10), bytes(7, graph),
    bytes(8, join(bytes(1, ''), integer(2, opset))),
    bytes(8, join(bytes(1, 'ai.onnx.ml'), integer(2, ml))));
}

function npy({ type, dims, data }) {
  const shape = dims.map((d) => `${d},`).join(' ');
  let header = `{'descr': '${types[type][1]}', 'fortran_order': False, 'shape': (${shape}), }`;
  header += ' '.repeat(63 - (10 + header.length) % 64) + '\n';
  const prefix = Buffer.alloc(10);
  prefix.write('\x93NUMPY\x01\x00', 'latin1');
  prefix.writeUInt16LE(header.length, 8);
  return join(prefix, Buffer.from(header, 'latin1'), Buffer.from(data.buffer));
}

// ---- Random numbers and trees -------------------------------------------------------------------

let state = 1n;
function random() {  // in 0..1
  state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n);
  return Number(state >> 40n) / 2 ** 24;
}
const below = (n) => Math.floor(random() * n);
const many = (count, make) => Array.from({ length: count }, (_, i) => make(i));
const rows = (count, features, holes = 0) => tensor('f32', [count, features],
  many(count * features, () => (random() < holes ? NaN : 2 * random() - 1)));

// Full trees as TreeEnsembleRegressor and TreeEnsembleClassifier have them. `targets(tree)`: what a
// leaf of the tree votes for, as pairs of target and weight.
function trees({ count, depth, features, modes = ['BRANCH_LEQ'], missing = false, targets }) {
  const a = { treeids: [], nodeids: [], featureids: [], values: [], modes: [], truenodeids: [],
    falsenodeids: [], missing_value_tracks_true: [] };
  const votes = { treeids: [], nodeids: [], ids: [], weights: [] };
  const branches = 2 ** depth - 1;
  for (let tree = 0; tree < count; ++tree) {
    for (let i = 0; i < 2 * branches + 1; ++i) {
      const isLeaf = i >= branches;
      a.treeids.push(tree), a.nodeids.push(i);
      a.featureids.push(isLeaf ? 0 : below(features));
      a.values.push(isLeaf ? 0 : random() - 0.5);
      a.modes.push(isLeaf ? 'LEAF' : modes[below(modes.length)]);
      a.truenodeids.push(isLeaf ? 0 : 2 * i + 1), a.falsenodeids.push(isLeaf ? 0 : 2 * i + 2);
      a.missing_value_tracks_true.push(missing && !isLeaf ? below(2) : 0);
      for (const [target, weight] of isLeaf ? targets(tree) : []) {
        votes.treeids.push(tree), votes.nodeids.push(i);
        votes.ids.push(target), votes.weights.push(weight);
      }
    }
  }
  return { nodes: a, votes };
}

const floats = new Set(['nodes_values', 'class_weights', 'target_weights']);
function flat(who, forest) {
  const all = {};
  for (const [prefix, lists] of [['nodes', forest.nodes], [who, forest.votes]])
    for (const [name, list] of Object.entries(lists)) {
      const key = `${prefix}_${name}`;
      all[key] = floats.has(key) ? { fs: list } : list;
    }
  return all;
}

const regressor = (forest, more = {}) =>
  node('TreeEnsembleRegressor', ['x'], ['y'], { n_targets: 1, ...flat('target', forest), ...more });
const classifier = (forest, more = {}) =>
  node('TreeEnsembleClassifier', ['x'], ['y', 'z'], { ...flat('class', forest), ...more });

// ---- The cases ----------------------------------------------------------------------------------

const scores = [['y', 'f32', 2]];
const classes = [['y', 'i64', 1], ['z', 'f32', 2]];
const one = (weight = () => random() - 0.5) => () => [[0, weight()]];

function* cases() {
  const x = rows(7, 4);
  const simple = (name, op, attributes, outputs = scores, input = x) =>
    [name, model([node(op, ['x'], outputs.map((o) => o[0]), attributes)], [['x', input]], outputs),
      [input]];
  const weights = { fs: many(12, () => random() - 0.5) };
  yield simple('linear_regressor', 'LinearRegressor',
    { coefficients: weights, intercepts: { fs: [0.1, 0.2, -0.3] }, targets: 3 });
  yield simple('linear_classifier_binary', 'LinearClassifier',
    { classlabels_ints: [3, 8], coefficients: { fs: [0.5, -1, 0.25, 2] }, intercepts: { fs: [0.1] },
      post_transform: 'LOGISTIC' }, classes);
  for (const transform of ['NONE', 'SOFTMAX', 'LOGISTIC', 'SOFTMAX_ZERO'])
    yield simple(`linear_classifier_${transform.toLowerCase()}`, 'LinearClassifier',
      { classlabels_ints: [3, 8, 5], coefficients: weights, intercepts: { fs: [0.1, 0.2, -0.3] },
        post_transform: transform }, classes);
  for (const norm of ['MAX', 'L1', 'L2'])
    yield simple(`normalizer_${norm.toLowerCase()}`, 'Normalizer', { norm });
  yield simple('scaler', 'Scaler', { offset: { fs: [1, 2, 3, 4] }, scale: { fs: [2, -1, 0.5, 3] } });
  yield simple('binarizer', 'Binarizer', { threshold: { f: 0.25 } });
  const places = tensor('i64', [3], [2, 0, 2]);
  yield ['array_feature_extractor',
    model([node('ArrayFeatureExtractor', ['x', 'i'], ['y'])], [['x', x], ['i', places]], scores),
    [x, places]];
  const keys = tensor('i64', [8], [5, -3, 77, 0, 6, 5, 1000000007, 12]);
  yield ['label_encoder',
    model([node('LabelEncoder', ['x'], ['y'], { keys_int64s: [5, 0, -3, 1000000007, 12],
      values_floats: { fs: [1, 2, 3, 4, 5] }, default_float: { f: -1 } })], [['x', keys]],
    [['y', 'f32', 1]], { ml: 2 }), [keys]];

  const small = { count: 9, depth: 4, features: 4 };
  const all = ['BRANCH_LEQ', 'BRANCH_LT', 'BRANCH_GTE', 'BRANCH_GT', 'BRANCH_EQ', 'BRANCH_NEQ'];
  yield ['trees', model([regressor(trees({ ...small, targets: one() }))], [['x', x]], scores), [x]];
  const holed = rows(20, 4, 0.2);
  yield ['trees_modes', model([regressor(trees({ ...small, modes: all, missing: true,
    targets: one() }))], [['x', holed]], scores), [holed]];
  yield ['trees_targets', model([regressor(trees({ ...small,
    targets: (tree) => [[tree % 3, random()]] }), { n_targets: 3 })], [['x', x]], scores), [x]];
  for (const aggregate_function of ['AVERAGE', 'MIN', 'MAX'])
    yield [`trees_${aggregate_function.toLowerCase()}`, model([regressor(trees({ ...small,
      targets: () => [[0, random()], [1, -random()]] }),
    { n_targets: 2, aggregate_function, base_values: { fs: [0.5, -0.25] } })], [['x', x]], scores),
    [x]];
  yield ['trees_binary', model([classifier(trees({ ...small, targets: one() }),
    { classlabels_int64s: [4, 2], post_transform: 'LOGISTIC' })], [['x', x]], classes), [x]];
  yield ['trees_shares', model([classifier(trees({ ...small, targets: one(() => random() / 9) }),
    { classlabels_int64s: [0, 1] })], [['x', x]], classes), [x]];
  yield ['trees_classes', model([classifier(trees({ ...small,
    targets: () => [[0, random()], [1, random()], [2, random()]] }),
  { classlabels_int64s: [4, 2, 9], post_transform: 'SOFTMAX' })], [['x', x]], classes), [x]];

  // A chain of branches, the first of which asks for membership.
  const lists = { n_targets: 1, tree_roots: [0], nodes_featureids: [0, 1, 0],
    nodes_modes: tensor('u8', [3], [6, 0, 4]), nodes_splits: tensor('f32', [3], [0, 0.1, 2]),
    nodes_truenodeids: [0, 2, 2], nodes_falsenodeids: [1, 1, 3], nodes_trueleafs: [1, 0, 1],
    nodes_falseleafs: [0, 1, 1], leaf_targetids: [0, 0, 0, 0],
    membership_values: tensor('f32', [5], [1, 3, 4, 7, NaN]),
    leaf_weights: tensor('f32', [4], [1, 10, 100, 1000]) };
  const asked = tensor('f32', [6, 2], [1, 0, 2, 0, 2, 1, 7, 1, 5, -1, 5, 1]);
  yield ['trees_members', model([node('TreeEnsemble', ['x'], ['y'], lists)], [['x', asked]], scores,
    { ml: 5 }), [asked]];

  const v = tensor('f32', [2, 5], many(10, () => 2 * random() - 1));
  const axis = tensor('i64', [], [1], 'axis');
  yield ['cum_prod', model([node('CumProd', ['x', 'axis'], ['y'], { exclusive: 1 }, '')],
    [['x', v]], scores, { opset: 26, constants: [axis] }), [v]];
  yield ['bit_cast', model([node('BitCast', ['x'], ['y'], { to: 6 }, '')], [['x', v]],
    [['y', 'i32', 2]], { opset: 26 }), [v]];
  yield ['sequences', model([
    node('SplitToSequence', ['x'], ['s'], { axis: 1 }, ''),
    node('SequenceErase', ['s', 'axis'], ['t'], {}, ''),
    node('ConcatFromSequence', ['t'], ['y'], { axis: 1 }, '')], [['x', v]], scores,
  { constants: [axis] }), [v]];

  const speed = { count: 100, depth: 6, features: 20, targets: one() };
  for (const batch of [1, 10000]) {
    const input = rows(batch, 20);
    yield [`speed_trees_${batch}`, model([regressor(trees(speed))], [['x', input]], scores), [input]];
  }
}

for (const [name, proto, inputs] of cases()) {
  const folder = path.join(process.argv[2], name);
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(path.join(folder, 'model.onnx'), proto);
  inputs.forEach((t, i) => fs.writeFileSync(path.join(folder, `in${i}.npy`), npy(t)));
  console.log(name);
}
