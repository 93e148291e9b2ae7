#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/text.h"
#include "ir/functional.h"
#include "rewrite/passes.h"
#include "tests/ir/composite_testing.h"

namespace hone::testing {
namespace {

using In = std::span<const Value>;

Graph einsum_graph(std::string_view equation, const std::vector<Type>& types) {
  return graph_of(op_of(fmt::format("einsum {{equation = \"{}\"}}", equation)), types).value();
}

std::string texts(const Graph& graph) {
  std::string text;
  for (NodeId n : graph.nodes()) {
    if (graph.opcode(n) == Opcode::parameter) continue;
    text += fmt::format("{} {}; ", graph.op(n).name(), graph.op(n).attrs_to_string());
  }
  return text;
}

std::string texts_of(const std::vector<Type>& types) {
  std::string text;
  for (const Type& type : types) text += type.to_string() + " ";
  return text;
}

// `equation` comes back from its expansion as `plain`: all dims are letters.
void expect_back(std::string_view equation, std::string_view plain,
                 const std::vector<std::string_view>& operands,
                 std::source_location where = std::source_location::current()) {
  ::testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), equation);
  std::vector<Type> types;
  for (std::string_view text : operands) types.push_back(type_of(text));
  const Graph graph = einsum_graph(equation, types);
  const Graph back = passed(passed(graph, expand_composites), raise_einsum);
  EXPECT_EQ(structural_hash(back), structural_hash(einsum_graph(plain, types))) << texts(back);
  // And it stays.
  EXPECT_EQ(structural_hash(passed(back, raise_einsum)), structural_hash(back));
}

void expect_back(std::string_view equation, const std::vector<std::string_view>& operands,
                 std::source_location where = std::source_location::current()) {
  expect_back(equation, equation, operands, where);
}

TEST(RaiseEinsum, OneOperand) {
  expect_back("ij->ji", {"f32[2, 3]"});
  expect_back("ijk->kij", {"f32[2, 3, 4]"});
  expect_back("ij->i", {"f32[2, 3]"});
  expect_back("ij->", {"i32[2, 3]"});
  expect_back("ijk->ki", {"f32[2, 3, 4]"});
  expect_back("ii->i", {"f32[3, 3]"});
  expect_back("ii->", {"f32[3, 3]"});
  expect_back("iij->ji", {"f32[3, 3, 2]"});
  expect_back("iii->i", {"f32[3, 3, 3]"});
  expect_back("ijij->ij", {"f32[2, 3, 2, 3]"});
}

TEST(RaiseEinsum, TwoOperands) {
  expect_back("ij,jk->ik", {"f32[2, 3]", "f32[3, 4]"});
  expect_back("ij,jk->ki", {"f32[2, 3]", "f32[3, 4]"});
  expect_back("ij,kj->ik", {"i8[2, 3]", "i8[4, 3]"});
  expect_back("i,j->ij", {"f32[2]", "f32[3]"});
  expect_back("i,j->ji", {"f32[2]", "f32[3]"});
  expect_back("i,i->", {"f32[3]", "f32[3]"});
  expect_back("ij,ij->ij", {"f32[2, 3]", "f32[2, 3]"});
  expect_back("bij,bjk->bik", {"f32[2, 3, 4]", "f32[2, 4, 5]"});
  expect_back("bhqd,bhkd->bhqk", {"f32[2, 3, 4, 5]", "f32[2, 3, 6, 5]"});
  expect_back("bqhd,bkhd->bhqk", {"f32[2, 4, 3, 5]", "f32[2, 6, 3, 5]"});
  expect_back("ijk,jil->kl", {"f32[2, 3, 4]", "f32[3, 2, 5]"});
  expect_back("ijk,l->il", {"f32[2, 3, 4]", "f32[5]"});
  expect_back("ii,ij->j", {"f32[3, 3]", "f32[3, 2]"});
  expect_back("ij,k->k", {"f32[2, 3]", "f32[4]"});
  expect_back(",ij->ji", {"f32[]", "f32[2, 3]"});
}

TEST(RaiseEinsum, ManyOperands) {
  expect_back("ij,jk,kl->il", {"f32[2, 3]", "f32[3, 4]", "f32[4, 5]"});
  expect_back("bn,anm,bm->ba", {"f32[2, 3]", "f32[4, 3, 5]", "f32[2, 5]"});
  expect_back("i,i,i,i->i", {"f32[3]", "f32[3]", "f32[3]", "f32[3]"});
  expect_back("i,j,k->kji", {"f32[2]", "f32[3]", "f32[4]"});
}

