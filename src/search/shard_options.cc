#include "search/shard_options.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "ir/op_facts.h"
#include "shard/data_flow.h"
#include "shard/partition.h"

namespace hone {
namespace {

// The exchanges within the loop or the branch that is divided so. None: it cannot be.
Result<std::optional<std::vector<MeshExchange>>> exchanges_within(const Graph& graph, NodeId n,
                                                                  const NodeDivision& division,
                                                                  const MeshRef& mesh,
                                                                  const ReshardPrice& price) {
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
  const Partition part = HONE_TRY(partition_exactly(alone, mesh, price));
  if (part.outputs != division.results) return std::optional<std::vector<MeshExchange>>();
  return std::optional(std::vector<MeshExchange>(part.messages.begin(), part.messages.end()));
}

// The factors of a node, or the dims of a value.
const std::vector<MeshParts>& places_of(const NodeDivision& one) {
  return one.axes.empty() ? one.results[0].dims : one.axes;
}

int64_t devices_of(const NodeDivision& one) {
  int64_t count = 1;
  for (const MeshParts& parts : places_of(one)) count *= count_of(parts);
  return count;
}

}  // namespace

ShardOptionFinder::ShardOptionFinder(const Graph& graph, MeshRef mesh, ShardPrices& prices,
                                     std::function<bool()> is_late)
    : graph_(graph),
      mesh_(std::move(mesh)),
      prices_(prices),
      is_late_(std::move(is_late)),
      special_(graph.value_count()) {
  if (graph.shardings() != nullptr) spread_stated();
}

const Sharding* ShardOptionFinder::stated(ValueId v) const {
  if (graph_.shardings() == nullptr) return nullptr;
  const std::vector<const Sharding*> all = graph_.shardings()->of(v);
  return all.empty() ? nullptr : all[0];
}

bool ShardOptionFinder::is_stated(NodeId n) const {
  for (const ValueId v : graph_.results(n))
    if (stated(v) != nullptr) return true;
  return false;
}

// `kind` combines the parts of a partial value.
bool ShardOptionFinder::fits(const ShardLayout& layout, std::string_view kind,
                             const Sharding* said) const {
  if (said == nullptr) return true;
  const ShardLayout wanted = layout_of(*said);
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    const bool is_it = said->dims[d].is_open ? is_prefix(wanted.dims[d], layout.dims[d])
                                             : wanted.dims[d] == layout.dims[d];
    if (!is_it) return false;
  }
  if (wanted.partial != layout.partial ||
      (!wanted.partial.empty() && name(said->partial_kind) != kind))
    return false;
  // An open dim takes no axis along which the value has copies.
  for (const MeshPart& copied : moving_parts(*mesh_, said->replicated))
    for (const MeshParts& parts : layout.dims)
      if (std::ranges::any_of(parts, [&](const MeshPart& part) { return clashes(part, copied); }))
        return false;
  return true;
}

// True if whole axes divide it, in the order of the mesh.
bool ShardOptionFinder::is_plain(const ShardLayout& layout) const {
  const auto is_plain_list = [&](const MeshParts& parts) {
    for (size_t i = 0; i < parts.size(); ++i)
      if (parts[i].size != mesh_->axes[parts[i].axis].size ||
          (i > 0 && parts[i].axis < parts[i - 1].axis))
        return false;
    return true;
  };
  return is_plain_list(layout.partial) && std::ranges::all_of(layout.dims, is_plain_list);
}

void ShardOptionFinder::spread_stated() {
  for (const auto& [v, said] : graph_.shardings()->values)
    if (&said == stated(v)) add_special(v, layout_of(said));
  for (const auto& [output, said] : graph_.shardings()->outputs)
    add_special(graph_.outputs()[output], layout_of(said));
  for (uint32_t i = static_cast<uint32_t>(graph_.node_count()); i-- > 0;) spread_back({i});
  for (const NodeId n : graph_.nodes()) spread_on(n);
  // An output that takes the place of an input lies as it does.
  for (const Donation& one : graph_.donations()) {
    const ValueId input = graph_.inputs()[one.input], output = graph_.outputs()[one.output];
    for (const ShardLayout& layout : std::vector(special_[output.index]))
      add_special(input, layout);
    for (const ShardLayout& layout : std::vector(special_[input.index]))
      add_special(output, layout);
  }
}

