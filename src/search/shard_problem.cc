#include "search/shard_problem.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "cost/system_timeline.h"
#include "ir/op_facts.h"
#include "shard/partition.h"

namespace hone {
namespace {

int64_t ticks_of_price(double seconds) {
  constexpr double kMost = 1e16;  // below what forbids
  return static_cast<int64_t>(std::llround(std::clamp(seconds * kShardTicks, 0.0, kMost)));
}

std::vector<int64_t> sizes_of_type(Type type) {
  const Ints dims = type.static_dims();
  return {dims.begin(), dims.end()};
}

int64_t element_bytes_of(Type type) {
  return std::max<int64_t>(1, type.static_bytes() / std::max<int64_t>(1, type.static_elements()));
}

// Devices exchange nothing within the loop or the branch, if it is divided so: nobody simulates
// exchanges in there.
Result<bool> is_quiet(const Graph& graph, NodeId n, const NodeDivision& division,
                      const MeshRef& mesh) {
  Graph alone;
  auto stated = std::make_shared<Shardings>();
  std::vector<ValueId> operands;
  for (size_t i = 0; i < division.operands.size(); ++i) {
    const ValueId v = graph.operands(n)[i];
    operands.push_back(v.is_none() ? v : alone.add_parameter(graph.type(v)));
    if (!v.is_none()) stated->add(operands.back(), sharding_of(mesh, division.operands[i]));
  }
  const std::span<const GraphRef> regions = graph.regions(n);
  const NodeId made =
      HONE_TRY(alone.append(graph.op(n), operands, {regions.begin(), regions.end()}));
  std::vector<ValueId> outputs;
  for (size_t i = 0; i < division.results.size(); ++i) {
    outputs.push_back(alone.result(made, i));
    stated->add(outputs.back(), sharding_of(mesh, division.results[i]));
  }
  alone.set_outputs(std::move(outputs));
  alone.set_shardings(std::move(stated));
  const Partition part = HONE_TRY(partition_exactly(alone, mesh));
  return part.outputs == division.results && !has_exchanges(part.graph);
}

class ProblemOfShards {
 public:
  ProblemOfShards(const Graph& graph, MeshRef mesh, ShardPrices& prices,
                  const ShardProblemOptions& options)
      : graph_(graph), mesh_(std::move(mesh)), prices_(prices), options_(options) {}

  Result<ShardProblem> make() {
    made_.problem.name = graph_.name();
    ends_.assign(graph_.node_count(), 0);
    for (const NodeId n : graph_.nodes()) {
      ends_[n.index] = n.index + 1;
      for (const ValueId v : graph_.operands(n))
        if (!v.is_none()) ends_[graph_.producer(v).index] = n.index + 1;
    }
    for (const ValueId v : graph_.outputs())
      ends_[graph_.producer(v).index] = std::ssize(ends_) + 1;
    for (const NodeId n : graph_.nodes()) HONE_TRY(add_node(n));
    for (uint32_t i = 0; i < graph_.outputs().size(); ++i) HONE_TRY(add_output(i));
    if (options_.counts_copies)
      for (const NodeId n : graph_.nodes()) add_copies(n);
    return std::move(made_);
  }

 private:
  const Sharding* stated(ValueId v) const {
    if (graph_.shardings() == nullptr) return nullptr;
    const std::vector<const Sharding*> all = graph_.shardings()->of(v);
    return all.empty() ? nullptr : all[0];
  }

  // `kind` combines the parts of a partial value.
  bool fits(const ShardLayout& layout, std::string_view kind, const Sharding* said) const {
    if (said == nullptr) return true;
    for (size_t d = 0; d < layout.dims.size(); ++d) {
      const MeshParts wanted = moving(said->dims[d].axes);
      const bool is_it =
          said->dims[d].is_open ? is_prefix(wanted, layout.dims[d]) : wanted == layout.dims[d];
      if (!is_it) return false;
    }
    const MeshParts partial = moving(said->partial);
    if (partial != layout.partial || (!partial.empty() && name(said->partial_kind) != kind))
      return false;
    // An open dim takes no axis along which the value has copies.
    for (const MeshPart& copied : moving(said->replicated))
      for (const MeshParts& parts : layout.dims)
        if (std::ranges::any_of(parts, [&](const MeshPart& part) { return clashes(part, copied); }))
          return false;
    return true;
  }

  // The parts of more than one device.
  MeshParts moving(const std::vector<AxisPart>& axes) const {
    MeshParts parts = mesh_parts(*mesh_, axes);
    std::erase_if(parts, [](const MeshPart& part) { return part.size == 1; });
    return parts;
  }