TEST(RaiseEinsum, ImplicitResultsEllipsisAndStretchedOnes) {
  expect_back("ij,jk", "ij,jk->ik", {"f32[2, 3]", "f32[3, 4]"});
  expect_back("ba", "ba->ab", {"f32[2, 3]"});
  expect_back("...b,ba", "Xb,ba->Xa", {"f32[5, 2]", "f32[2, 3]"});
  expect_back("...ij,...jk->...ik", "XYij,XYjk->XYik", {"f32[2, 3, 4, 5]", "f32[2, 3, 5, 2]"});
  expect_back("...ij,...jk->...ik", "XYij,Yjk->XYik", {"f32[2, 3, 4, 5]", "f32[3, 5, 2]"});
  expect_back("i...->...i", "iXY->XYi", {"f32[2, 3, 4]"});
  expect_back("i...j->...", "iXj->X", {"f32[2, 3, 4]"});
  expect_back("ij,ij->ij", {"f32[1, 3]", "f32[2, 3]"});
  expect_back("ij,ij->ij", {"f32[1, 3]", "f32[2, 1]"});
  expect_back("ij,jk->ik", {"f32[2, 1]", "f32[3, 4]"});
  expect_back("...i,...i->...", "XYi,XYi->XY", {"f32[2, 1, 3]", "f32[1, 4, 3]"});
}

TEST(RaiseEinsum, EmptyAndSymbolicDims) {
  expect_back("ij,jk->ik", {"f32[2, 0]", "f32[0, 3]"});
  expect_back("bij,bjk->bki", {"f32[N, M, 3]", "f32[N, 3, K]"});
  expect_back("ii->i", {"f32[M, M]"});
}

// The graph that `body` builds, after the pass.
std::string ops_after(std::initializer_list<std::string_view> parameters,
                      const std::function<std::vector<Value>(In)>& body) {
  Builder b("test");
  std::vector<Value> values;
  for (std::string_view text : parameters) values.push_back(b.parameter("", type_of(text)));
  return texts(passed(b.finish(body(values)).value(), raise_einsum));
}

TEST(RaiseEinsum, TakesWhatStandsAroundADot) {
  EXPECT_EQ(ops_after({"f32[2, 3]", "f32[4, 3]"},
                      [](In in) {
                        Value y = matmul(in[0], transpose(in[1], {1, 0}));
                        return std::vector<Value>{transpose(y, {1, 0})};
                      }),
            "einsum {equation = \"ab,cb->ca\"}; ");
  // An einsum sums what one operand alone has before the product: a sum behind it is another one.
  EXPECT_EQ(ops_after({"f32[2, 3]", "f32[4, 3]"},
                      [](In in) {
                        Value y = matmul(in[0], transpose(in[1], {1, 0}));
                        return std::vector<Value>{reduce_sum(transpose(y, {1, 0}), {0})};
                      }),
            "einsum {equation = \"ab,cb->ca\"}; einsum {equation = \"ab->b\"}; ");
}

TEST(RaiseEinsum, WhatOthersUseStays) {
  EXPECT_EQ(ops_after({"f32[2, 3]", "f32[3, 4]"},
                      [](In in) {
                        Value y = matmul(in[0], in[1]);
                        return std::vector<Value>{transpose(y, {1, 0}), y};
                      }),
            "einsum {equation = \"ab,bc->ac\"}; einsum {equation = \"ab->ba\"}; ");
  // Dots on the right are no part of a chain from left to right.
  EXPECT_EQ(
      ops_after({"f32[2, 3]", "f32[3, 4]", "f32[4, 5]"},
                [](In in) { return std::vector<Value>{matmul(in[0], matmul(in[1], in[2]))}; }),
      "einsum {equation = \"ab,bc->ac\"}; einsum {equation = \"ab,bc->ac\"}; ");
  EXPECT_EQ(
      ops_after({"f32[2, 3]"}, [](In in) { return std::vector<Value>{reduce_max(in[0], {1})}; }),
      "reduce {kind = max, axes = [1]}; ");
}

TEST(RaiseEinsum, ReachesIntoRegions) {
  Builder b("test");
  Value x = b.parameter("x", DType::f32, {3, 3});
  Value p = b.parameter("p", DType::boolean, {});
  const Value arguments[] = {x};
  const std::vector<Value> y = if_else(
      p, arguments, [](Builder&, In in) { return std::vector<Value>{matmul(in[0], in[0])}; },
      [](Builder&, In in) { return std::vector<Value>{in[0]}; });
  const Graph graph = passed(b.finish(y).value(), raise_einsum);
  EXPECT_EQ(texts(*graph.regions(graph.producer(graph.outputs()[0]))[0]),
            "einsum {equation = \"ab,bc->ac\"}; ");
}

