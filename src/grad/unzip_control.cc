#include <algorithm>
#include <numeric>

#include "grad/unzip.h"
#include "grad/unzip_node.h"
#include "ir/builder.h"
#include "ir/derivatives/rules.h"
#include "ir/op_facts.h"

namespace hone {

namespace {

std::vector<Slot> slots_from(Slot first, size_t count) {
  std::vector<Slot> slots(count);
  std::iota(slots.begin(), slots.end(), first);
  return slots;
}

void append(std::vector<Slot>& list, std::span<const Slot> more) {
  list.insert(list.end(), more.begin(), more.end());
}
void append(std::vector<Value>& list, std::span<const Value> more) {
  list.insert(list.end(), more.begin(), more.end());
}

// The results in the mask, or those outside of it.
std::vector<Slot> results_of(const Graph& graph, NodeId n, const Mask& mask, bool is_in) {
  std::vector<Slot> slots;
  for (size_t i = 0; i < mask.size(); ++i)
    if (mask[i] == is_in) slots.push_back(graph.result(n, i).index);
  return slots;
}

std::vector<Type> types_from(const Graph& graph, size_t first_output) {
  std::vector<Type> types = graph.output_types();
  types.erase(types.begin(), types.begin() + static_cast<std::ptrdiff_t>(first_output));
  return types;
}

// ---- if -----------------------------------------------------------------------------------------

// Each branch stores its own values, the other one stores zeros in their places.
class SplitIf {
 public:
  SplitIf(const Graph& graph, NodeId n, const Mask& tangents)
      : graph_(graph),
        n_(n),
        changes_(control_changes(graph, n, tangents)),
        arguments_(tangents.begin() + 1, tangents.end()) {}

  Result<SplitNode> run(Slot first_stored) {
    for (const GraphRef& region : graph_.regions(n_)) {
      branches_.push_back(
          HONE_TRY(unzip(*region, arguments_, changes_.results, Mask(arguments_.size(), true))));
      append(passed_, branches_.back().passed);
    }
    std::ranges::sort(passed_);
    passed_.erase(std::unique(passed_.begin(), passed_.end()), passed_.end());
    known_ = changes_.results.size() - count(changes_.results);
    for (const Unzipped& branch : branches_)
      for (Type type : types_from(branch.primal, known_)) stored_.push_back(type);

    SplitNode split;
    split.stored = stored_;
    split.primal = {.op = graph_.op(n_),
                    .operands = operands(false),
                    .regions = HONE_TRY(regions([&](size_t i) { return primal(i); })),
                    .results = results_of(graph_, n_, changes_.results, false)};
    append(split.primal.results, slots_from(first_stored, stored_.size()));
    split.linear = {.op = graph_.op(n_),
                    .operands = {graph_.operands(n_)[0].index},
                    .regions = HONE_TRY(regions([&](size_t i) { return linear(i); })),
                    .results = results_of(graph_, n_, changes_.results, true)};
    for (uint32_t i : passed_) split.linear.operands.push_back(graph_.operands(n_)[i + 1].index);
    append(split.linear.operands, slots_from(first_stored, stored_.size()));
    append(split.linear.operands, operands(true));
    return split;
  }

 private:
  // The arguments that are tangents, or the predicate and the others.
  std::vector<Slot> operands(bool tangents) const {
    std::vector<Slot> slots;
    if (!tangents) slots.push_back(graph_.operands(n_)[0].index);
    for (size_t i = 0; i < arguments_.size(); ++i)
      if (arguments_[i] == tangents) slots.push_back(graph_.operands(n_)[i + 1].index);
    return slots;
  }

  template <class Make>
  static Result<std::vector<GraphRef>> regions(const Make& make) {
    std::vector<GraphRef> made;
    for (size_t i = 0; i < 2; ++i) {
      Graph graph = HONE_TRY(make(i));
      made.push_back(std::make_shared<const Graph>(std::move(graph)));
    }
    return made;
  }

  Result<Graph> primal(size_t branch) const {
    const Graph& own = branches_[branch].primal;
    Builder b(own.name());
    std::vector<Value> arguments;
    for (ValueId v : own.inputs()) arguments.push_back(b.parameter("", own.type(v)));
    std::vector<Value> made = b.inlined(own, arguments), outputs;
    append(outputs, std::span(made).first(known_));
    auto fill = [&](size_t of) {
      for (Type type : types_from(branches_[of].primal, known_))
        outputs.push_back(zeros_of(b, type));
    };
    if (branch == 1) fill(0);
    append(outputs, std::span(made).subspan(known_));
    if (branch == 0) fill(1);
    return b.finish(outputs);
  }

  Result<Graph> linear(size_t branch) const {
    const Graph& own = branches_[branch].linear;
    Builder b(own.name());
    std::vector<Value> arguments, stored;
    const Graph& region = *graph_.regions(n_)[branch];
    for (uint32_t i : passed_) {
      Value passed = b.parameter("", region.type(region.inputs()[i]));
      if (std::ranges::binary_search(branches_[branch].passed, i)) arguments.push_back(passed);
    }
    for (Type type : stored_) stored.push_back(b.parameter("", type));
    append(arguments, std::span(stored).subspan(branch == 0 ? 0 : branches_[0].stored,
                                                branches_[branch].stored));
    for (size_t i = 0; i < arguments_.size(); ++i)
      if (arguments_[i]) arguments.push_back(b.parameter("", region.type(region.inputs()[i])));
    return b.finish(b.inlined(own, arguments));
  }

