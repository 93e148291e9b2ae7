#include "oracle/shrink.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "ir/op_facts.h"
#include "oracle/graph_sizes.h"
#include "oracle/sized_op.h"

namespace hone {

namespace {

constexpr std::string_view kKinds[] = {"batch", "layers", "width"};

std::string_view kind_of(const ModelSizes& sizes, int dim) {
  if (sizes.is_steps(dim)) return kKinds[1];
  return sizes.is_summed(dim) ? kKinds[2] : kKinds[0];
}

std::vector<int64_t> primes_of(int64_t number) {
  std::vector<int64_t> primes;
  for (int64_t p = 2; p * p <= number; ++p)
    for (; number % p == 0; number /= p) primes.push_back(p);
  if (number > 1) primes.push_back(number);
  return primes;
}

// ---- What is divided ----------------------------------------------------------------------------

class Divider {
 public:
  Divider(const Graph& graph, ModelSizes& sizes, const ShrinkOptions& options)
      : graph_(graph), sizes_(sizes), options_(options) {}

  Status keep() {
    for (const std::string& what : options_.keep)
      for (int dim : HONE_TRY(named(what))) sizes_.classes().pin(dim);
    return {};
  }

  // From sizes as they were given.
  Status run() {
    sizes_.classes().reset();
    for (const ShrinkOptions::Division& division : options_.divide) HONE_TRY(divide(division));
    if (options_.operations > 0) divide_largest();
    return {};
  }

 private:
  // One dim of each class.
  Result<std::vector<int>> named(const std::string& what) const {
    const SizeClasses& classes = sizes_.classes();
    std::vector<int> found;
    if (const size_t colon = what.rfind(':'); colon != std::string::npos) {
      found.push_back(HONE_TRY(dim_of_input(what.substr(0, colon), what.substr(colon + 1))));
    } else if (const Result<int64_t> size = parse_int(what); size.ok()) {
      for (int c : classes.classes())
        if (classes.largest(c) * classes.divisor(c) == *size) found.push_back(c);
      if (found.empty()) return usage_error("no dim has the size {}", what).with_hint(kWhat);
    } else if (std::ranges::count(kKinds, what) != 0) {
      for (int c : classes.classes())
        if (kind_of(sizes_, c) == what) found.push_back(c);
    } else {
      return usage_error("'{}' names no dims", what).with_hint(kWhat);
    }
    return found;
  }

  Result<int> dim_of_input(const std::string& name, const std::string& axis) const {
    const Result<int64_t> number = parse_int(axis);
    for (ValueId v : graph_.inputs()) {
      if (graph_.name(v) != name) continue;
      if (!number.ok() || *number < 0 || *number >= graph_.type(v).rank())
        return usage_error("input '{}' has {} dims, and none is dim {}", name,
                           graph_.type(v).rank(), axis);
      return sizes_.top().dim(v, static_cast<int>(*number));
    }
    return usage_error("the model has no input '{}'", name)
        .with_hint("'hone inspect' lists the inputs");
  }

  Status divide(const ShrinkOptions::Division& division) {
    SizeClasses& classes = sizes_.classes();
    const std::vector<int> dims = HONE_TRY(named(division.what));
    std::map<int, int64_t> before;
    for (int dim : dims) before[dim] = classes.divisor(dim);
    bool is_done = division.factor == 1;
    for (int64_t prime : primes_of(division.factor))
      for (int dim : dims) {
        if (classes.divisor(dim) % (before[dim] * division.factor) == 0)
          is_done = true;
        else if (classes.divide(dim, prime))
          is_done = is_done || classes.divisor(dim) % (before[dim] * division.factor) == 0;
      }
    if (is_done) return {};
    std::string reason = "there is no such dim";
    if (!dims.empty() && classes.is_pinned(dims[0]))
      reason = "a constant or an op of the model fixes its size";
    else if (!dims.empty())
      reason = fmt::format("its size is {}, and others are divided with it",
                           classes.size(dims[0]) * classes.divisor(dims[0]));
    return unsupported("'{}' cannot be divided by {}: {}", division.what, division.factor, reason)
        .with_hint("'hone shrink MODEL' without -o shows the sizes that can be divided");
  }

