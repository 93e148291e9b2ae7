#pragma once

#include <set>

#include "base/rng.h"
#include "ir/functional.h"
#include "kernel/kernel_body.h"
#include "kernel/schedule_space.h"
#include "kernel/update.h"
#include "tests/program/kernel_testing.h"

// Bodies of kernels for tests: random groups of random graphs, and random contractions.

namespace hone {

inline std::vector<NodeId> op_nodes(const Graph& graph) {
  std::vector<NodeId> nodes;
  for (NodeId node : graph.nodes())
    if (graph.opcode(node) != Opcode::parameter && graph.opcode(node) != Opcode::constant)
      nodes.push_back(node);
  return nodes;
}

inline KernelBody body_of_all(const Graph& graph) { return body_of(graph, op_nodes(graph), {}); }

// A legal group that grew from a random node along random edges.
inline std::vector<NodeId> random_group(const Graph& graph, const Users& users, Rng& rng) {
  std::vector<NodeId> all = op_nodes(graph);
  std::vector<NodeId> group = {rng.pick(all)};
  if (!check_group(graph, users, group).ok()) return {};
  const uint64_t wanted = 1 + rng.below(8);
  for (int attempt = 0; attempt < 24 && group.size() < wanted; ++attempt) {
    std::set<NodeId> larger(group.begin(), group.end());
    // One more node, or with it what stands between, so that results are not read outside.
    for (uint64_t more = 1 + rng.below(3); more > 0; --more) {
      std::vector<NodeId> inside(larger.begin(), larger.end());
      const NodeId from = rng.pick(inside);
      std::vector<NodeId> near;
      for (ValueId operand : graph.operands(from))
        if (!operand.is_none()) near.push_back(graph.producer(operand));
      for (ValueId result : graph.results(from))
        for (NodeId user : users.of(result)) near.push_back(user);
      if (near.empty()) continue;
      const NodeId node = rng.pick(near);
      if (graph.opcode(node) != Opcode::parameter && graph.opcode(node) != Opcode::constant)
        larger.insert(node);
    }
    const std::vector<NodeId> nodes(larger.begin(), larger.end());
    if (check_group(graph, users, nodes).ok()) group = nodes;
  }
  return group;
}

// True if results depend on the order of sums.
inline bool sums_reals(const Graph& graph) {
  for (NodeId node : graph.nodes()) {
    const Opcode opcode = graph.opcode(node);
    if (opcode == Opcode::dot || opcode == Opcode::conv || opcode == Opcode::reduce ||
        opcode == Opcode::window_reduce || opcode == Opcode::cumulative)
      if (is_real(graph.type(graph.result(node)).dtype())) return true;
  }
  return false;
}

// Donates parameters to outputs that may lie in them.
inline void donate_some(KernelBody& body, Rng& rng) {
  Graph& graph = body.graph;
  const std::vector<NodeId> nodes = op_nodes(graph);
  std::set<uint32_t> taken;
  for (uint32_t o = 0; o < graph.outputs().size(); ++o) {
    for (uint32_t i = 0; i < graph.inputs().size(); ++i) {
      const ValueId x = graph.inputs()[i], y = graph.outputs()[o];
      if (graph.type(x) != graph.type(y) || !body.inputs[i].is_row_major() ||
          !body.outputs[o].is_row_major() || !check_elementwise(graph, nodes, x).ok() ||
          rng.chance(0.3) || !taken.insert(i).second)
        continue;
      graph.add_donation(i, o);
      break;
    }
  }
}

// A contraction of any kind with something before and after it.
class RandomGemm {
 public:
  explicit RandomGemm(Rng& rng) : rng_(rng) {}

  Graph graph() {
    dtype_ = rng_.pick(kTypes);
    Value y = rng_.chance(0.5) ? dot() : conv();
    if (rng_.chance(0.5)) {
      const int axis = static_cast<int>(rng_.below(static_cast<uint64_t>(y.rank())));
      Value bias = parameter({y.dim(axis)});
      y = y + broadcast(bias, y.dims(), {axis});
    }
    if (rng_.chance(0.3)) y = maximum(y, 0);
    if (rng_.chance(0.3)) {
      Ints permutation;
      for (int d = 0; d < y.rank(); ++d) permutation.push_back(d);
      rng_.shuffle(permutation);
      y = transpose(y, permutation);
    }
    if (rng_.chance(0.2)) y = reshape(y, {-1});
    if (rng_.chance(0.3)) y = parameter(y.dims()) - y;
    return b_.finish({y}).value();
  }

