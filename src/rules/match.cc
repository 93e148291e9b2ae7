#include "rules/match.h"

#include <algorithm>
#include <optional>

#include "ir/graph_copy.h"
#include "ir/op_def.h"

namespace hone {

// ---- The order of the search --------------------------------------------------------------------

// Backwards from the first result; then from what is known to its users; then from any node.
RuleMatcher::RuleMatcher(const Rule& rule) : rule_(&rule) {
  const Graph& left = rule.left;
  std::vector<bool> known(left.value_count()), placed(left.node_count());
  const auto is_pattern = [&](NodeId n) { return left.opcode(n) != Opcode::parameter; };
  const auto place = [&](Step step) {
    steps_.push_back(step);
    placed[step.node.index] = true;
    for (ValueId v : left.results(step.node)) known[v.index] = true;
    for (ValueId v : left.operands(step.node))
      if (!v.is_none()) known[v.index] = true;
  };
  const auto next = [&]() -> std::optional<Step> {
    for (NodeId n : left.nodes())
      if (is_pattern(n) && !placed[n.index])
        for (ValueId v : left.results(n))
          if (known[v.index]) return Step{Step::operand, n, v};
    for (NodeId n : left.nodes())
      if (is_pattern(n) && !placed[n.index])
        for (ValueId v : left.operands(n))
          if (!v.is_none() && known[v.index]) return Step{Step::user, n, v};
    for (ValueId v : left.outputs())
      if (!placed[left.producer(v).index]) return Step{Step::anywhere, left.producer(v), {}};
    return std::nullopt;
  };
  while (std::optional<Step> step = next()) place(*step);
}

// ---- The search ---------------------------------------------------------------------------------

class RuleMatcher::Search {
 public:
  Search(const RuleMatcher& matcher, const Graph& graph,
         const std::function<bool(const RuleMatch&)>& found)
      : steps_(matcher.steps_), rule_(*matcher.rule_), graph_(graph), users_(graph), found_(found) {
    match_.values.resize(rule_.left.value_count());
  }

  void run() { step(0); }

 private:
  // All ways to go on from step i. False: no more is wanted.
  bool step(size_t i) {
    if (i == steps_.size()) return complete();
    const Step& step = steps_[i];
    if (step.from == Step::operand) {
      const ValueId known = match_.values[step.known.index];
      const NodeId n = graph_.producer(known);
      if (graph_.result_index(known) != rule_.left.result_index(step.known)) return true;
      return try_node(i, n);
    }
    if (step.from == Step::user) {
      std::optional<NodeId> last;  // a node that reads twice stands twice
      for (NodeId n : users_.of(match_.values[step.known.index])) {
        if (last == n) continue;
        last = n;
        if (!try_node(i, n)) return false;
      }
      return true;
    }
    for (NodeId n : graph_.nodes())
      if (!try_node(i, n)) return false;
    return true;
  }

  bool try_node(size_t i, NodeId n) {
    const NodeId wanted = steps_[i].node;
    const Graph& left = rule_.left;
    if (graph_.opcode(n) != left.opcode(wanted)) return true;
    if (graph_.operands(n).size() != left.operands(wanted).size()) return true;
    if (graph_.opcode(n) == Opcode::constant) {
      if (!graph_.constant(n).same_bytes(left.constant(wanted)) ||
          graph_.constant(n).type() != left.constant(wanted).type())
        return true;
      return with_operands(i, n, false);
    }
    if (!with_operands(i, n, false)) return false;
    const bool commutes = left.op(wanted).def().traits.commutative;
    if (commutes && left.operands(wanted).size() == 2) return with_operands(i, n, true);
    return true;
  }

  bool with_operands(size_t i, NodeId n, bool swapped) {
    const RuleMatch before = match_;
    const NodeId wanted = steps_[i].node;
    const Graph& left = rule_.left;
    bool fits = fits_op(left.op(wanted), graph_.op(n));
    const auto pattern = left.operands(wanted), actual = graph_.operands(n);
    for (size_t o = 0; fits && o < pattern.size(); ++o)
      fits = unify(pattern[o], actual[swapped ? pattern.size() - 1 - o : o]);
    for (size_t r = 0; fits && r < left.results(wanted).size(); ++r)
      fits = unify(left.result(wanted, r), graph_.result(n, r));
    const bool goes_on = !fits || step(i + 1);
    match_ = before;
    return goes_on;
  }