void ShardOptionFinder::add_special(ValueId v, const ShardLayout& layout) {
  std::vector<ShardLayout>& known = special_[v.index];
  if (!is_plain(layout) && std::ranges::find(known, layout) == known.end()) known.push_back(layout);
}

std::vector<NodeDivision> ShardOptionFinder::special_divisions(NodeId n,
                                                               const NodeDivider& divider) const {
  std::vector<NodeDivision> found;
  for (size_t i = 0; i < graph_.results(n).size(); ++i)
    for (const ShardLayout& layout : special_[graph_.result(n, i).index]) {
      std::vector<ShardLayout> results;
      for (const ValueId v : graph_.results(n)) results.push_back(undivided(graph_.type(v)));
      results[i] = layout;
      std::optional<NodeDivision> one = divider.division(divider.axes_of(results));
      if (one && one->results[i] == layout) found.push_back(std::move(*one));
    }
  return found;
}

// Operands may be divided as the results are.
void ShardOptionFinder::spread_back(NodeId n) {
  bool has_special = false;
  for (const ValueId v : graph_.results(n)) has_special = has_special || !special_[v.index].empty();
  if (!has_special || is_leaf(graph_.opcode(n))) return;
  const Result<NodeDivider> divider = NodeDivider::make(graph_, n);
  if (!divider.ok()) return;  // of_node() says it
  for (const NodeDivision& one : special_divisions(n, *divider))
    for (size_t i = 0; i < one.operands.size(); ++i)
      if (const ValueId v = graph_.operands(n)[i]; !v.is_none()) add_special(v, one.operands[i]);
}

// Results may be divided as an operand is.
void ShardOptionFinder::spread_on(NodeId n) {
  const std::span<const ValueId> operands = graph_.operands(n);
  if (std::ranges::all_of(operands,
                          [&](ValueId v) { return v.is_none() || special_[v.index].empty(); }))
    return;
  const Result<NodeDivider> divider = NodeDivider::make(graph_, n);
  if (!divider.ok()) return;
  const ShardingRule& rule = divider->rule();
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].is_none()) continue;
    for (const ShardLayout& layout : special_[operands[i].index]) {
      std::vector<MeshParts> axes(rule.factors.size());
      for (size_t f = 0; f < axes.size(); ++f) {
        const int factor = static_cast<int>(f);
        std::string reason;
        const MeshParts wanted = divider->axes_in(rule.operands[i], layout, factor);
        axes[f] = without_clashes(divider->fitting(factor, wanted, reason), axes);
      }
      const std::optional<NodeDivision> one = divider->division(axes);
      for (size_t k = 0; one && k < one->results.size(); ++k)
        add_special(graph_.result(n, k), one->results[k]);
    }
  }
}

std::vector<NodeDivision> ShardOptionFinder::layouts(ValueId v) const {
  std::vector<NodeDivision> options;
  for (ShardLayout& layout : layouts_of(graph_.type(v), *mesh_))
    options.push_back({.results = {std::move(layout)}});
  for (const ShardLayout& layout : special_[v.index])
    if (layout.partial.empty()) options.push_back({.results = {layout}});
  return options;
}

Result<std::vector<NodeDivision>> ShardOptionFinder::divided(NodeId n) const {
  const NodeDivider divider = HONE_TRY(NodeDivider::make(graph_, n));
  std::vector<NodeDivision> options = divisions_of(divider, *mesh_);
  std::ranges::move(special_divisions(n, divider), std::back_inserter(options));
  if (graph_.regions(n).empty()) return options;
  std::vector<NodeDivision> possible;
  for (NodeDivision& one : options) {
    // Where something is stated, the first ones may be otherwise.
    if (!possible.empty() && !is_stated(n) && is_late_()) break;
    std::optional<std::vector<MeshExchange>> within =
        HONE_TRY(exchanges_within(graph_, n, one, mesh_, prices_.steps()));
    if (!within && !possible.empty()) continue;
    if (within) one.exchanges = std::move(*within);
    possible.push_back(std::move(one));
  }
  return possible;
}

