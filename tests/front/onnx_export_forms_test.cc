#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>

#include "base/temporary_files.h"
#include "front/onnx/onnx.h"
#include "front/onnx/proto.h"
#include "ir/functional.h"
#include "ir/reference/evaluate_model.h"
#include "oracle/compare.h"
#include "zoo/inputs.h"
#include "zoo/zoo.h"

// The forms in which graphs are written: those of PyTorch's exporter, which other engines fuse.

namespace hone::HONE_FILE {
namespace {

using Counts = std::map<std::string, int>;

struct Written {
  Counts ops;
  Model again;
};

Written written(const Graph& graph) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::filesystem::path path = folder.path() / "model.onnx";
  EXPECT_TRUE(save_onnx(path, model_of(graph), {}).ok());
  onnx::ModelProto proto;
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(proto.ParseFromIstream(&file));
  Written result;
  for (const onnx::NodeProto& node : proto.graph().node()) ++result.ops[node.op_type()];
  Result<Model> model = load_onnx(path, {});
  EXPECT_TRUE(model.ok()) << model.error().to_string();
  if (model.ok()) result.again = std::move(*model);
  return result;
}

// The ops of the file; it computes what the graph computes.
Counts ops_of(const Graph& graph) {
  const Written file = written(graph);
  const std::vector<Tensor> inputs = random_inputs(graph, 1).value();
  const std::vector<Tensor> expected = evaluate(graph, inputs).value();
  const Result<std::vector<Tensor>> actual = evaluate_model(file.again, inputs);
  EXPECT_TRUE(actual.ok()) << actual.error().to_string();
  for (size_t i = 0; actual.ok() && i < expected.size(); ++i) {
    const Result<Comparison> same = compare((*actual)[i], expected[i], {1e-5, 1e-6});
    EXPECT_TRUE(same.ok() && same->passed()) << "output " << i;
  }
  return file.ops;
}

Graph graph_of(const std::function<Value(Builder&)>& make) {
  Builder b("g");
  const Value result = make(b);
  return b.finish({result}).value();
}

const Type kMatrix = Type::get(DType::f32, {3, 4});

TEST(OnnxExportForms, WhatAnOpRepeatsByItselfIsNotExpanded) {
  EXPECT_EQ(ops_of(graph_of([](Builder& b) {
              return b.parameter("x", kMatrix) +
                     broadcast(b.parameter("bias", Type::get(DType::f32, {4})), {3, 4}, {1});
            })),
            (Counts{{"Add", 1}}));
  // A column has to say that it is one.
  EXPECT_EQ(ops_of(graph_of([](Builder& b) {
              return broadcast(b.parameter("bias", Type::get(DType::f32, {3})), {3, 4}, {0}) *
                     b.parameter("x", kMatrix);
            })),
            (Counts{{"Unsqueeze", 1}, {"Mul", 1}}));
}

TEST(OnnxExportForms, ARowAndAColumnMakeAMatrix) {
  EXPECT_EQ(ops_of(graph_of([](Builder& b) {
              const Value column = b.parameter("x", Type::get(DType::f32, {3}));
              const Value row = b.parameter("y", Type::get(DType::f32, {4}));
              return select(
                  compare("lt", broadcast(column, {3, 4}, {0}), broadcast(row, {3, 4}, {1})),
                  b.parameter("z", kMatrix), b.full(DType::f32, {3, 4}, 7));
            })),
            (Counts{{"Unsqueeze", 1}, {"Less", 1}, {"Where", 1}}));
}

TEST(OnnxExportForms, OneOperandHasTheDimsOfTheResult) {
  EXPECT_EQ(ops_of(graph_of([](Builder& b) {
              const Value row =
                  broadcast(b.parameter("x", Type::get(DType::f32, {4})), {3, 4}, {1});
              return row + broadcast(b.parameter("y", Type::get(DType::f32, {4})), {3, 4}, {1});
            })),
            (Counts{{"Expand", 1}, {"Add", 1}}));
  EXPECT_EQ(ops_of(graph_of([](Builder& b) {
              const Value one =
                  broadcast(b.parameter("x", Type::get(DType::f32, {1, 4})), {3, 4}, {0, 1});
              return one / one;
            })),
            (Counts{{"Expand", 1}, {"Div", 1}}));
}

TEST(OnnxExportForms, ProductsAreMatMulAndGemm) {
  auto product = [](Dims left, Dims right, Ints batch, int64_t from, int64_t with) {
    return ops_of(graph_of([&](Builder& b) {
      return dot_general(b.parameter("x", Type::get(DType::f32, left)),
                         b.parameter("y", Type::get(DType::f32, right)), batch, batch, {from},
                         {with});
    }));
  };
  EXPECT_EQ(product({2, 3, 4}, {4, 5}, {}, 2, 0), (Counts{{"MatMul", 1}}));
  EXPECT_EQ(product({2, 3, 4}, {5, 4}, {}, 2, 1), (Counts{{"Transpose", 1}, {"MatMul", 1}}));
  EXPECT_EQ(product({2, 4, 3}, {5, 4}, {}, 1, 1), (Counts{{"Transpose", 2}, {"MatMul", 1}}));
  EXPECT_EQ(product({3, 4}, {5, 4}, {}, 1, 1), (Counts{{"Gemm", 1}}));
  EXPECT_EQ(product({4, 3}, {5, 4}, {}, 0, 1), (Counts{{"Gemm", 1}}));
  EXPECT_EQ(product({2, 3, 4}, {2, 5, 4}, {0}, 2, 2), (Counts{{"Transpose", 1}, {"MatMul", 1}}));
  EXPECT_EQ(product({3, 2, 4}, {4, 2, 5}, {1}, 2, 0), (Counts{{"Transpose", 2}, {"MatMul", 1}}));
  EXPECT_EQ(product({2, 3, 4}, {5, 4, 6}, {}, 2, 1), (Counts{{"Einsum", 1}}));
}

Value in_steps(Value x, int axis, int sum_axis) {
  const Value e = exp(x - reduce_max(x, {axis}, true));
  return e / reduce_sum(e, {sum_axis}, true);
}

TEST(OnnxExportForms, SoftmaxInStepsIsSoftmax) {
  for (int axis : {0, 1, 2})
    EXPECT_EQ(ops_of(graph_of([&](Builder& b) {
                return in_steps(b.parameter("x", Type::get(DType::f32, {3, 3, 3})), axis, axis);
              })),
              (Counts{{"Softmax", 1}}));
  // The largest of one axis and the sum over another.
  EXPECT_FALSE(ops_of(graph_of([&](Builder& b) {
                 return in_steps(b.parameter("x", Type::get(DType::f32, {3, 3, 3})), 0, 1);
               })).contains("Softmax"));
  EXPECT_FALSE(ops_of(graph_of([&](Builder& b) {
                 const Value x = b.parameter("x", kMatrix), y = b.parameter("y", kMatrix);
                 const Value e = exp(x - reduce_max(y, {1}, true));
                 return e / reduce_sum(e, {1}, true);
               })).contains("Softmax"));
}

TEST(OnnxExportForms, TransformersAreWrittenAsPyTorchWritesThem) {
  for (const char* name : {"bert_base", "vit_b16", "gpt2"}) {
    const Graph graph = build_zoo_model(name, {.size = ZooSize::tiny}).value();
    const Counts ops = ops_of(graph);
    EXPECT_EQ(ops.at("Softmax"), 2) << name;  // one a layer
    for (const char* other : {"Einsum", "Exp", "ReduceMax", "Identity"})
      EXPECT_FALSE(ops.contains(other)) << name << ": " << other;
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