  // The largest sizes first: all that are equal, so that equal layers stay equal.
  void divide_largest() {
    SizeClasses& classes = sizes_.classes();
    std::set<int> stuck;
    while (sizes_.operations() > options_.operations) {
      std::vector<int> largest;
      for (int c : classes.classes()) {
        if (classes.is_pinned(c) || stuck.contains(c)) continue;
        if (!largest.empty() && classes.largest(c) < classes.largest(largest[0])) continue;
        if (!largest.empty() && classes.largest(c) > classes.largest(largest[0])) largest.clear();
        largest.push_back(c);
      }
      if (largest.empty()) return;
      std::map<int, int64_t> before;
      for (int c : largest) before[c] = classes.divisor(c);
      for (int c : largest) {
        if (classes.divisor(c) != before[c]) continue;
        bool divided = false;
        for (int64_t prime : primes_of(classes.common(c)))
          if (divided = classes.divide(c, prime); divided) break;
        if (!divided) stuck.insert(c);
      }
    }
  }

  static constexpr std::string_view kWhat =
      "name a dim of an input as INPUT:DIM, a size, or batch, layers or width";

  const Graph& graph_;
  ModelSizes& sizes_;
  const ShrinkOptions& options_;
};

// ---- Sizes that ops do not take -----------------------------------------------------------------

class Checker {
 public:
  explicit Checker(ModelSizes& sizes) : sizes_(sizes) {}

  // Pins the sizes that some op does not take as they are. False: there is none.
  bool pin_refused() { return pin_refused(sizes_.top()); }

  NodeTypes types(const GraphSizes& one, NodeId n) const {
    const Graph& graph = *one.graph;
    NodeTypes types = {graph.operand_types(n), graph.result_types(n)};
    for (size_t i = 0; i < types.operands.size(); ++i)
      if (types.operands[i])
        types.operands[i] = sizes_.sized(types.operands[i], one.dim(graph.operands(n)[i], 0));
    for (size_t i = 0; i < types.results.size(); ++i)
      types.results[i] = sizes_.sized(types.results[i], one.dim(graph.result(n, i), 0));
    return types;
  }

 private:
  bool pin_refused(const GraphSizes& one) {
    const Graph& graph = *one.graph;
    bool found = false;
    for (NodeId n : graph.nodes()) {
      if (is_leaf(graph.opcode(n))) continue;
      if (const auto regions = one.regions.find(n.index); regions != one.regions.end()) {
        for (const GraphSizes& region : regions->second) found = pin_refused(region) || found;
        continue;
      }
      const NodeTypes before = {graph.operand_types(n), graph.result_types(n)};
      const NodeTypes behind = types(one, n);
      if (before == behind || sized_op(graph.op(n), before, behind, {}, 0)) continue;
      pin_cause(one, n, before, behind);
      found = true;
    }
    return found;
  }

  // The class that the op refuses even if all others stay; all, if only several do it.
  void pin_cause(const GraphSizes& one, NodeId n, const NodeTypes& before,
                 const NodeTypes& behind) {
    const Graph& graph = *one.graph;
    std::map<int, NodeTypes> alone;  // by class: it alone is divided
    const auto look = [&](ValueId v, Type type, Type sized, size_t i, bool is_result) {
      for (int d = 0; type && d < type.rank(); ++d) {
        if (type.dim(d) == sized.dim(d)) continue;
        NodeTypes& types =
            alone.try_emplace(sizes_.classes().class_of(one.dim(v, d)), before).first->second;
        Type& changed = is_result ? types.results[i] : types.operands[i];
        Dims dims(changed.dims().begin(), changed.dims().end());
        dims[static_cast<size_t>(d)] = sized.dim(d);
        changed = changed.with_dims(dims);
      }
    };
    for (size_t i = 0; i < before.operands.size(); ++i)
      look(graph.operands(n)[i], before.operands[i], behind.operands[i], i, false);
    for (size_t i = 0; i < before.results.size(); ++i)
      look(graph.result(n, i), before.results[i], behind.results[i], i, true);
    bool found = false;
    for (const auto& [c, types] : alone) {
      if (sized_op(graph.op(n), before, types, {}, 0)) continue;
      sizes_.classes().pin(c);
      found = true;
    }
    for (const auto& [c, types] : alone)
      if (!found) sizes_.classes().pin(c);
  }