  Error cannot_be(const std::string& what, const Sharding& said) const {
    return unsupported("{} cannot be divided as it says, {}", what, dims_text(said))
        .with_hint("each device needs an element, and some ops need all of a dim");
  }

  Result<std::vector<NodeDivision>> options_of(NodeId n) const {
    std::vector<NodeDivision> options;
    const Opcode opcode = graph_.opcode(n);
    if (is_parameter(opcode)) {
      for (ShardLayout& layout : layouts_of(graph_.type(graph_.result(n)), *mesh_))
        options.push_back({.results = {std::move(layout)}});
    } else if (is_constant(opcode) || class_of(opcode) == OpClass::generator) {
      NodeDivision& whole = options.emplace_back();
      for (const ValueId v : graph_.operands(n))
        whole.operands.push_back(undivided(graph_.type(v)));
      for (const ValueId v : graph_.results(n)) whole.results.push_back(undivided(graph_.type(v)));
      whole.op = graph_.op(n);
      if (is_constant(opcode)) return options;
    } else {
      options = HONE_TRY(divided_options(n));
    }
    for (size_t i = 0; i < graph_.results(n).size(); ++i) {
      const Sharding* said = stated(graph_.result(n, i));
      std::erase_if(options,
                    [&](const NodeDivision& one) { return !fits(one.results[i], one.kind, said); });
      if (options.empty()) return cannot_be(graph_.label(graph_.result(n, i)), *said);
    }
    return options;
  }

  Result<std::vector<NodeDivision>> divided_options(NodeId n) const {
    std::vector<NodeDivision> options = divisions_of(
        HONE_TRY(NodeDivider::make(graph_, n)), *mesh_);
    if (graph_.regions(n).empty()) return options;
    std::vector<NodeDivision> quiet;
    for (NodeDivision& one : options) {
      const bool keeps = quiet.empty() || HONE_TRY(is_quiet(graph_, n, one, mesh_));
      if (keeps) quiet.push_back(std::move(one));
    }
    return quiet;
  }

  Status add_node(NodeId n) {
    std::vector<NodeDivision> options = HONE_TRY(options_of(n));
    AssignNode& node = made_.problem.nodes.emplace_back();
    node.begin = is_parameter(graph_.opcode(n)) || is_constant(graph_.opcode(n)) ? 0 : n.index;
    node.end = node.begin == 0 ? std::ssize(ends_) + 1 : ends_[n.index];
    for (const NodeDivision& one : options) {
      const double seconds = is_leaf(graph_.opcode(n)) ? 0 : HONE_TRY(prices_.node(graph_, n, one));
      node.costs.push_back(ticks_of_price(seconds));
      int64_t bytes = 0;
      for (size_t i = 0; i < one.results.size(); ++i)
        bytes += local_type(graph_.type(graph_.result(n, i)), one.results[i]).static_bytes();
      node.usages.push_back(bytes);
    }
    made_.options.push_back(std::move(options));
    for (size_t i = 0; i < graph_.operands(n).size(); ++i)
      if (const ValueId v = graph_.operands(n)[i]; !v.is_none()) {
        std::vector<const ShardLayout*> wanted;
        for (const NodeDivision& one : made_.options.back()) wanted.push_back(&one.operands[i]);
        HONE_TRY(add_edge(v, wanted));
      }
    return {};
  }

  Status add_output(uint32_t index) {
    const ValueId v = graph_.outputs()[index];
    const Sharding* said =
        graph_.shardings() == nullptr ? nullptr : graph_.shardings()->of_output(index);
    std::vector<NodeDivision> options;
    for (ShardLayout& layout : layouts_of(graph_.type(v), *mesh_))
      if (fits(layout, "", said)) options.push_back({.results = {std::move(layout)}});
    if (options.empty()) return cannot_be(fmt::format("output {}", index), *said);
    AssignNode& node = made_.problem.nodes.emplace_back();
    node.costs.assign(options.size(), 0);
    node.usages.assign(options.size(), 0);
    made_.options.push_back(std::move(options));
    std::vector<const ShardLayout*> wanted;
    for (const NodeDivision& one : made_.options.back()) wanted.push_back(&one.results[0]);
    HONE_TRY(add_edge(v, wanted));
    for (const Donation& one : graph_.donations())
      if (one.output == index) lie_alike(graph_.inputs()[one.input], said != nullptr);
    return {};
  }

  // The last node is an output that takes the place of this input, so each device has the same part
  // of both.
  void lie_alike(ValueId input, bool is_output_said) {
    if (is_output_said && stated(input) != nullptr) return;
    const uint32_t maker = graph_.producer(input).index;
    std::vector<int64_t> costs;
    for (const NodeDivision& given : made_.options[maker])
      for (const NodeDivision& next : made_.options.back())
        costs.push_back(given.results == next.results ? 0 : kForbiddenCost);
    join_last(maker, std::move(costs));
  }