  bool unify(ValueId pattern, ValueId actual) {
    if (pattern.is_none() || actual.is_none()) return pattern.is_none() && actual.is_none();
    ValueId& at = match_.values[pattern.index];
    if (!at.is_none()) return at == actual;
    const Type wanted = rule_.left.type(pattern), type = graph_.type(actual);
    if (wanted.dtype() != type.dtype() || wanted.rank() != type.rank()) return false;
    for (int d = 0; d < type.rank(); ++d)
      if (!unify(wanted.dim(d), type.dim(d))) return false;
    at = actual;
    return true;
  }

  // Binds what it can; complete() looks at all dims again when everything is bound. Symbols of the
  // graph are other ones than those of the rule, whatever their names are.
  bool unify(Dim pattern, Dim actual) {
    if (pattern.is_static()) return pattern == actual;
    const std::vector<Symbol> symbols = pattern.symbols();
    size_t open = 0;
    bool is_plain = actual.is_static();  // what is known is numbers
    for (Symbol s : symbols) {
      const auto at = match_.sizes.find(s.name());
      if (at == match_.sizes.end())
        ++open;
      else
        is_plain = is_plain && at->second.is_static();
    }
    if (open == 0) return pattern.bind(match_.sizes) == actual;
    if (is_plain) return match_dim(pattern, actual.value(), match_.sizes).ok();
    if (symbols.size() > 1 || pattern != Dim(symbols[0])) return true;
    if (!is_within(actual, symbols[0])) return false;
    match_.sizes.emplace(symbols[0].name(), actual);
    return true;
  }

  // A symbolic size must be one that the rule admits whatever it is.
  static bool is_within(Dim size, Symbol symbol) {
    const Range range = size.range();
    return symbol.min() <= range.low && range.high <= symbol.max() &&
           check_binding(symbol, size).ok();
  }

  bool fits_op(Op pattern, Op actual) {
    if (pattern == actual) return true;
    if (!pattern.has_symbols()) return false;
    const auto wanted = pattern.attrs(), found = actual.attrs();
    for (size_t a = 0; a < wanted.size(); ++a) {
      const Dims* dims = std::get_if<Dims>(&wanted[a]);
      if (dims == nullptr) {
        if (!(wanted[a] == found[a])) return false;
        continue;
      }
      const Dims& others = std::get<Dims>(found[a]);
      if (dims->size() != others.size()) return false;
      for (size_t d = 0; d < dims->size(); ++d)
        if (!unify((*dims)[d], others[d])) return false;
    }
    return true;
  }

  // Everything is bound: are all types and attributes what the rule says at these sizes?
  bool is_exact() const {
    for (Symbol s : rule_.symbols()) {
      const auto at = match_.sizes.find(s.name());
      if (at == match_.sizes.end() || !is_within(at->second, s)) return false;
    }
    if (!rule_.admits(match_.sizes)) return false;
    const Graph& left = rule_.left;
    for (NodeId n : left.nodes()) {
      for (ValueId v : left.results(n)) {
        const Result<Type> type = left.type(v).bind(match_.sizes);
        if (!type.ok() || *type != graph_.type(match_.values[v.index])) return false;
      }
      if (left.opcode(n) == Opcode::parameter || left.opcode(n) == Opcode::constant) continue;
      const NodeId at = graph_.producer(match_.values[left.result(n).index]);
      if (left.op(n).bind(match_.sizes).canonical() != graph_.op(at)) return false;
    }
    return true;
  }