  ModelSizes& sizes_;
};

// ---- The graph ----------------------------------------------------------------------------------

Result<Graph> sized_graph(const ModelSizes& sizes, const GraphSizes& one, const Checker& checker);

Result<ValueId> sized_node(const ModelSizes& sizes, const GraphSizes& one, const Checker& checker,
                           NodeId n, std::vector<ValueId>& map, Graph& made) {
  const Graph& graph = *one.graph;
  std::vector<GraphRef> regions;
  std::vector<const Graph*> seen;
  if (const auto found = one.regions.find(n.index); found != one.regions.end())
    for (const GraphSizes& region : found->second) {
      regions.push_back(std::make_shared<Graph>(HONE_TRY(sized_graph(sizes, region, checker))));
      seen.push_back(regions.back().get());
    }
  const auto steps = one.steps.find(n.index);
  const NodeTypes before = {graph.operand_types(n), graph.result_types(n)};
  const NodeTypes behind = checker.types(one, n);
  std::optional<Op> op = graph.op(n);
  if (before != behind || !regions.empty())
    op = sized_op(*op, before, behind, seen,
                  steps == one.steps.end() ? 0 : sizes.classes().size(steps->second));
  if (!op)
    return unsupported("op '{}' does not take the smaller sizes", graph.op(n).name())
        .at(graph.describe(n));
  std::vector<ValueId> operands;
  for (ValueId v : graph.operands(n)) operands.push_back(v.is_none() ? v : map[v.index]);
  const NodeId copy = HONE_TRY(made.append(*op, operands, std::move(regions)));
  for (size_t i = 0; i < graph.results(n).size(); ++i) {
    map[graph.result(n, i).index] = made.result(copy, i);
    made.set_name(made.result(copy, i), graph.name(graph.result(n, i)));
  }
  return made.result(copy);
}

Result<Graph> sized_graph(const ModelSizes& sizes, const GraphSizes& one, const Checker& checker) {
  const Graph& graph = *one.graph;
  Graph made(graph.name());
  std::vector<ValueId> map(graph.value_count());
  for (NodeId n : graph.nodes()) {
    if (!is_leaf(graph.opcode(n))) {
      HONE_TRY(sized_node(sizes, one, checker, n, map, made));
      continue;
    }
    const ValueId v = graph.result(n);
    const Type type = sizes.sized(graph.type(v), one.dim(v, 0));
    map[v.index] = is_parameter(graph.opcode(n))
                       ? made.add_parameter(type, graph.name(v))
                       : made.add_constant(cut_to(graph.constant(n), type), graph.name(v));
  }
  std::vector<ValueId> outputs;
  for (ValueId v : graph.outputs()) outputs.push_back(map[v.index]);
  made.set_outputs(std::move(outputs));
  for (Donation donation : graph.donations()) made.add_donation(donation.input, donation.output);
  return made;
}

// ---- What changed -------------------------------------------------------------------------------

std::vector<SizeChange> changes_of(const Graph& graph, const ModelSizes& sizes) {
  const SizeClasses& classes = sizes.classes();
  std::map<int, std::string> where;
  for (ValueId v : graph.inputs())
    for (int i = 0; i < graph.type(v).rank(); ++i) {
      std::string& text = where[classes.class_of(sizes.top().dim(v, i))];
      constexpr size_t kLongest = 40;
      if (text.size() > kLongest) continue;
      text += fmt::format("{}{}:{}", text.empty() ? "" : ", ", graph.name(v), i);
      if (text.size() > kLongest) text += ", ...";
    }
  std::map<std::tuple<int64_t, int64_t, std::string_view>, SizeChange> rows;
  for (int c : classes.classes()) {
    if (classes.divisor(c) == 1) continue;
    const int64_t behind = classes.largest(c), before = behind * classes.divisor(c);
    const std::string_view kind = kind_of(sizes, c);
    SizeChange& row = rows[{-before, -behind, kind}];
    row.before = before;
    row.behind = behind;
    row.kind = kind;
    if (row.where.empty()) row.where = where[c];
    ++row.classes;
  }
  std::vector<SizeChange> changes;
  for (auto& [key, row] : rows) changes.push_back(std::move(row));
  return changes;
}

}  // namespace

Result<Shrunk> shrink(const Graph& graph, const ShrinkOptions& options) {
  if (!graph.is_static())
    return unsupported("sizes of '{}' are open", graph.name()).with_hint("--dim NAME=N says them");
  ModelSizes sizes = HONE_TRY(ModelSizes::of(graph, options.least));
  Shrunk shrunk = {.operations_before = sizes.operations()};
  Divider divider(graph, sizes, options);
  HONE_TRY(divider.keep());
  Checker checker(sizes);
  do {
    HONE_TRY(divider.run());
  } while (checker.pin_refused());
  shrunk.graph = HONE_TRY(sized_graph(sizes, sizes.top(), checker));
  shrunk.operations_behind = sizes.operations();
  shrunk.changes = changes_of(graph, sizes);
  return shrunk;
}

}  // namespace hone