// A loop or a branch whose arrays lie as its results or else its operands say. No division by its
// rule has axes that divide one array along one dim, and another one along the next.
Result<std::optional<NodeDivision>> ShardOptionFinder::as_stated(NodeId n) const {
  if (graph_.regions(n).empty()) return std::optional<NodeDivision>();
  const auto said_of = [&](const FlowPlace& place) {
    const ValueId v =
        place.is_result ? graph_.result(n, place.index) : graph_.operands(n)[place.index];
    const Sharding* said = v.is_none() ? nullptr : stated(v);
    std::optional<ShardLayout> layout;
    if (said != nullptr) layout = layout_of(*said);
    if (layout && place.is_stacked) layout->dims.erase(layout->dims.begin());
    return layout;
  };
  const FlowLayouts flow = flow_layouts(graph_, n, [&](const FlowEdge& edge) {
    std::optional<ShardLayout> found;
    size_t rank = 0;
    for (const bool is_result : {true, false})
      for (const FlowPlace& place : edge) {
        if (place.region >= 0 || place.is_result != is_result) continue;
        const Type type = is_result ? graph_.type(graph_.result(n, place.index))
                                    : graph_.type(graph_.operands(n)[place.index]);
        rank = type.dims().size() - (place.is_stacked ? 1 : 0);
        if (!found) found = said_of(place);
      }
    return found ? *found : ShardLayout{.dims = std::vector<MeshParts>(rank)};
  });
  NodeDivision made = {.operands = flow.operands, .results = flow.results, .op = graph_.op(n)};
  for (size_t i = 0; i < made.results.size(); ++i) {
    const Sharding* said = stated(graph_.result(n, i));
    if (said != nullptr && layout_of(*said) != made.results[i])
      return std::optional<NodeDivision>();
  }
  std::optional<std::vector<MeshExchange>> within =
      HONE_TRY(exchanges_within(graph_, n, made, mesh_, prices_.steps()));
  if (!within) return std::optional<NodeDivision>();
  made.exchanges = std::move(*within);
  return std::optional(std::move(made));
}

Result<ShardOptions> ShardOptionFinder::of_node(NodeId n) {
  std::vector<NodeDivision> options;
  const Opcode opcode = graph_.opcode(n);
  if (is_parameter(opcode)) {
    options = layouts(graph_.result(n));
  } else if (is_constant(opcode)) {
    options.push_back({.results = {undivided(graph_.type(graph_.result(n)))}});
    return ShardOptions{.kept = std::move(options), .all = 1};
  } else {
    options = HONE_TRY(divided(n));
  }
  for (size_t i = 0; i < graph_.results(n).size(); ++i) {
    const Sharding* said = stated(graph_.result(n, i));
    std::erase_if(options,
                  [&](const NodeDivision& one) { return !fits(one.results[i], one.kind, said); });
    if (!options.empty()) continue;
    std::optional<NodeDivision> one = HONE_TRY(as_stated(n));
    if (!one)
      return unsupported("{} cannot be divided as it says, {}: {}",
                         graph_.label(graph_.result(n, i)), dims_text(*said), obstacle(n, i, *said))
          .with_hint("leave it out: prices divide it, or what it is made of");
    options.push_back(std::move(*one));
    break;
  }
  return limited(n, std::move(options));
}

Result<ShardOptions> ShardOptionFinder::of_output(uint32_t index) {
  const ValueId v = graph_.outputs()[index];
  const Sharding* said =
      graph_.shardings() == nullptr ? nullptr : graph_.shardings()->of_output(index);
  std::vector<NodeDivision> options = layouts(v);
  std::erase_if(options, [&](const NodeDivision& one) { return !fits(one.results[0], "", said); });
  if (options.empty())
    return unsupported("output {} cannot be divided as it says, {}: each device needs an element",
                       index, dims_text(*said))
        .with_hint("leave it out, or divide a dim of more elements");
  return limited(std::nullopt, std::move(options));
}

