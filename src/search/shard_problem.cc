#include "search/shard_problem.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <ranges>
#include <tuple>

#include "ir/op_facts.h"
#include "search/shard_options.h"
#include "shard/device_nodes.h"
#include "shard/whole_bytes.h"

namespace hone {
namespace {

int64_t ticks_of_price(double seconds) {
  constexpr double kMost = 1e17;  // 27 hours; below what forbids
  return static_cast<int64_t>(std::llround(std::clamp(seconds * kShardTicks, 0.0, kMost)));
}

std::vector<int64_t> sizes_of_type(Type type) {
  const Ints dims = type.static_dims();
  return {dims.begin(), dims.end()};
}

class ProblemOfShards {
 public:
  ProblemOfShards(const Graph& graph, MeshRef mesh, ShardPrices& prices,
                  const ShardProblemOptions& options)
      : graph_(graph),
        prices_(prices),
        options_(options),
        finder_(graph, std::move(mesh), prices, [this] { return is_late(); }) {}

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
    for (const NodeId n : graph_.nodes()) {
      HONE_TRY(add_node(n));
      options_.progress.advance();
    }
    for (uint32_t i = 0; i < graph_.outputs().size(); ++i) HONE_TRY(add_output(i));
    if (options_.counts_copies)
      for (const NodeId n : graph_.nodes()) add_copies(n);
    return std::move(made_);
  }

 private:
  std::vector<NodeDivision> taken(ShardOptions options) {
    made_.all_options += options.all;
    return std::move(options.kept);
  }

  bool is_late() {
    is_late_ = is_late_ || (options_.is_late && options_.is_late());
    return is_late_;
  }

  Result<std::vector<NodeDivision>> options_of_node(NodeId n) {
    if (is_late())
      if (std::optional<NodeDivision> whole = HONE_TRY(finder_.whole_node(n))) {
        ++made_.late;
        return std::vector{std::move(*whole)};
      }
    return taken(HONE_TRY(finder_.of_node(n)));
  }

  Result<std::vector<NodeDivision>> options_of_output(uint32_t index) {
    if (is_late())
      if (std::optional<NodeDivision> whole = finder_.whole_output(index);
          whole && lies_as_input(index, *whole)) {
        ++made_.late;
        return std::vector{std::move(*whole)};
      }
    std::vector<NodeDivision> options = taken(HONE_TRY(finder_.of_output(index)));
    // The first one stays if the time is over, so it is one that can be taken.
    const auto first = std::ranges::find_if(
        options, [&](const NodeDivision& one) { return lies_as_input(index, one); });
    if (first != options.end()) std::rotate(options.begin(), first, first + 1);
    return options;
  }

  // If the output takes the place of an input, that has such an option, too.
  bool lies_as_input(uint32_t index, const NodeDivision& one) const {
    for (const Donation& donation : graph_.donations()) {
      const NodeId maker = graph_.producer(graph_.inputs()[donation.input]);
      const auto& given = made_.options[maker.index];
      if (donation.output == index && std::ranges::none_of(given, [&](const NodeDivision& input) {
            return input.results == one.results;
          }))
        return false;
    }
    return true;
  }

  Status add_node(NodeId n) {
    std::vector<NodeDivision> options = HONE_TRY(options_of_node(n));
    if (!options_.exchanges_in_loops && !graph_.regions(n).empty())
      std::erase_if(options, [](const NodeDivision& one) { return !one.exchanges.empty(); });
    if (options.empty()) return inner_exchange(graph_, n);
    AssignNode& node = made_.problem.nodes.emplace_back();
    node.begin = is_parameter(graph_.opcode(n)) || is_constant(graph_.opcode(n)) ? 0 : n.index;
    node.end = node.begin == 0 ? std::ssize(ends_) + 1 : ends_[n.index];
    const bool is_given = is_leaf(graph_.opcode(n));  // options that cost nothing
    for (const NodeDivision& one : options) {
      if (!is_given && !node.costs.empty() && is_late()) break;
      node.costs.push_back(is_given ? 0 : ticks_of_price(HONE_TRY(prices_.node(graph_, n, one))));
      int64_t bytes = 0;
      for (size_t i = 0; i < one.results.size(); ++i)
        bytes += part_of_result(n, i, one).static_bytes();
      node.usages.push_back(bytes);
    }
    options.resize(node.costs.size());
    made_.options.push_back(std::move(options));
    for (size_t i = 0; i < graph_.operands(n).size(); ++i)
      if (const ValueId v = graph_.operands(n)[i]; !v.is_none())
        HONE_TRY(add_edge(v, [i](const NodeDivision& one) { return &one.operands[i]; }));
    return {};
  }

  Status add_output(uint32_t index) {
    const ValueId v = graph_.outputs()[index];
    const bool is_said =
        graph_.shardings() != nullptr && graph_.shardings()->of_output(index) != nullptr;
    std::vector<NodeDivision> options = HONE_TRY(options_of_output(index));
    AssignNode& node = made_.problem.nodes.emplace_back();
    node.costs.assign(options.size(), 0);
    node.usages.assign(options.size(), 0);
    made_.options.push_back(std::move(options));
    HONE_TRY(add_edge(v, [](const NodeDivision& one) { return &one.results[0]; }));
    for (const Donation& one : graph_.donations())
      if (one.output == index) lie_alike(graph_.inputs()[one.input], is_said);
    return {};
  }

  // The last node is an output that takes the place of this input, so each device has the same part
  // of both.
  void lie_alike(ValueId input, bool is_output_said) {
    if (is_output_said && finder_.stated(input) != nullptr) return;
    const uint32_t maker = graph_.producer(input).index;
    std::vector<int64_t> costs;
    for (const NodeDivision& given : made_.options[maker])
      for (const NodeDivision& next : made_.options.back())
        costs.push_back(given.results == next.results ? 0 : kForbiddenCost);
    join_last(maker, table_with(std::move(costs)));
  }

