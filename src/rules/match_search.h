#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ir/op_facts.h"
#include "rules/match.h"

// The search behind RuleMatcher, for whatever holds nodes and values.

namespace hone {

// A Host has the values and nodes of a Graph; an e-graph has several nodes behind one value. It
// says of them
//   opcode(n), op(n), constant(n), operands(n), results(n), type(v)
// and calls, until that returns false and as long as the host stays as it is,
//   makers(v, i, use)   use(n) for each node whose result i is v
//   readers(v, use)     use(n) for each node that reads v, once
//   nodes(opcode, use)  use(n) for each node with that opcode
// and
//   may_replace(match)  whether the right side may stand there: it must not read itself.
template <class Host>
class MatchSearch {
 public:
  MatchSearch(const Rule& rule, std::span<const RuleMatcher::Step> steps, const Host& host,
              const std::function<bool(const RuleMatch&)>& found)
      : rule_(rule), steps_(steps), host_(host), found_(found) {
    match_.values.resize(rule_.left.value_count());
    nodes_.resize(rule_.left.node_count());
  }

  void run() { step(0); }

 private:
  using From = RuleMatcher::Step::From;

  // All ways to go on from step i. False: no more is wanted.
  bool step(size_t i) {
    if (i == steps_.size()) return complete();
    const RuleMatcher::Step& step = steps_[i];
    bool goes_on = true;
    const auto use = [&](NodeId n) { return goes_on = try_node(i, n); };
    if (step.from == From::operand)
      host_.makers(match_.values[step.known.index], rule_.left.result_index(step.known), use);
    else if (step.from == From::user)
      host_.readers(match_.values[step.known.index], use);
    else
      host_.nodes(rule_.left.opcode(step.node), use);
    return goes_on;
  }

  bool try_node(size_t i, NodeId n) {
    const NodeId wanted = steps_[i].node;
    const Graph& left = rule_.left;
    if (host_.opcode(n) != left.opcode(wanted)) return true;
    if (host_.operands(n).size() != left.operands(wanted).size()) return true;
    if (is_constant(host_.opcode(n))) {
      if (host_.constant(n).type() != left.constant(wanted).type() ||
          !host_.constant(n).same_bytes(left.constant(wanted)))
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
    bool fits = fits_op(left.op(wanted), host_.op(n));
    const auto pattern = left.operands(wanted), actual = host_.operands(n);
    for (size_t o = 0; fits && o < pattern.size(); ++o)
      fits = unify(pattern[o], actual[swapped ? pattern.size() - 1 - o : o]);
    for (size_t r = 0; fits && r < left.results(wanted).size(); ++r)
      fits = unify(left.result(wanted, r), host_.results(n)[r]);
    nodes_[wanted.index] = n;
    const bool goes_on = !fits || step(i + 1);
    match_ = before;
    return goes_on;
  }

  bool unify(ValueId pattern, ValueId actual) {
    if (pattern.is_none() || actual.is_none()) return pattern.is_none() && actual.is_none();
    ValueId& at = match_.values[pattern.index];
    if (!at.is_none()) return at == actual;
    const Type wanted = rule_.left.type(pattern), type = host_.type(actual);
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
        if (!type.ok() || *type != host_.type(match_.values[v.index])) return false;
      }
      if (is_parameter(left.opcode(n)) || is_constant(left.opcode(n))) continue;
      if (left.op(n).bind(match_.sizes).canonical() != host_.op(nodes_[n.index])) return false;
    }
    return true;
  }

  // Two nodes of the left side that are one in the host are no fault: what they say is true of it.
  bool complete() {
    if (!is_exact() || !host_.may_replace(rule_, match_)) return true;
    return found_(match_);
  }

  const Rule& rule_;
  const std::span<const RuleMatcher::Step> steps_;
  const Host& host_;
  const std::function<bool(const RuleMatch&)>& found_;
  RuleMatch match_;
  std::vector<NodeId> nodes_;  // of the host, for each node of the left side but its parameters
};

}  // namespace hone
