#include "grad/regions.h"

#include <algorithm>
#include <numeric>

#include "base/checked_math.h"
#include "ir/contents.h"
#include "ir/functional.h"
#include "ir/loop_state.h"

namespace hone {

Result<GraphRef> reordered(const Graph& graph, std::span<const size_t> inputs,
                           std::span<const size_t> outputs) {
  Builder b(graph.name());
  std::vector<Value> arguments(graph.inputs().size());
  for (size_t i : inputs) arguments[i] = b.parameter("", graph.type(graph.inputs()[i]));
  const std::vector<Value> results = b.inlined(graph, arguments);
  std::vector<Value> chosen;
  for (size_t i : outputs) chosen.push_back(results[i]);
  return std::make_shared<const Graph>(HONE_TRY(b.finish(chosen)));
}

// ---- Bounds of loops ----------------------------------------------------------------------------

namespace {

constexpr int64_t kMaxRounds = int64_t{1} << 24;

struct Bound {
  int64_t rounds;
  bool is_exact;  // nothing else ends the loop
};

class LoopBound {
 public:
  LoopBound(const Graph& graph, NodeId n)
      : graph_(graph),
        n_(n),
        condition_(*graph.regions(n)[0]),
        body_(*graph.regions(n)[1]),
        unchanged_(unchanged_state(graph, n)),
        outside_(graph),
        in_condition_(condition_),
        in_body_(body_) {}

  std::optional<Bound> find() { return of(condition_.outputs()[0]); }

 private:
  // A conjunction ends with the first of its parts.
  std::optional<Bound> of(ValueId predicate) {
    const NodeId n = condition_.producer(predicate);
    const Opcode opcode = condition_.opcode(n);
    if (opcode == Opcode::compare) return of_compare(n);
    if (opcode != Opcode::and_) return {};
    std::optional<Bound> left = of(condition_.operands(n)[0]);
    std::optional<Bound> right = of(condition_.operands(n)[1]);
    if (!left && !right) return {};
    const int64_t rounds =
        std::min(left ? left->rounds : kMaxRounds, right ? right->rounds : kMaxRounds);
    return Bound{rounds, left && right && left->is_exact && right->is_exact};
  }

  std::optional<Bound> of_compare(NodeId n) {
    const std::string& direction = condition_.op(n).word("direction");
    const ValueId left = condition_.operands(n)[0], right = condition_.operands(n)[1];
    if (direction == "lt" || direction == "le") return counting(left, right, direction == "le", 1);
    if (direction == "gt" || direction == "ge") return counting(left, right, direction == "ge", -1);
    return {};
  }

  // counter < limit with a step up, or counter > limit with a step down; or with the sides swapped.
  std::optional<Bound> counting(ValueId left, ValueId right, bool with_equal, int64_t sign) {
    if (std::optional<size_t> state = state_of(left)) {
      if (std::optional<Bound> found = counted(*state, limit_of(right), with_equal, sign))
        return found;
    }
    std::optional<size_t> state = state_of(right);
    return state ? counted(*state, limit_of(left), with_equal, -sign) : std::nullopt;
  }

  std::optional<Bound> counted(size_t state, std::optional<int64_t> limit, bool with_equal,
                               int64_t sign) {
    const std::optional<int64_t> first = number(outside_, graph_.operands(n_)[state]);
    const std::optional<int64_t> step = step_of(state);
    if (!limit || !first || !step || *step * sign <= 0) return {};
    const int64_t end = with_equal ? *limit + sign : *limit;
    const int64_t distance = (end - *first) * sign;
    if (distance <= 0) return Bound{0, true};
    const int64_t size = std::abs(*step);
    const int64_t rounds = distance / size + (distance % size != 0 ? 1 : 0);
    return rounds <= kMaxRounds ? std::optional<Bound>({rounds, true}) : std::nullopt;
  }

  std::optional<size_t> state_of(ValueId v) const {
    auto at = std::ranges::find(condition_.inputs(), v);
    if (at == condition_.inputs().end()) return {};
    return static_cast<size_t>(at - condition_.inputs().begin());
  }

  std::optional<int64_t> limit_of(ValueId v) {
    if (std::optional<size_t> state = state_of(v))
      return unchanged_[*state] ? number(outside_, graph_.operands(n_)[*state]) : std::nullopt;
    return number(in_condition_, v);
  }

  // The constant that each round adds.
  std::optional<int64_t> step_of(size_t state) {
    const ValueId next = body_.outputs()[state], before = body_.inputs()[state];
    const NodeId n = body_.producer(next);
    const Opcode opcode = body_.opcode(n);
    if (opcode != Opcode::add && opcode != Opcode::sub) return {};
    const ValueId left = body_.operands(n)[0], right = body_.operands(n)[1];
    if (left == before) {
      const std::optional<int64_t> step = number(in_body_, right);
      return step && opcode == Opcode::sub ? -*step : step;
    }
    return opcode == Opcode::add && right == before ? number(in_body_, left) : std::nullopt;
  }

  // The size is one that sums and differences do not overflow.
  static std::optional<int64_t> number(Contents& contents, ValueId v) {
    const std::optional<Dims> known = contents.of(v);
    if (!known || known->size() != 1 || !known->front().is_static()) return {};
    const int64_t value = known->front().value();
    return std::abs(value) < int64_t{1} << 60 ? std::optional(value) : std::nullopt;
  }

  const Graph& graph_;
  NodeId n_;
  const Graph& condition_;
  const Graph& body_;
  std::vector<bool> unchanged_;
  Contents outside_, in_condition_, in_body_;
};

}  // namespace

Result<std::optional<LoopAsScan>> as_scan(const Graph& graph, NodeId n) {
  const std::optional<Bound> bound = LoopBound(graph, n).find();
  if (!bound) return std::optional<LoopAsScan>();
  const Graph& body = *graph.regions(n)[1];
  Builder b(body.name());
  std::vector<Value> state;
  for (ValueId v : body.inputs()) state.push_back(b.parameter("", body.type(v)));
  std::vector<Value> next;
  if (bound->is_exact) {
    next = b.inlined(body, state);
  } else {
    const Value goes_on = b.inlined(*graph.regions(n)[0], state)[0];
    next = if_else(
        goes_on, state,
        [&](Builder& inner, std::span<const Value> s) { return inner.inlined(body, s); },
        [](Builder&, std::span<const Value> s) { return std::vector(s.begin(), s.end()); });
  }
  next.resize(state.size(), state.front());
  GraphRef made = std::make_shared<const Graph>(HONE_TRY(b.finish(next)));
  Op op = Op::get(Opcode::scan, {{"carried", static_cast<int64_t>(state.size())},
                                 {"length", Dims{bound->rounds}}});
  return std::optional<LoopAsScan>({op, std::move(made)});
}

}  // namespace hone
