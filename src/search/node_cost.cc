#include "search/node_cost.h"

#include <algorithm>

#include "ir/op_def.h"

namespace hone {
namespace {

constexpr double kView = 1e-8;    // a node more is never for nothing
constexpr double kLaunch = 2e-6;  // of a kernel
constexpr double kFlops = 0.5;    // the part of the peak that kernels reach

double bytes(std::span<const Type> types) {
  double sum = 0;
  for (Type type : types)
    if (type) sum += static_cast<double>(type.static_bytes());
  return sum;
}

}  // namespace

NodeCost node_cost(const Target& target, double fused) {
  const double rate = kFlops * std::max(target.peak(DType::f32), 1e9);
  const double bandwidth = std::max(target.memory_one_core, 1e9);
  return [=](const EGraph& egraph, NodeId n) {
    std::vector<Type> operands, results;
    std::vector<const Graph*> regions;
    for (ValueId v : egraph.operands(n)) operands.push_back(v.is_none() ? Type() : egraph.type(v));
    for (ValueId v : egraph.results(n)) results.push_back(egraph.type(v));
    for (const GraphRef& region : egraph.regions(n)) regions.push_back(region.get());
    const double moved = (bytes(operands) + bytes(results)) / bandwidth;
    const double work = flops({egraph.op(n), operands, regions}, results) / rate;
    switch (class_of(egraph.opcode(n))) {
      case OpClass::leaf:
      case OpClass::generator: return kView;
      case OpClass::elementwise: return kView + fused * std::max(moved, work);
      case OpClass::movement: {
        const bool is_free = slots_of(egraph.opcode(n), results[0].dtype()) == 0;
        return kView + (is_free ? 0 : 2 * fused * bytes(results) / bandwidth);
      }
      default: return kLaunch + std::max(moved, work);
    }
  };
}

}  // namespace hone