  // No input of the match may depend on one of its results: the right side would read itself.
  bool is_acyclic() const {
    uint32_t first = UINT32_MAX;
    std::vector<bool> reached(graph_.node_count());
    for (ValueId v : rule_.left.outputs()) {
      const NodeId n = graph_.producer(match_.values[v.index]);
      reached[n.index] = true;
      first = std::min(first, n.index);
    }
    uint32_t last = 0;
    for (ValueId v : rule_.left.inputs())
      last = std::max(last, graph_.producer(match_.values[v.index]).index);
    for (uint32_t n = first + 1; n <= last; ++n)
      for (ValueId v : graph_.operands({n}))
        if (!v.is_none() && reached[graph_.producer(v).index]) reached[n] = true;
    return std::ranges::none_of(rule_.left.inputs(), [&](ValueId v) {
      return reached[graph_.producer(match_.values[v.index]).index];
    });
  }

  bool complete() {
    // Two nodes of the left side that are one in the graph are no fault: what they say is true of
    // it.
    if (!is_exact() || !is_acyclic()) return true;
    return found_(match_);
  }

  const std::vector<Step>& steps_;
  const Rule& rule_;
  const Graph& graph_;
  Users users_;
  const std::function<bool(const RuleMatch&)>& found_;
  RuleMatch match_;
};

void RuleMatcher::find(const Graph& graph,
                       const std::function<bool(const RuleMatch&)>& found) const {
  Search(*this, graph, found).run();
}

std::vector<RuleMatch> RuleMatcher::all(const Graph& graph, size_t limit) const {
  std::vector<RuleMatch> matches;
  find(graph, [&](const RuleMatch& match) {
    matches.push_back(match);
    return matches.size() < limit;
  });
  return matches;
}

// ---- Applying -----------------------------------------------------------------------------------

Result<Graph> apply(const Rule& rule, const Graph& graph, const RuleMatch& match) {
  const Graph right = HONE_TRY(specialize(rule.right, match.sizes));
  GraphCopy copy(graph);
  std::vector<bool> is_replaced(graph.value_count());
  for (ValueId v : rule.left.outputs()) is_replaced[match.values[v.index].index] = true;
  // The right side comes as soon as its inputs are there. What reads a result comes behind it: it
  // waits until then, as does what reads that.
  std::vector<bool> has_copy(graph.value_count());
  const auto is_ready = [&](std::span<const ValueId> values) {
    return std::ranges::all_of(values, [&](ValueId v) { return v.is_none() || has_copy[v.index]; });
  };
  std::vector<ValueId> arguments;
  for (ValueId v : rule.left.inputs()) arguments.push_back(match.values[v.index]);
  bool is_placed = false;
  std::vector<NodeId> waiting(graph.node_count());
  for (uint32_t n = 0; n < graph.node_count(); ++n) waiting[n] = {n};
  const auto place = [&]() -> Status {
    const std::vector<ValueId> results = HONE_TRY(copy.append(right, copy(arguments)));
    for (size_t o = 0; o < results.size(); ++o) {
      const ValueId v = match.values[rule.left.outputs()[o].index];
      copy.replace(v, results[o]);
      has_copy[v.index] = true;
    }
    is_placed = true;
    return {};
  };
  while (!waiting.empty()) {
    std::vector<NodeId> later;
    for (NodeId n : waiting) {
      if (!is_placed && is_ready(arguments)) HONE_TRY(place());
      if (!is_ready(graph.operands(n))) {
        later.push_back(n);
        continue;
      }
      const ValueRange results = graph.results(n);
      bool all_replaced = results.size() > 0;
      for (ValueId v : results) all_replaced = all_replaced && is_replaced[v.index];
      if (all_replaced) continue;  // what makes them is dead
      std::vector<std::pair<ValueId, ValueId>> stay;
      if (is_placed)
        for (ValueId v : results)
          if (is_replaced[v.index]) stay.emplace_back(v, copy(v));
      HONE_TRY(copy.node(n));
      for (auto [v, replacement] : stay) copy.replace(v, replacement);
      for (ValueId v : results)
        if (!is_replaced[v.index]) has_copy[v.index] = true;
    }
    if (!is_placed && is_ready(arguments)) HONE_TRY(place());
    HONE_CHECK(later.size() < waiting.size() || later.empty(), "the match has a cycle");
    waiting = std::move(later);
  }
  return remove_dead_code(copy.finish());
}

}  // namespace hone