TEST(RaiseEinsum, RandomEquationsComeBackAndKeepTheirValue) {
  Rng rng(11);
  for (int round = 0; round < 300; ++round) {
    // Letters a to d of sizes 2, 3, 4 and 3; a result of distinct letters that operands have.
    const int64_t sizes[] = {2, 3, 4, 3};
    std::string equation, seen, result;
    std::vector<Type> types;
    std::vector<Tensor> inputs;
    const size_t count = 1 + rng.below(4);
    for (size_t k = 0; k < count; ++k) {
      Ints dims;
      if (k > 0) equation += ',';
      for (size_t i = rng.below(4); i > 0; --i) {
        const size_t letter = rng.below(4);
        equation += static_cast<char>('a' + letter);
        seen += equation.back();
        dims.push_back(sizes[letter]);
      }
      inputs.push_back(Array::random(dims, static_cast<uint64_t>(round) * 8 + k).tensor());
      types.push_back(inputs.back().type());
    }
    for (char c : seen)
      if (rng.chance(0.5) && result.find(c) == std::string::npos)
        result.insert(rng.below(result.size() + 1), 1, c);
    equation += "->" + result;
    SCOPED_TRACE(equation);
    const Graph graph = einsum_graph(equation, types);
    const Graph expanded = passed(graph, expand_composites);
    const Graph back = passed(expanded, raise_einsum);
    EXPECT_EQ(difference((*evaluate(back, inputs))[0], (*evaluate(graph, inputs))[0], 1e-12), "");
    if (count == 1 && result == seen) {
      // The einsum is its operand, and that is what comes back.
      EXPECT_EQ(back.outputs()[0], back.inputs()[0]);
      continue;
    }
    EXPECT_EQ(structural_hash(back), structural_hash(graph)) << texts(back);
  }
}

// Where "..." and dims of 1 leave a choice of letters, another equation with the same expansion may
// come back: one einsum all the same.
TEST(RaiseEinsum, RandomEllipsesAndOnesComeBack) {
  Rng rng(12);
  size_t identities = 0;
  for (int round = 0; round < 300; ++round) {
    // Letters a to c of sizes 2, 3 and 4; "..." stands for up to two dims of 3 and 2.
    const int64_t sizes[] = {2, 3, 4}, dots[] = {3, 2};
    std::string equation, seen;
    std::vector<Type> types;
    std::vector<Tensor> inputs;
    const size_t count = 1 + rng.below(3);
    for (size_t k = 0; k < count; ++k) {
      Ints dims;
      if (k > 0) equation += ',';
      const size_t letters = rng.below(4), ellipsis = rng.below(letters + 1);
      for (size_t i = 0; i <= letters; ++i) {
        if (i == ellipsis) {
          equation += "...";
          for (size_t d = rng.below(3); d > 0; --d)
            dims.push_back(rng.chance(0.3) ? 1 : dots[2 - d]);
        }
        if (i == letters) break;
        const size_t letter = rng.below(3);
        const char c = static_cast<char>('a' + letter);
        // All of a term's dims with one letter are alike.
        const size_t term = equation.rfind(',') == std::string::npos ? 0 : equation.rfind(',');
        const bool again = equation.find(c, term) != std::string::npos;
        dims.push_back(!again && rng.chance(0.2) ? 1 : sizes[letter]);
        equation += c;
        seen += c;
      }
      inputs.push_back(Array::random(dims, static_cast<uint64_t>(round) * 8 + k).tensor());
      types.push_back(inputs.back().type());
    }
    if (rng.chance(0.7)) {
      std::string result;
      for (char c : seen)
        if (rng.chance(0.5) && result.find(c) == std::string::npos)
          result.insert(rng.below(result.size() + 1), 1, c);
      equation += "->" + result.insert(rng.below(result.size() + 1), "...");
    }
    const Result<Graph> graph =
        graph_of(op_of(fmt::format("einsum {{equation = \"{}\"}}", equation)), types);
    if (!graph.ok()) continue;  // a letter twice in a term, as 1 and as more
    SCOPED_TRACE(equation + " of " + texts_of(types));
    const Graph expanded = passed(*graph, expand_composites);
    const Graph back = passed(expanded, raise_einsum);
    EXPECT_EQ(difference((*evaluate(back, inputs))[0], (*evaluate(*graph, inputs))[0], 1e-12), "");
    EXPECT_EQ(structural_hash(passed(back, expand_composites)), structural_hash(expanded));
    if (back.outputs()[0] == back.inputs()[0]) {
      ++identities;
      EXPECT_EQ(types[0], back.type(back.outputs()[0]));
      EXPECT_EQ(count, 1U);
    } else {
      EXPECT_EQ(back.node_count(), count + 1) << texts(back);
      EXPECT_EQ(back.opcode(back.producer(back.outputs()[0])), Opcode::einsum);
    }
  }
  EXPECT_LT(identities, 60U);
}

}  // namespace
}  // namespace hone::testing
