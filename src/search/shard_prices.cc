#include "search/shard_prices.h"

#include <algorithm>
#include <numeric>

#include "cost/program_price.h"
#include "ir/op_facts.h"
#include "planner/complete_once.h"
#include "program/lower/lower.h"
#include "rewrite/prepare.h"
#include "shard/mesh_program.h"
#include "timeline/jobs.h"

namespace hone {
namespace {

// The share of its bytes that a node moves which is fused into others.
constexpr double kFusedShare = 0.25;

double bytes_of(std::span<const Type> types) {
  double bytes = 0;
  for (const Type type : types)
    if (type) bytes += static_cast<double>(type.static_bytes());
  return bytes;
}

bool is_mostly_fused(Opcode opcode) {
  const OpClass kind = class_of(opcode);
  return kind == OpClass::elementwise || kind == OpClass::movement || kind == OpClass::generator;
}

// The bytes that a group has together: what a device receives is all but its share of it.
int64_t whole_bytes(const MeshExchange& one) {
  const int64_t bytes = one.bytes / one.times, count = count_of(one.axes);
  if (one.kind == ReshardKind::permute) return bytes;
  const int64_t moved = one.kind == ReshardKind::all_reduce ? bytes / 2 : bytes;
  return moved / (count - 1) * count;
}

CollectiveKind kind_of(ReshardKind kind) {
  switch (kind) {
    case ReshardKind::all_gather: return CollectiveKind::all_gather;
    case ReshardKind::all_to_all: return CollectiveKind::all_to_all;
    case ReshardKind::reduce_scatter: return CollectiveKind::reduce_scatter;
    case ReshardKind::permute: return CollectiveKind::permute;
    default: return CollectiveKind::all_reduce;
  }
}

}  // namespace

void append_layout(const ShardLayout& layout, std::vector<int64_t>& numbers) {
  const auto append = [&](const MeshParts& parts) {
    numbers.push_back(std::ssize(parts));
    for (const MeshPart& part : parts)
      numbers.insert(numbers.end(), {static_cast<int64_t>(part.axis), part.before, part.size});
  };
  for (const MeshParts& dim : layout.dims) append(dim);
  append(layout.partial);
}

ShardPrices::ShardPrices(const System& system, std::span<const std::shared_ptr<const Cost>> costs,
                         MeshRef mesh, const CancelToken* cancel, MeshPlace place,
                         std::shared_ptr<NodeSeconds> known)
    : system_(system),
      costs_(costs.begin(), costs.end()),
      mesh_(std::move(mesh)),
      cancel_(cancel),
      place_(std::move(place)),
      collectives_(system),
      nodes_(known != nullptr ? std::move(known) : std::make_shared<NodeSeconds>()) {
  if (!place_.targets.empty()) return;
  place_.targets.resize(system.targets.size());
  std::iota(place_.targets.begin(), place_.targets.end(), size_t{0});
}

double ShardPrices::copied(double bytes) const {
  double most = 0;
  for (const size_t target : place_.targets) most = std::max(most, costs_[target]->copy(bytes));
  return most;
}

Result<double> ShardPrices::planned(const Graph& alone, size_t target) const {
  const Graph ready = HONE_TRY(prepare(alone));
  const Plan plan = HONE_TRY(
      complete_once(ready, {}, system_.targets[target], *costs_[target], {.cancel = cancel_}));
  const Program program = HONE_TRY(lower(ready, plan, system_.targets[target], cancel_));
  return HONE_TRY(price(program, *costs_[target])).total();
}

Result<double> ShardPrices::node(const Graph& graph, NodeId n, const NodeDivision& division) {
  if (is_leaf(graph.opcode(n))) return 0.0;
  double seconds = HONE_TRY(computed(graph, n, division));
  for (const MeshExchange& one : division.exchanges) seconds += HONE_TRY(exchange(one));
  return seconds;
}

Result<double> ShardPrices::computed(const Graph& graph, NodeId n, const NodeDivision& division) {
  const bool has_regions = !graph.regions(n).empty();
  Graph alone;
  std::vector<ValueId> operands;
  std::vector<Type> types;
  for (size_t i = 0; i < graph.operands(n).size(); ++i) {
    const ValueId v = graph.operands(n)[i];
    if (v.is_none()) {
      operands.push_back(v);
      continue;
    }
    types.push_back(has_regions ? graph.type(v) : division.types[i]);
    operands.push_back(alone.add_parameter(types.back()));
  }
  const std::span<const GraphRef> regions = graph.regions(n);
  const NodeId made =
      HONE_TRY(alone.append(division.op, operands, {regions.begin(), regions.end()}));
  std::vector<ValueId> outputs;
  for (const ValueId v : alone.results(made)) {
    outputs.push_back(v);
    types.push_back(alone.type(v));
  }
  alone.set_outputs(std::move(outputs));
  const double moved = copied(bytes_of(types));
  if (is_mostly_fused(graph.opcode(n))) return kFusedShare * moved;
  double most = 0;
  for (const size_t target : place_.targets) {
    const std::pair key(target, structural_hash(alone));
    auto found = nodes_->find(key);
    if (found == nodes_->end()) {
      const Result<double> seconds = planned(alone, target);
      if (!seconds.ok() && seconds.error().code() == ErrorCode::interrupted)
        return Error(seconds.error());
      // Who cannot plan it fails later, by name.
      found = nodes_->emplace(key, seconds.ok() ? *seconds : moved).first;
    }
    most = std::max(most, found->second);
  }
  // The devices along all axes that divide a loop or a branch share its work.
  int64_t share = 1;
  if (has_regions)
    for (const MeshParts& parts : division.axes) share *= count_of(parts);
  return most / static_cast<double>(share);
}

// The groups of devices of the system that do it at once.
std::vector<Collective> ShardPrices::groups_of(const MeshExchange& exchange, Collective one) const {
  for (size_t i = 0; i + 1 < exchange.pairs.size(); i += 2)
    one.pairs.emplace_back(exchange.pairs[i], exchange.pairs[i + 1]);
  if (exchange.axes.empty()) {
    one.devices.resize(static_cast<size_t>(mesh_->device_count()));
    std::iota(one.devices.begin(), one.devices.end(), 0);
    if (!place_.devices.empty()) one.devices = place_.devices;
    return {std::move(one)};
  }
  const auto count = static_cast<int32_t>(count_of(exchange.axes));
  for (int32_t from = 0; exchange.hop != 0 && from < count; ++from)
    if (const auto to = from + static_cast<int32_t>(exchange.hop); to >= 0 && to < count)
      one.pairs.emplace_back(from, to);
  const Ints members = groups_along(*mesh_, exchange.axes);
  std::vector<Collective> groups;
  for (auto at = members.begin(); at != members.end(); at += count) {
    one.devices = {at, at + count};
    if (!place_.devices.empty())
      for (int32_t& member : one.devices) member = place_.devices[static_cast<size_t>(member)];
    groups.push_back(one);
  }
  return groups;
}

// Seconds of groups that do the same.
Result<double> ShardPrices::sent(const std::vector<Collective>& groups, int64_t element_bytes) {
  const auto members = static_cast<int64_t>(groups[0].devices.size());
  if (place_.sends_directly && 2 * members * members * std::ssize(groups) <= kMostPricedMessages)
    return collective_seconds(groups, {.algorithm = CollectiveAlgorithm::direct}, element_bytes,
                              system_);
  return HONE_TRY(collectives_.best(groups, element_bytes)).seconds;
}

// If each group of devices along the axes does the same.
Result<double> ShardPrices::exchange(const MeshExchange& exchange) {
  Collective one = {
      .kind = kind_of(exchange.kind),
      .devices = {},
      .elements = std::max<int64_t>(1, whole_bytes(exchange) / exchange.element_bytes)};
  std::vector<int64_t> key = {static_cast<int64_t>(exchange.kind), one.elements,
                              exchange.element_bytes, exchange.hop};
  append_layout({.dims = {exchange.axes}}, key);
  key.insert(key.end(), exchange.pairs.begin(), exchange.pairs.end());
  auto known = exchanges_.find(key);
  if (known == exchanges_.end()) {
    const Result<double> seconds =
        sent(groups_of(exchange, std::move(one)), exchange.element_bytes);
    // No timeline has as many messages, or it takes longer than one lasts.
    if (!seconds.ok() && seconds.error().code() != ErrorCode::limit) return Error(seconds.error());
    known = exchanges_.emplace(std::move(key), seconds.ok() ? *seconds : kMaxTimeline).first;
  }
  return known->second * static_cast<double>(exchange.times);
}

ReshardPrice ShardPrices::steps() {
  constexpr std::ptrdiff_t kMostAxes = 4;
  const auto axes =
      std::ranges::count_if(mesh_->axes, [](const MeshAxis& axis) { return axis.size > 1; });
  if (axes < 2 || axes > kMostAxes) return nullptr;
  return [this](const ReshardStep& step, int64_t element_bytes) {
    if (!is_exchange(step.kind)) return 0.0;
    const Result<double> seconds = exchange(exchange_of(*mesh_, step, element_bytes));
    return seconds.ok() ? *seconds : kMaxTimeline;  // change() tells the error of a step it takes
  };
}

// A way depends on what may divide the sizes, not on their order, and on the bytes of the value.
std::vector<int64_t> ShardPrices::key_of_change(const ShardLayout& from, const ShardLayout& to,
                                                const std::vector<int64_t>& sizes,
                                                int64_t element_bytes) const {
  std::vector<std::vector<int64_t>> dims;
  int64_t rest = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    int64_t divided = sizes[d];
    if (!has_padding(from.dims[d], divided) && !has_padding(to.dims[d], divided))
      divided = std::gcd(divided, mesh_->device_count());
    rest *= sizes[d] / divided;
    std::vector<int64_t>& dim = dims.emplace_back(1, divided);
    append_layout({.dims = {from.dims[d], to.dims[d]}}, dim);
  }
  std::ranges::sort(dims);
  std::vector<int64_t> key = {element_bytes, rest};
  for (const std::vector<int64_t>& dim : dims) key.insert(key.end(), dim.begin(), dim.end());
  append_layout({.dims = {from.partial}, .partial = to.partial}, key);
  return key;
}

Result<double> ShardPrices::change(const ShardLayout& from, const ShardLayout& to,
                                   const std::vector<int64_t>& sizes, int64_t element_bytes) {
  if (from == to) return 0.0;
  std::vector<int64_t> key = key_of_change(from, to, sizes, element_bytes);
  if (const auto known = changes_.find(key); known != changes_.end()) return known->second;
  const auto cut_bytes = static_cast<double>(part_bytes(to, sizes, element_bytes));
  double seconds = 0;
  for (const ReshardStep& step : reshard_steps(from, to, sizes, element_bytes, steps()))
    seconds += is_exchange(step.kind) ? HONE_TRY(exchange(exchange_of(*mesh_, step, element_bytes)))
                                      : kFusedShare * copied(cut_bytes);
  changes_.emplace(std::move(key), seconds);
  return seconds;
}

}  // namespace hone
