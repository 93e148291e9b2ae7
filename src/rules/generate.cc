#include "rules/generate.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <unordered_set>

#include "base/hash.h"
#include "ir/graph_copy.h"
#include "rules/match.h"
#include "rules/sizes.h"

namespace hone {
namespace {

using Id = TermTable::Id;
using Term = TermTable::Term;

// Builds both sides of a candidate. Terms that are one become one value of a side.
class SideBuilder {
 public:
  // generalized: terms that become inputs.
  SideBuilder(const TermTable& table, std::vector<Id> generalized)
      : table_(table), generalized_(std::move(generalized)) {}

  // The inputs in the order in which they appear in the left side: names do not count.
  Result<Rule> rule(const Term& left, Id right) {
    std::vector<Id> order;
    collect(left, order);
    const size_t known = order.size();
    collect_id(right, order);
    if (order.size() != known) return bad_input("unbound");
    Rule rule = {.name = "r", .left = Graph("r"), .right = Graph("r"), .guard = {}};
    HONE_TRY(side(
        rule.left, order, [&](Graph& graph, auto& values) { return append(graph, left, values); }));
    HONE_TRY(side(
        rule.right, order,
        [&](Graph& graph, auto& values) { return value_of(graph, right, values); }));
    return rule;
  }

 private:
  using Values = std::map<Id, ValueId>;

  bool is_input(Id id) const {
    const bool is_generalized = std::ranges::find(generalized_, id) != generalized_.end();
    return is_generalized || id < table_.input_count();
  }

  void collect(const Term& term, std::vector<Id>& order) const {
    for (Id operand : term.operands)
      if (operand != TermTable::kNone) collect_id(operand, order);
  }
  void collect_id(Id id, std::vector<Id>& order) const {
    if (!is_input(id)) return collect(table_[id], order);
    if (std::ranges::find(order, id) == order.end()) order.push_back(id);
  }

  template <class Root>
  Status side(Graph& graph, const std::vector<Id>& order, const Root& root) {
    Values values;
    for (size_t i = 0; i < order.size(); ++i)
      values[order[i]] = graph.add_parameter(table_.type(table_[order[i]]), fmt::format("x{}", i));
    const ValueId output = HONE_TRY(root(graph, values));
    graph.set_outputs({output});
    return {};
  }

  Result<ValueId> value_of(Graph& graph, Id id, Values& values) {
    const auto at = values.find(id);
    if (at != values.end()) return at->second;
    const ValueId value = HONE_TRY(append(graph, table_[id], values));
    values.emplace(id, value);
    return value;
  }

  Result<ValueId> append(Graph& graph, const Term& term, Values& values) {
    const TermOps& ops = table_.ops();
    if (table_.is_leaf(term)) {
      const size_t constant = term.op - ops.ops.size() - ops.inputs.size();
      return graph.add_constant(Tensor::scalar(DType::f32, ops.constants[constant]));
    }
    std::vector<ValueId> operands;
    for (Id id : term.operands)
      if (id != TermTable::kNone) operands.push_back(HONE_TRY(value_of(graph, id, values)));
    return graph.result(HONE_TRY(graph.append(ops.ops[term.op], operands)));
  }

  const TermTable& table_;
  const std::vector<Id> generalized_;
};

size_t ops_of(const Graph& graph) {
  size_t ops = 0;
  for (NodeId n : graph.nodes()) ops += !is_leaf(graph.opcode(n));
  return ops;
}

class Generator {
 public:
  Generator(TermTable& table, const GenerateOptions& options)
      : table_(table), options_(options), pool_(options.threads) {}

  Result<Generated> run() {
    Progress& progress = options_.progress != nullptr ? *options_.progress : no_progress();
    HONE_TRY(table_.enumerate(
        options_.limits, pool_, progress, options_.cancel,
        [&](const Term& term, Id same) { return meet(term, same); }));
    progress.start(static_cast<int64_t>(waiting_.size()), "candidates");
    // The small ones first: they imply others.
    std::ranges::sort(waiting_, {},
                      [](const Waiting& one) { return std::pair(one.ops, one.order); });
    constexpr size_t kBlock = 64;
    for (size_t begin = 0; begin < waiting_.size(); begin += kBlock) {
      if (options_.cancel != nullptr) HONE_TRY(options_.cancel->check());
      HONE_TRY(verify_block(begin, std::min(kBlock, waiting_.size() - begin)));
      progress.advance(static_cast<int64_t>(std::min(kBlock, waiting_.size() - begin)));
    }
    generated_.counts.made = table_.counts().made;
    generated_.counts.distinct = table_.counts().distinct;
    progress.finish(fmt::format("{} rules", generated_.rules.size()));
    return std::move(generated_);
  }

 private:
  // A candidate that is to be verified; its sides are built when it is its turn.
  struct Waiting {
    Term left;
    Id right;
    uint32_t ops;  // of the left side
    uint32_t order;
  };
  static_assert(sizeof(Waiting) == 48);