  const Graph& graph_;
  NodeId n_;
  ControlChanges changes_;
  Mask arguments_;
  std::vector<Unzipped> branches_;
  std::vector<uint32_t> passed_;
  size_t known_ = 0;
  std::vector<Type> stored_;
};

// ---- scan ---------------------------------------------------------------------------------------

// The values that a round stores are stacked. A state that no round changes is handed over as it
// is.
class SplitScan {
 public:
  SplitScan(const Graph& graph, NodeId n, const Mask& tangents)
      : graph_(graph),
        n_(n),
        body_(*graph.regions(n)[0]),
        op_(graph.op(n)),
        states_(static_cast<size_t>(op_.integer("carried"))),
        changes_(control_changes(graph, n, tangents)) {}

  Result<SplitNode> run(Slot first_stored) {
    const Mask& in = changes_.operands;
    Mask can_pass(in.size(), true);
    for (size_t i = 0; i < states_; ++i) can_pass[i] = body_.outputs()[i] == body_.inputs()[i];
    parts_ = HONE_TRY(unzip(body_, in, changes_.results, can_pass));

    SplitNode split;
    split.primal.operands = operands(false, 0, in.size());
    split.primal.regions = {std::make_shared<const Graph>(parts_.primal)};
    split.primal.results = results_of(graph_, n_, changes_.results, false);
    split.primal.op = op_with(count_in(false, 0, states_), split.primal.operands.size());
    for (Type type : types_from(parts_.primal, split.primal.results.size()))
      split.stored.push_back(HONE_TRY(stacked(type)));
    append(split.primal.results, slots_from(first_stored, split.stored.size()));
    HONE_TRY(make_linear(split, slots_from(first_stored, split.stored.size())));
    return split;
  }

 private:
  // The body takes and gives the passed states first, and what is scanned last.
  Status make_linear(SplitNode& split, std::span<const Slot> stored) {
    const size_t passed_states = static_cast<size_t>(
        std::ranges::count_if(parts_.passed, [&](uint32_t i) { return i < states_; }));
    const size_t tangents = count_in(true, 0, states_);
    const size_t passed = parts_.passed.size(), before = passed + parts_.stored;
    std::vector<size_t> order = range(0, passed_states);
    append_range(order, before, tangents);
    append_range(order, passed_states, passed - passed_states + parts_.stored);
    append_range(order, before + tangents, parts_.linear.inputs().size() - before - tangents);

    Builder b(parts_.linear.name());
    std::vector<Value> arguments(order.size());
    for (size_t i : order)
      arguments[i] = b.parameter("", parts_.linear.type(parts_.linear.inputs()[i]));
    std::vector<Value> outputs(arguments.begin(),
                               arguments.begin() + static_cast<std::ptrdiff_t>(passed_states));
    append(outputs, b.inlined(parts_.linear, arguments));
    Graph body = HONE_TRY(b.finish(outputs));

    std::vector<Slot> operands_of_body;  // in the order of the linear part's inputs
    for (uint32_t i : parts_.passed) operands_of_body.push_back(graph_.operands(n_)[i].index);
    append(operands_of_body, stored);
    append(operands_of_body, operands(true, 0, changes_.operands.size()));
    for (size_t i : order) split.linear.operands.push_back(operands_of_body[i]);
    split.linear.regions = {std::make_shared<const Graph>(std::move(body))};
    split.linear.results.assign(passed_states, kDropped);
    append(split.linear.results, results_of(graph_, n_, changes_.results, true));
    split.linear.op = op_with(passed_states + tangents, order.size());
    return {};
  }

  static std::vector<size_t> range(size_t first, size_t count) {
    std::vector<size_t> list;
    append_range(list, first, count);
    return list;
  }
  static void append_range(std::vector<size_t>& list, size_t first, size_t count) {
    for (size_t i = 0; i < count; ++i) list.push_back(first + i);
  }

  size_t count_in(bool is_tangent, size_t first, size_t last) const {
    return operands(is_tangent, first, last).size();
  }
  std::vector<Slot> operands(bool is_tangent, size_t first, size_t last) const {
    std::vector<Slot> slots;
    for (size_t i = first; i < last; ++i)
      if (changes_.operands[i] == is_tangent) slots.push_back(graph_.operands(n_)[i].index);
    return slots;
  }

  Dim length() const {
    std::span<const ValueId> operands = graph_.operands(n_);
    return operands.size() > states_ ? graph_.type(operands[states_]).dim(0)
                                     : op_.dims("length")[0];
  }

  Result<Type> stacked(Type type) const {
    Dims dims = {length()};
    dims.insert(dims.end(), type.dims().begin(), type.dims().end());
    return Type::make(type.dtype(), dims);
  }

  // The length is an attribute if nothing is scanned.
  Op op_with(size_t carried, size_t operands) const {
    return Op::get(Opcode::scan, {{"carried", static_cast<int64_t>(carried)},
                                  {"reverse", op_.flag("reverse")},
                                  {"length", operands > carried ? Dims{} : Dims{length()}}});
  }

  const Graph& graph_;
  NodeId n_;
  const Graph& body_;
  Op op_;
  size_t states_;
  ControlChanges changes_;
  Unzipped parts_;
};

}  // namespace

Result<SplitNode> split_control(const Graph& graph, NodeId n, const Mask& tangents,
                                Slot first_stored) {
  if (is_branch(graph.opcode(n))) return SplitIf(graph, n, tangents).run(first_stored);
  if (is_scan(graph.opcode(n))) return SplitScan(graph, n, tangents).run(first_stored);
  return unsupported("the loop cannot be run backwards: no bound of its rounds is known")
      .with_hint("let a state count up to a constant that the condition compares it with");
}

}  // namespace hone