Result<std::optional<NodeDivision>> ShardOptionFinder::whole_node(NodeId n) const {
  if (is_stated(n)) return std::optional<NodeDivision>();
  if (is_leaf(graph_.opcode(n)))
    return std::optional(NodeDivision{.results = {undivided(graph_.type(graph_.result(n)))}});
  const NodeDivider divider = HONE_TRY(NodeDivider::make(graph_, n));
  return divider.division(std::vector<MeshParts>(divider.rule().factors.size()));
}

std::optional<NodeDivision> ShardOptionFinder::whole_output(uint32_t index) const {
  if (graph_.shardings() != nullptr && graph_.shardings()->of_output(index) != nullptr)
    return std::nullopt;
  return NodeDivision{.results = {undivided(graph_.type(graph_.outputs()[index]))}};
}

// Why no option of the node has this result.
std::string ShardOptionFinder::obstacle(NodeId n, size_t result, const Sharding& said) const {
  const ValueId v = graph_.result(n, result);
  const ShardLayout wanted = layout_of(said);
  for (size_t d = 0; d < wanted.dims.size(); ++d) {
    const int64_t size = graph_.type(v).dim(static_cast<int>(d)).value();
    if (covering(wanted.dims[d], size) != wanted.dims[d])
      return fmt::format("each device needs an element, and dim {} has {} for {} devices", d, size,
                         count_of(wanted.dims[d]));
  }
  const Result<NodeDivider> divider = NodeDivider::make(graph_, n);
  if (!divider.ok()) return divider.error().what();
  const TensorFactors& tensor = divider->rule().results[result];
  for (size_t d = 0; d < wanted.dims.size(); ++d)
    for (const int factor : tensor[d]) {
      std::string reason;
      const MeshParts axes = divider->axes_in(tensor, wanted, factor);
      if (!axes.empty() && divider->fitting(factor, axes, reason) != axes && !reason.empty())
        return reason;
    }
  if (!wanted.partial.empty())
    return fmt::format("its parts do not combine by {}", name(said.partial_kind));
  return "its parts would not be those of a dim";
}

Result<ShardOptions> ShardOptionFinder::limited(std::optional<NodeId> n,
                                                std::vector<NodeDivision> options) {
  ShardOptions made = {.kept = std::move(options)};
  made.all = made.kept.size();
  if (made.all <= kMostNodeOptions) return made;
  using Rank = std::tuple<double, int64_t, int64_t, size_t>;
  std::map<int64_t, std::vector<Rank>, std::greater<>> ranks;  // by devices
  for (size_t i = 0; i < made.all && (i == 0 || !is_late_()); ++i) {
    const NodeDivision& one = made.kept[i];
    double seconds = 0;
    int64_t bytes = 0;
    if (n && !is_leaf(graph_.opcode(*n))) {
      seconds = HONE_TRY(prices_.node(graph_, *n, one));
      for (size_t k = 0; k < one.operands.size(); ++k)
        if (const ValueId v = graph_.operands(*n)[k]; !v.is_none())
          bytes += local_type(graph_.type(v), one.operands[k]).static_bytes();
    }
    const int64_t places = std::ranges::count_if(
        places_of(one), [](const MeshParts& parts) { return !parts.empty(); });
    ranks[devices_of(one)].emplace_back(seconds, bytes, places, i);
  }
  std::vector<size_t> taken;
  size_t turns = 0;
  for (auto& [devices, all] : ranks) {
    std::ranges::sort(all);
    turns = std::max(turns, all.size());
  }
  for (size_t turn = 0; turn < turns; ++turn)
    for (const auto& [devices, all] : ranks)
      if (turn < all.size() && taken.size() < kMostNodeOptions)
        taken.push_back(std::get<size_t>(all[turn]));
  std::ranges::sort(taken);
  std::vector<NodeDivision> kept;
  for (const size_t i : taken) kept.push_back(std::move(made.kept[i]));
  made.kept = std::move(kept);
  return made;
}

}  // namespace hone