  // A term that computes what another one does.
  Status meet(const Term& term, Id same) {
    ++generated_.counts.candidates;
    if (table_.is_leaf(term)) return {};
    const Result<Rule> rule = SideBuilder(table_, {}).rule(term, same);
    if (!rule.ok()) {
      ++generated_.counts.unbound;
      return {};
    }
    if (!seen_.insert(hash_string(print(*rule))).second) {
      ++generated_.counts.renamed;
      return {};
    }
    if (seen_.size() > options_.max_candidates)
      return over_limit("there are more than {} different candidates", options_.max_candidates)
          .with_hint("fewer ops, or a larger --max-candidates");
    for (Id part : common_parts(term, same)) {
      const Result<Rule> general = SideBuilder(table_, {part}).rule(term, same);
      if (general.ok() && check(*general).ok() && holds(*general)) {
        ++generated_.counts.common;
        return {};
      }
    }
    waiting_.push_back({term, same, static_cast<uint32_t>(ops_of(rule->left)),
                        static_cast<uint32_t>(waiting_.size())});
    return {};
  }

  void add_parts(Id id, std::vector<Id>& parts) const {
    if (table_.is_leaf(table_[id])) return;
    parts.push_back(id);
    for (Id operand : table_[id].operands)
      if (operand != TermTable::kNone) add_parts(operand, parts);
  }

  // Terms with ops that stand on both sides, below the left one's root.
  std::vector<Id> common_parts(const Term& term, Id same) const {
    std::vector<Id> left, right, both;
    for (Id operand : term.operands)
      if (operand != TermTable::kNone) add_parts(operand, left);
    add_parts(same, right);
    for (Id id : left)
      if (std::ranges::find(right, id) != right.end()) both.push_back(id);
    std::ranges::sort(both);
    both.erase(std::ranges::unique(both).begin(), both.end());
    return both;
  }

  static bool holds(const Rule& rule) {
    const Result<IdentityTest> test = test_identity(rule, {.log2_error = -40, .sizes = 2});
    return test.ok() && !test->counterexample;
  }

  // An accepted rule turns the left side's root into something smaller, or into the right side.
  bool is_implied(const Rule& rule) {
    const uint64_t wanted = structural_hash(rule.right);
    const ValueId root = rule.left.outputs()[0];
    for (const RuleMatcher& matcher : matchers_) {
      const Rule& smaller = matcher.rule();
      const ValueId its_root = smaller.left.outputs()[0];
      if (smaller.left.opcode(smaller.left.producer(its_root)) !=
          rule.left.opcode(rule.left.producer(root)))
        continue;
      bool implied = false;
      matcher.find(rule.left, [&](const RuleMatch& match) {
        if (match.values[its_root.index] != root) return true;
        const Result<Graph> changed = apply(smaller, rule.left, match);
        if (!changed.ok()) return true;
        implied = ops_of(*changed) < ops_of(rule.left) || structural_hash(*changed) == wanted;
        return !implied;
      });
      if (implied) return true;
    }
    return false;
  }

  Status verify_block(size_t begin, size_t count) {
    std::vector<Rule> rules;
    for (size_t i = begin; i < begin + count; ++i)
      rules.push_back(HONE_TRY(SideBuilder(table_, {}).rule(waiting_[i].left, waiting_[i].right)));
    std::vector<std::optional<Rule>> verified(count);
    std::vector<char> implied(count);
    pool_.parallel_for(0, static_cast<int64_t>(count), 1, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) {
        const size_t at = static_cast<size_t>(i);
        const Rule& rule = rules[at];
        implied[at] = is_implied(rule);
        if (!implied[at]) verified[at] = verified_rule(rule);
      }
    });
    for (size_t i = 0; i < count; ++i) {
      if (implied[i]) {
        ++generated_.counts.implied;
        continue;
      }
      if (!verified[i]) {
        ++generated_.counts.rejected;
        continue;
      }
      // Rules of this block may imply it, too.
      if (is_implied(*verified[i])) {
        ++generated_.counts.implied;
        continue;
      }
      accept(std::move(*verified[i]));
    }
    return {};
  }

  std::optional<Rule> verified_rule(const Rule& rule) const {
    if (!check(rule).ok()) return std::nullopt;
    const Result<RuleVerdict> verdict = verify(rule, {.seed = options_.seed + 1});
    if (!verdict.ok() || verdict->refuted()) return std::nullopt;
    Rule shown = rule;
    shown.rung = verdict->rung;
    shown.floats = verdict->floats;
    return shown;
  }

  void accept(Rule rule) {
    ++generated_.counts.accepted;
    if (rule.rung == Rung::all_sizes) ++generated_.counts.proved;
    rule.name = fmt::format("{}_{}", options_.prefix, generated_.counts.accepted);
    generated_.rules.push_back(std::move(rule));
    kept_.push_back(std::make_unique<Rule>(generated_.rules.back()));
    matchers_.emplace_back(*kept_.back());
  }

  TermTable& table_;
  const GenerateOptions& options_;
  ThreadPool pool_;
  Generated generated_;
  std::unordered_set<uint64_t> seen_;
  std::vector<Waiting> waiting_;
  std::vector<std::unique_ptr<Rule>> kept_;  // what the matchers read
  std::vector<RuleMatcher> matchers_;
};

}  // namespace

Result<Generated> generate_rules(const TermOps& ops, const GenerateOptions& options) {
  TermTable table = HONE_TRY(TermTable::make(ops, options.seed));
  return Generator(table, options).run();
}

}  // namespace hone