  // The last node reads the value.
  Status add_edge(ValueId v, const std::vector<const ShardLayout*>& wanted) {
    const NodeId maker = graph_.producer(v);
    // A part of copies of one number is made where it is read.
    if (repeats_elements(graph_.opcode(maker)) &&
        graph_.type(graph_.operands(maker)[0]).rank() == 0)
      return {};
    const Type type = graph_.type(v);
    const std::vector<int64_t> sizes = sizes_of_type(type);
    std::vector<int64_t> costs;
    for (const NodeDivision& made : made_.options[maker.index])
      for (const ShardLayout* to : wanted)
        costs.push_back(ticks_of_price(options_.exchange_share *
                                       HONE_TRY(prices_.change(made.results[graph_.result_index(v)],
                                                               *to, sizes,
                                                               element_bytes_of(type)))));
    if (std::ranges::all_of(costs, [](int64_t cost) { return cost == 0; })) return {};
    join_last(maker.index, std::move(costs));
    return {};
  }

  void join_last(uint32_t node, std::vector<int64_t> costs) {
    const auto [table, is_new] =
        tables_.emplace(costs, static_cast<uint32_t>(made_.problem.tables.size()));
    if (is_new) made_.problem.tables.push_back(std::move(costs));
    made_.problem.edges.push_back(
        {node, static_cast<uint32_t>(made_.problem.nodes.size() - 1), table->second});
  }

  int64_t least_bytes(ValueId v) const {
    int64_t least = INT64_MAX;
    const size_t index = graph_.result_index(v);
    for (const NodeDivision& one : made_.options[graph_.producer(v).index])
      least = std::min(least, local_type(graph_.type(v), one.results[index]).static_bytes());
    return least;
  }

  // A node that takes the option of this one, for as long as it runs.
  void add_copies(NodeId n) {
    const std::vector<NodeDivision>& options = made_.options[n.index];
    std::vector<int64_t> usages(options.size(), 0);
    for (size_t i = 0; i < graph_.operands(n).size(); ++i) {
      const ValueId v = graph_.operands(n)[i];
      if (v.is_none()) continue;
      const int64_t least = least_bytes(v);
      for (size_t k = 0; k < options.size(); ++k)
        usages[k] += local_type(graph_.type(v), options[k].operands[i]).static_bytes() - least;
    }
    for (int64_t& usage : usages) usage = std::max<int64_t>(usage, 0);
    if (std::ranges::all_of(usages, [](int64_t usage) { return usage == 0; })) return;
    std::vector<int64_t> same(options.size() * options.size(), kForbiddenCost);
    for (size_t k = 0; k < options.size(); ++k) same[k * options.size() + k] = 0;
    AssignNode& node = made_.problem.nodes.emplace_back();
    node.begin = n.index;
    node.end = n.index + 1;
    node.costs.assign(options.size(), 0);
    node.usages = std::move(usages);
    join_last(n.index, std::move(same));
  }

  const Graph& graph_;
  const MeshRef mesh_;
  ShardPrices& prices_;
  const ShardProblemOptions options_;
  ShardProblem made_;
  std::vector<int64_t> ends_;  // the first moment at which a node's results are not needed
  std::map<std::vector<int64_t>, uint32_t> tables_;
};

}  // namespace

Result<ShardProblem> shard_problem(const Graph& graph, const MeshRef& mesh, ShardPrices& prices,
                                   const ShardProblemOptions& options) {
  return ProblemOfShards(graph, mesh, prices, options).make();
}

Graph with_assignment(const Graph& graph, const MeshRef& mesh, const ShardProblem& problem,
                      const Assignment& assignment) {
  auto all = std::make_shared<Shardings>();
  for (const NodeId n : graph.nodes()) {
    if (is_constant(graph.opcode(n))) continue;
    const NodeDivision& one = problem.options[n.index][assignment[n.index]];
    for (size_t i = 0; i < one.results.size(); ++i)
      all->values.emplace_back(graph.result(n, i), sharding_of(mesh, one.results[i], one.kind));
  }
  for (uint32_t i = 0; i < graph.outputs().size(); ++i) {
    const size_t at = graph.node_count() + i;
    all->outputs.emplace_back(i, sharding_of(mesh, problem.options[at][assignment[at]].results[0]));
  }
  Graph made = graph;
  made.set_shardings(std::move(all));
  return made;
}

}  // namespace hone