 private:
  static constexpr DType kTypes[] = {DType::f32, DType::f32, DType::f64, DType::bf16, DType::i32};

  Dim size(int64_t most) { return rng_.between(1, most); }

  Value parameter(const Dims& dims) {
    return b_.parameter(fmt::format("p{}", count_++), dtype_, dims);
  }
  Value operand(const Dims& dims) {
    Value x = parameter(dims);
    if (rng_.chance(0.2)) x = maximum(x, 0);
    if (rng_.chance(0.2)) x = pad(slice(x, 0, 0, x.dim(0) - 1), ones(x, 0), ones(x, 1));
    return x;
  }
  // `at` along axis 0, nothing along the others.
  static Ints ones(Value x, int64_t at) {
    Ints pads(static_cast<size_t>(x.rank()), 0);
    pads[0] = at;
    return pads;
  }

  Value dot() {
    const Dim batch = size(3), depth = size(9);
    const bool has_batch = rng_.chance(0.4), is_transposed = rng_.chance(0.5);
    Dims lhs = {size(20), depth}, rhs = {depth, size(20)};
    Ints contract_lhs = {1}, contract_rhs = {0}, batches;
    if (is_transposed) std::swap(rhs[0], rhs[1]), contract_rhs = {1};
    if (rng_.chance(0.3)) lhs.push_back(size(5));
    if (has_batch) {
      lhs.insert(lhs.begin(), batch);
      rhs.insert(rhs.begin(), batch);
      ++contract_lhs[0], ++contract_rhs[0];
      batches = {0};
    }
    return b_.op(Opcode::dot, {operand(lhs), operand(rhs)},
                 {{"lhs_batch", batches},
                  {"rhs_batch", batches},
                  {"lhs_contract", contract_lhs},
                  {"rhs_contract", contract_rhs}});
  }

  Value conv() {
    const int64_t groups = rng_.chance(0.2) ? 2 : 1, kernel = rng_.between(1, 3);
    const int64_t in = rng_.between(1, 3);
    const Dims x = {size(2), in * groups, rng_.between(3, 7), rng_.between(3, 9)};
    const Dims w = {rng_.between(1, 6) * groups, in, kernel, rng_.between(1, 3)};
    return b_.op(Opcode::conv, {operand(x), operand(w)},
                 {{"stride", Ints{rng_.between(1, 2), rng_.between(1, 2)}},
                  {"pad_low", Ints{rng_.between(0, 1), rng_.between(0, 2)}},
                  {"pad_high", Ints{rng_.between(0, 1), rng_.between(0, 2)}},
                  {"groups", groups}});
  }

  Rng& rng_;
  Builder b_;
  DType dtype_ = DType::f32;
  int count_ = 0;
};

// A random schedule by the algorithm, which the body should permit.
inline Schedule random_schedule_by(Algorithm algorithm, const KernelBody& body,
                                   const Target& target, Rng& rng) {
  Schedule schedule = random_schedule(body, target, rng);
  for (int i = 0; i < 100 && schedule.algorithm() != algorithm; ++i)
    schedule = random_schedule(body, target, rng);
  EXPECT_EQ(schedule.algorithm(), algorithm) << print(body.graph);
  return schedule;
}

inline std::vector<Tensor> random_inputs(const Graph& graph, Rng& rng,
                                         const Specials& specials = {}) {
  std::vector<Tensor> inputs;
  for (Type type : graph.input_types())
    inputs.push_back(with_specials(
        type, specials, rng, [&] { return rng.uniform(-1, 1); },
        [&] { return rng.between(-9, 9); }));
  return inputs;
}

// On random numbers, special ones among them if that is asked for.
inline void check_drawn_kernel(const KernelBody& body, const Schedule& schedule,
                               const Specials& specials, Rng& rng) {
  const std::vector<Tensor> inputs = random_inputs(body.graph, rng, specials);
  if (specials.any())
    check_on_specials(body, schedule, inputs);
  else
    check_kernel(body, schedule, inputs, 16);
}

}  // namespace hone