  // The last node reads the value, in the layout that `wanted` takes of an option.
  template <class Wanted>
  Status add_edge(ValueId v, const Wanted& wanted) {
    const NodeId maker = graph_.producer(v);
    // A part of copies of one number is made where it is read.
    if (repeats_elements(graph_.opcode(maker)) &&
        graph_.type(graph_.operands(maker)[0]).rank() == 0)
      return {};
    Change change = {.type = graph_.type(v)};
    for (const NodeDivision& one : made_.options[maker.index]) {
      change.held.push_back(&one.results[graph_.result_index(v)]);
      change.element_bytes.push_back(exchanged_bytes(one.made_as(change.type)));
    }
    for (const NodeDivision& one : made_.options.back()) change.wanted.push_back(wanted(one));
    ChangeKey key = {sizes_of_type(change.type), change.element_bytes, number_of(change.held),
                     number_of(change.wanted)};
    auto table = changes_.find(key);
    if (table == changes_.end()) {
      const std::optional<uint32_t> made = HONE_TRY(table_of(change));
      if (change.wanted.size() < made_.options.back().size()) {
        keep_options(change.wanted.size());
        std::get<3>(key) = number_of(change.wanted);
      }
      table = changes_.emplace(std::move(key), made).first;
    }
    if (table->second) join_last(maker.index, *table->second);
    return {};
  }

  // Equal lists have one number.
  uint32_t number_of(const std::vector<const ShardLayout*>& layouts) {
    std::vector<int64_t> text;
    for (const ShardLayout* layout : layouts) append_layout(*layout, text);
    return lists_.emplace(std::move(text), static_cast<uint32_t>(lists_.size())).first->second;
  }

  // A value from where it is made to where it is read, in each option.
  struct Change {
    Type type;
    std::vector<const ShardLayout*> held = {}, wanted = {};
    std::vector<int64_t> element_bytes = {};  // of each that is held: sums may be wider
  };

  // None: no pair costs anything. If the time is over, fewer are wanted.
  Result<std::optional<uint32_t>> table_of(Change& change) {
    const std::vector<int64_t> sizes = sizes_of_type(change.type);
    std::vector<std::vector<int64_t>> columns;
    for (const ShardLayout* to : change.wanted) {
      if (!columns.empty() && is_late()) break;
      std::vector<int64_t>& column = columns.emplace_back();
      for (size_t i = 0; i < change.held.size(); ++i)
        column.push_back(
            ticks_of_price(options_.exchange_share *
                           HONE_TRY(prices_.change(*change.held[i], *to, sizes,
                                                   change.element_bytes[i]))));
    }
    change.wanted.resize(columns.size());
    std::vector<int64_t> costs;
    for (size_t i = 0; i < change.held.size(); ++i)
      for (const std::vector<int64_t>& column : columns) costs.push_back(column[i]);
    if (std::ranges::all_of(costs, [](int64_t cost) { return cost == 0; }))
      return std::optional<uint32_t>();
    return std::optional(table_with(std::move(costs)));
  }

  // The first options of the last node alone.
  void keep_options(size_t count) {
    const auto last = static_cast<uint32_t>(made_.problem.nodes.size() - 1);
    AssignNode& node = made_.problem.nodes[last];
    const size_t had = node.costs.size();
    for (AssignEdge& edge : made_.problem.edges | std::views::reverse) {
      if (edge.second != last) break;
      std::vector<int64_t> costs;
      const std::vector<int64_t>& all = made_.problem.tables[edge.table];
      for (size_t at = 0; at < all.size(); ++at)
        if (at % had < count) costs.push_back(all[at]);
      edge.table = table_with(std::move(costs));
    }
    node.costs.resize(count);
    node.usages.resize(count);
    made_.options[last].resize(count);
  }

  uint32_t table_with(std::vector<int64_t> costs) {
    const auto [table, is_new] =
        tables_.emplace(costs, static_cast<uint32_t>(made_.problem.tables.size()));
    if (is_new) made_.problem.tables.push_back(std::move(costs));
    return table->second;
  }

  void join_last(uint32_t node, uint32_t table) {
    made_.problem.edges.push_back(
        {node, static_cast<uint32_t>(made_.problem.nodes.size() - 1), table});
  }

  Type part_of_result(NodeId n, size_t index, const NodeDivision& one) const {
    return local_type(one.made_as(graph_.type(graph_.result(n, index))), one.results[index]);
  }

  int64_t least_bytes(ValueId v) const {
    int64_t least = INT64_MAX;
    const size_t index = graph_.result_index(v);
    for (const NodeDivision& one : made_.options[graph_.producer(v).index])
      least = std::min(least, part_of_result(graph_.producer(v), index, one).static_bytes());
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
    join_last(n.index, table_with(std::move(same)));
  }

  const Graph& graph_;
  ShardPrices& prices_;
  const ShardProblemOptions options_;
  ShardOptionFinder finder_;
  ShardProblem made_;
  bool is_late_ = false;
  std::vector<int64_t> ends_;  // the first moment at which a node's results are not needed
  std::map<std::vector<int64_t>, uint32_t> tables_;  // by their contents
  std::map<std::vector<int64_t>, uint32_t> lists_;   // numbers of lists of layouts
  // The table of a change, by the value's sizes, the bytes of an element in each layout that it may
  // be made in, and both lists.
  using ChangeKey = std::tuple<std::vector<int64_t>, std::vector<int64_t>, uint32_t, uint32_t>;
  std::map<ChangeKey, std::optional<uint32_t>> changes_;
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
