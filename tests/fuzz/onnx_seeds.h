#pragma once

#include <google/protobuf/text_format.h>

#include <string>
#include <string_view>

#include "front/onnx/proto.h"

// Small models in protobuf's text form, one for each part of the import: what the targets mutate
// when they have nothing else.

namespace hone::fuzz {

inline constexpr std::string_view kOnnxSeeds[] = {
    // A network with symbolic dims.
    R"(ir_version: 8 opset_import { version: 17 } graph { name: "net"
      node { op_type: "Conv" input: "x" input: "w" input: "b" output: "c" name: "conv"
        attribute { name: "pads" type: INTS ints: 1 ints: 1 ints: 1 ints: 1 }
        attribute { name: "strides" type: INTS ints: 2 ints: 2 } }
      node { op_type: "Relu" input: "c" output: "r" }
      node { op_type: "MaxPool" input: "r" output: "p"
        attribute { name: "kernel_shape" type: INTS ints: 2 ints: 2 } }
      node { op_type: "Flatten" input: "p" output: "f" }
      node { op_type: "Softmax" input: "f" output: "y"
        attribute { name: "axis" type: INT i: -1 } }
      initializer { name: "w" data_type: 1 dims: 2 dims: 1 dims: 3 dims: 3 float_data: [
        1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9] }
      initializer { name: "b" data_type: 1 dims: 2 float_data: [0, 1] }
      input { name: "x" type { tensor_type { elem_type: 1 shape {
        dim { dim_param: "batch" } dim { dim_value: 1 } dim { dim_value: 8 }
        dim { dim_value: 8 } } } } }
      output { name: "y" } })",
    // Shapes that the graph computes.
    R"(ir_version: 8 opset_import { version: 17 } graph { name: "shapes"
      node { op_type: "Shape" input: "x" output: "s" }
      node { op_type: "Gather" input: "s" input: "zero" output: "n" }
      node { op_type: "Concat" input: "n" input: "two" output: "t"
        attribute { name: "axis" type: INT i: 0 } }
      node { op_type: "Reshape" input: "x" input: "t" output: "y" }
      node { op_type: "Slice" input: "y" input: "zero" input: "two" input: "zero" output: "z" }
      node { op_type: "Pad" input: "z" input: "pads" output: "q" }
      node { op_type: "Expand" input: "q" input: "wide" output: "e" }
      node { op_type: "Tile" input: "q" input: "two2" output: "u" }
      initializer { name: "zero" data_type: 7 dims: 1 int64_data: 0 }
      initializer { name: "two" data_type: 7 dims: 1 int64_data: 2 }
      initializer { name: "two2" data_type: 7 dims: 2 int64_data: [2, 2] }
      initializer { name: "wide" data_type: 7 dims: 3 int64_data: [2, 1, 1] }
      initializer { name: "pads" data_type: 7 dims: 4 int64_data: [0, 1, 1, 0] }
      input { name: "x" type { tensor_type { elem_type: 1 shape {
        dim { dim_param: "n" } dim { dim_value: 2 } } } } }
      output { name: "e" } output { name: "u" } })",
    // Sizes that depend on data, and a node that cannot be typed until they are there.
    R"(ir_version: 8 opset_import { version: 17 } graph { name: "data"
      node { op_type: "NonZero" input: "x" output: "places" }
      node { op_type: "Shape" input: "places" output: "count" }
      node { op_type: "ConstantOfShape" input: "count" output: "ones" }
      node { op_type: "Squeeze" input: "places" output: "s" }
      node { op_type: "Reshape" input: "ones" input: "target" output: "y" }
      input { name: "x" type { tensor_type { elem_type: 1 shape {
        dim { dim_param: "n" } dim { dim_value: 4 } } } } }
      input { name: "target" type { tensor_type { elem_type: 7 shape {
        dim { dim_value: 2 } } } } }
      output { name: "s" } output { name: "y" } })",
    R"(ir_version: 8 opset_import { version: 17 } graph { name: "if"
      node { op_type: "If" input: "c" output: "y"
        attribute { name: "then_branch" type: GRAPH g { name: "yes"
          node { op_type: "NonZero" input: "x" output: "t" } output { name: "t" } } }
        attribute { name: "else_branch" type: GRAPH g { name: "no"
          node { op_type: "Cast" input: "x" output: "e"
            attribute { name: "to" type: INT i: 7 } } output { name: "e" } } } }
      input { name: "c" type { tensor_type { elem_type: 9 shape { } } } }
      input { name: "x" type { tensor_type { elem_type: 1 shape {
        dim { dim_value: 2 } dim { dim_value: 3 } } } } }
      output { name: "y" } })",
    R"(ir_version: 8 opset_import { version: 17 } graph { name: "loop"
      node { op_type: "Loop" input: "n" input: "" input: "x" output: "y" output: "all"
        attribute { name: "body" type: GRAPH g { name: "body"
          node { op_type: "Concat" input: "v" input: "v" output: "w"
            attribute { name: "axis" type: INT i: 0 } }
          node { op_type: "ReduceSum" input: "w" output: "s" }
          node { op_type: "Identity" input: "go" output: "next" }
          input { name: "i" type { tensor_type { elem_type: 7 shape { } } } }
          input { name: "go" type { tensor_type { elem_type: 9 shape { } } } }
          input { name: "v" type { tensor_type { elem_type: 1 } } }
          output { name: "next" } output { name: "w" } output { name: "s" } } } }
      input { name: "n" type { tensor_type { elem_type: 7 shape { } } } }
      input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 3 } } } } }
      output { name: "y" } output { name: "all" } })",
    R"(ir_version: 8 opset_import { version: 17 } graph { name: "scan"
      node { op_type: "Scan" input: "x0" input: "xs" output: "last" output: "sums"
        attribute { name: "num_scan_inputs" type: INT i: 1 }
        attribute { name: "scan_input_directions" type: INTS ints: 1 }
        attribute { name: "body" type: GRAPH g { name: "step"
          node { op_type: "Add" input: "a" input: "b" output: "c" }
          node { op_type: "Mul" input: "c" input: "outer" output: "d" }
          input { name: "a" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
          input { name: "b" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
          output { name: "c" } output { name: "d" } } } }
      initializer { name: "outer" data_type: 1 dims: 2 raw_data: "\0\0\200?\0\0\0@" }
      input { name: "x0" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
      input { name: "xs" type { tensor_type { elem_type: 1 shape {
        dim { dim_param: "t" } dim { dim_value: 2 } } } } }
      output { name: "last" } output { name: "sums" } })",
    // Functions that call each other.
    R"(ir_version: 8 opset_import { version: 17 } opset_import { domain: "own" version: 1 }
      graph { name: "calls"
        node { op_type: "twice" domain: "own" input: "x" output: "y"
          attribute { name: "by" type: FLOAT f: 2 } }
        input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "n" } } } } }
        output { name: "y" } }
      functions { name: "twice" domain: "own" input: "a" output: "b" attribute: "by"
        opset_import { version: 17 } opset_import { domain: "own" version: 1 }
        node { op_type: "once" domain: "own" input: "a" output: "m" }
        node { op_type: "LeakyRelu" input: "m" output: "b"
          attribute { name: "alpha" type: FLOAT ref_attr_name: "by" } } }
      functions { name: "once" domain: "own" input: "a" output: "b"
        opset_import { version: 17 }
        node { op_type: "Neg" input: "a" output: "b" } })",
    // Every storage form, quantized ops, attributes of many kinds.
    R"(ir_version: 8 opset_import { version: 17 } graph { name: "stored"
      node { op_type: "DequantizeLinear" input: "q" input: "scale" output: "d" }
      node { op_type: "Constant" output: "k" attribute { name: "value" type: TENSOR t {
        data_type: 1 dims: 2 float_data: [1, 2] } } }
      node { op_type: "Constant" output: "sp" attribute { name: "sparse_value"
        type: SPARSE_TENSOR sparse_tensor { dims: 2
          values { data_type: 1 dims: 1 float_data: 3 }
          indices { data_type: 7 dims: 1 int64_data: 1 } } } }
      node { op_type: "Einsum" input: "d" input: "k" output: "e"
        attribute { name: "equation" type: STRING s: "i,i->" } }
      node { op_type: "Sum" input: "k" input: "sp" input: "big" output: "y" }
      node { op_type: "Resize" input: "image" input: "" input: "scales" output: "r"
        attribute { name: "mode" type: STRING s: "linear" } }
      node { op_type: "TopK" input: "y" input: "one" output: "values" output: "places" }
      initializer { name: "q" data_type: 2 dims: 2 int32_data: [1, 255] }
      initializer { name: "scale" data_type: 1 float_data: 0.5 }
      initializer { name: "one" data_type: 7 dims: 1 int64_data: 1 }
      initializer { name: "scales" data_type: 1 dims: 4 float_data: [1, 1, 2, 2] }
      sparse_initializer { dims: 2 values { name: "big" data_type: 1 dims: 1 float_data: 1 }
        indices { data_type: 7 dims: 1 int64_data: 0 } }
      input { name: "image" type { tensor_type { elem_type: 1 shape {
        dim { dim_value: 1 } dim { dim_value: 1 } dim { dim_value: 2 }
        dim { dim_value: 2 } } } } }
      output { name: "e" } output { name: "r" } output { name: "values" }
      output { name: "places" } })",
    // Detection: boxes, indices, a cut.
    R"(ir_version: 8 opset_import { version: 17 } graph { name: "boxes"
      node { op_type: "NonMaxSuppression" input: "boxes" input: "scores" input: "most"
        output: "kept" }
      node { op_type: "GatherND" input: "scores" input: "kept" output: "best" }
      node { op_type: "Where" input: "is" input: "best" input: "zero" output: "y" }
      node { op_type: "Greater" input: "best" input: "zero" output: "is" }
      node { op_type: "Unique" input: "best" output: "u" }
      initializer { name: "most" data_type: 7 dims: 1 int64_data: 3 }
      initializer { name: "zero" data_type: 1 float_data: 0 }
      input { name: "boxes" type { tensor_type { elem_type: 1 shape {
        dim { dim_value: 1 } dim { dim_value: 6 } dim { dim_value: 4 } } } } }
      input { name: "scores" type { tensor_type { elem_type: 1 shape {
        dim { dim_value: 1 } dim { dim_value: 2 } dim { dim_value: 6 } } } } }
      output { name: "y" } output { name: "u" } })",
    R"(ir_version: 8 opset_import { version: 14 } graph { name: "recurrent"
      node { op_type: "LSTM" input: "x" input: "w" input: "r" output: "y" output: "h"
        attribute { name: "hidden_size" type: INT i: 1 }
        attribute { name: "activations" type: STRINGS strings: "Sigmoid" strings: "Tanh"
          strings: "Tanh" } }
      node { op_type: "Transpose" input: "y" output: "t"
        attribute { name: "perm" type: INTS ints: [2, 0, 1, 3] } }
      node { op_type: "Squeeze" input: "t" input: "axes" output: "z" }
      initializer { name: "axes" data_type: 7 dims: 1 int64_data: 2 }
      initializer { name: "w" data_type: 1 dims: [1, 4, 2] float_data: [1, 2, 3, 4, 5, 6, 7, 8] }
      initializer { name: "r" data_type: 1 dims: [1, 4, 1] float_data: [1, 2, 3, 4] }
      input { name: "x" type { tensor_type { elem_type: 1 shape {
        dim { dim_param: "t" } dim { dim_value: 2 } dim { dim_value: 2 } } } } }
      output { name: "z" } output { name: "h" } })",
    // Trees, in both forms, and a table.
    R"(ir_version: 10 opset_import { version: 21 } opset_import { domain: "ai.onnx.ml" version: 3 }
      graph { name: "trees"
        node { op_type: "TreeEnsembleRegressor" domain: "ai.onnx.ml" input: "x" output: "y"
          attribute { name: "nodes_treeids" type: INTS ints: [0, 0, 0] }
          attribute { name: "nodes_nodeids" type: INTS ints: [0, 1, 2] }
          attribute { name: "nodes_featureids" type: INTS ints: [1, 0, 0] }
          attribute { name: "nodes_values" type: FLOATS floats: [0.5, 0, 0] }
          attribute { name: "nodes_modes" type: STRINGS strings: "BRANCH_LEQ" strings: "LEAF"
            strings: "LEAF" }
          attribute { name: "nodes_truenodeids" type: INTS ints: [1, 0, 0] }
          attribute { name: "nodes_falsenodeids" type: INTS ints: [2, 0, 0] }
          attribute { name: "target_treeids" type: INTS ints: [0, 0] }
          attribute { name: "target_nodeids" type: INTS ints: [1, 2] }
          attribute { name: "target_ids" type: INTS ints: [0, 1] }
          attribute { name: "target_weights" type: FLOATS floats: [1, 2] }
          attribute { name: "n_targets" type: INT i: 2 } }
        node { op_type: "Normalizer" domain: "ai.onnx.ml" input: "y" output: "n"
          attribute { name: "norm" type: STRING s: "L2" } }
        node { op_type: "ArgMax" input: "n" output: "c" }
        node { op_type: "LabelEncoder" domain: "ai.onnx.ml" input: "c" output: "z"
          attribute { name: "keys_int64s" type: INTS ints: [0, 1] }
          attribute { name: "values_floats" type: FLOATS floats: [3, 4] } }
        input { name: "x" type { tensor_type { elem_type: 1 shape {
          dim { dim_param: "n" } dim { dim_value: 2 } } } } }
        output { name: "z" } })",
    R"(ir_version: 10 opset_import { version: 26 } opset_import { domain: "ai.onnx.ml" version: 5 }
      graph { name: "lists"
        node { op_type: "TreeEnsemble" domain: "ai.onnx.ml" input: "x" output: "y"
          attribute { name: "n_targets" type: INT i: 1 }
          attribute { name: "tree_roots" type: INTS ints: 0 }
          attribute { name: "nodes_featureids" type: INTS ints: [0, 1] }
          attribute { name: "nodes_modes" type: TENSOR t {
            data_type: 2 dims: 2 int32_data: [6, 0] } }
          attribute { name: "nodes_splits" type: TENSOR t {
            data_type: 1 dims: 2 float_data: [0, 4] } }
          attribute { name: "nodes_truenodeids" type: INTS ints: [0, 1] }
          attribute { name: "nodes_falsenodeids" type: INTS ints: [1, 2] }
          attribute { name: "nodes_trueleafs" type: INTS ints: [1, 1] }
          attribute { name: "nodes_falseleafs" type: INTS ints: [0, 1] }
          attribute { name: "membership_values" type: TENSOR t {
            data_type: 1 dims: 4 float_data: [1, 2, 3, nan] } }
          attribute { name: "leaf_targetids" type: INTS ints: [0, 0, 0] }
          attribute { name: "leaf_weights" type: TENSOR t {
            data_type: 1 dims: 3 float_data: [1, 2, 3] } } }
        node { op_type: "CumProd" input: "y" input: "zero" output: "p" }
        node { op_type: "BitCast" input: "p" output: "b" attribute { name: "to" type: INT i: 6 } }
        node { op_type: "SplitToSequence" input: "x" output: "s"
          attribute { name: "axis" type: INT i: 1 } }
        node { op_type: "SequenceInsert" input: "s" input: "x" input: "zero" output: "t" }
        node { op_type: "ConcatFromSequence" input: "t" output: "c"
          attribute { name: "axis" type: INT i: 1 } }
        initializer { name: "zero" data_type: 7 int64_data: 0 }
        input { name: "x" type { tensor_type { elem_type: 1 shape {
          dim { dim_param: "n" } dim { dim_value: 2 } } } } }
        output { name: "b" } output { name: "c" } })",
};

inline onnx::ModelProto seed_model(uint64_t seed) {
  onnx::ModelProto model;
  std::string text(kOnnxSeeds[seed % std::size(kOnnxSeeds)]);
  HONE_CHECK(google::protobuf::TextFormat::ParseFromString(text, &model),
             "a seed is malformed:\n{}", text);
  return model;
}

// 0 where it does not fit.
inline size_t write_model(const onnx::ModelProto& model, uint8_t* data, size_t max_size) {
  const size_t size = model.ByteSizeLong();
  if (size > max_size) return 0;
  model.SerializeToArray(data, static_cast<int>(size));
  return size;
}

}  // namespace hone::fuzz
