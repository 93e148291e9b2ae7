#include "search/graph_price.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "cost/plan_cost.h"
#include "ir/winograd.h"
#include "planner/complete_once.h"
#include "planner/schedules.h"
#include "rewrite/transforms.h"
#include "rewrite/weights.h"

namespace hone {
namespace {

// The passes of prepare() that change what plans are for, of a graph of primitive ops: what makes
// weights of weights, before those have stand-ins, and the others.
constexpr std::string_view kBefore[] = {"phases"};
constexpr std::string_view kQuick[] = {"fold",    "splats", "cse",   "names",
                                       "unshare", "names",  "donate"};

Result<Graph> run(const Graph& graph, std::span<const std::string_view> names) {
  std::vector<Pass> passes;
  for (std::string_view name : names)
    passes.push_back(*std::ranges::find(all_passes(), name, &Pass::name));
  return run_passes(graph, passes, passes_of_prepare());
}

// Equal for weights that are computed alike.
uint64_t identity(const Graph& graph, const ComputedWeight& weight) {
  std::unordered_map<uint32_t, uint64_t> hashes;  // by node
  for (NodeId n : weight.constants) hashes[n.index] = graph.constant(n).content_hash();
  for (NodeId n : weight.nodes) {
    Hasher hasher(graph.op(n).hash());
    for (ValueId v : graph.operands(n))
      hasher.add(v.is_none() ? uint64_t{0} : hashes[graph.producer(v).index]);
    hashes[n.index] = hasher.value();
  }
  return hashes[weight.nodes.back().index];
}

}  // namespace

GraphPrice::GraphPrice(const Target& target, const Cost& cost, const GraphPriceOptions& options)
    : target_(target), cost_(cost), options_(options) {}

Result<double> GraphPrice::exact(const Graph& graph) { return planned(HONE_TRY(prepare(graph))); }

Result<double> GraphPrice::quick(const Graph& graph) {
  const Graph dense = HONE_TRY(run(graph, kBefore));
  const Graph plain = HONE_TRY(run(HONE_TRY(with_stand_ins(dense)), kQuick));
  const auto points = [&](const Tensor& weights, const ConvOrder& order) {
    return points_of(weights, order);
  };
  return planned(HONE_TRY(permit_transforms_by(plain, points)));
}

Result<double> GraphPrice::planned(const Graph& prepared) {
  Plan partial;
  partial.threads = options_.threads;
  // The sum of prices decides here, so a model of whole plans chooses no plan that it calls dearer.
  const Plan plan = HONE_TRY(complete_once(prepared, std::move(partial), target_, cost_,
                                           {.cancel = options_.cancel, .known = &store_}));
  const std::unique_ptr<PlanEditor> editor = HONE_TRY(PlanEditor::open(prepared, plan, target_));
  PlanCost price(*editor, cost_, store_, planner_schedules(target_, cost_, store_));
  return price.seconds();
}

// ---- Weights ------------------------------------------------------------------------------------

Result<Graph> GraphPrice::with_stand_ins(const Graph& graph) {
  return replace_weights(
      graph, [&](const Graph& from, const ComputedWeight& weight) -> Result<Tensor> {
        const uint64_t id = identity(from, weight);
        // No price reads the elements, but where all are equal they are in the code.
        const auto fill = [](std::span<std::byte> bytes) {
          std::memset(bytes.data(), 0, bytes.size());
          if (!bytes.empty()) bytes[0] = std::byte{1};
        };
        Tensor stand_in = Tensor::lazy(from.type(weight.value), id, fill);
        const auto by_size = [&](NodeId n) { return from.type(from.result(n)).static_bytes(); };
        if (!weight.constants.empty())
          made_from_.try_emplace(stand_in.content_hash(),
                                 from.constant(std::ranges::max(weight.constants, {}, by_size)));
        return stand_in;
      });
}

// permit_transforms() reads all weights each time.
int64_t GraphPrice::points_of(const Tensor& weights, const ConvOrder& order) {
  const auto origin = made_from_.find(weights.content_hash());
  const Tensor& read = origin == made_from_.end() ? weights : origin->second;
  if (read.type().rank() != weights.type().rank()) return 0;
  const auto [at, is_new] = points_.try_emplace(read.content_hash(), 0);
  if (is_new) at->second = winograd_points(read, order);
  return at->second;
}

}  // namespace hone
