#include "prove/generate.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <unordered_set>

#include "base/hash.h"
#include "ir/graph_copy.h"
#include "prove/guard.h"
#include "rules/match.h"
#include "rules/sizes.h"

namespace hone {
namespace {

using Id = TermTable::Id;
using Term = TermTable::Term;

// Builds both sides of a candidate. Terms that are one become one value of a side.
class SideBuilder {
 public:
  // generalized: terms that become inputs. ops: those of the table, or others in their places.
  SideBuilder(const TermTable& table, std::vector<Id> generalized)
      : SideBuilder(table, table.ops(), std::move(generalized)) {}
  SideBuilder(const TermTable& table, const TermOps& ops, std::vector<Id> generalized)
      : table_(table), ops_(ops), generalized_(std::move(generalized)) {}

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
      values[order[i]] = graph.add_parameter(input_type(order[i]), fmt::format("x{}", i));
    const ValueId output = HONE_TRY(root(graph, values));
    graph.set_outputs({output});
    return {};
  }

  Type input_type(Id id) const {
    return id < table_.input_count() ? ops_.inputs[id] : table_.type(table_[id]);
  }

  Result<ValueId> value_of(Graph& graph, Id id, Values& values) {
    const auto at = values.find(id);
    if (at != values.end()) return at->second;
    const ValueId value = HONE_TRY(append(graph, table_[id], values));
    values.emplace(id, value);
    return value;
  }

  Result<ValueId> append(Graph& graph, const Term& term, Values& values) {
    if (table_.is_leaf(term)) {
      const size_t constant = term.op - ops_.ops.size() - ops_.inputs.size();
      return graph.add_constant(Tensor::scalar(DType::f32, ops_.constants[constant]));
    }
    std::vector<ValueId> operands;
    for (Id id : term.operands)
      if (id != TermTable::kNone) operands.push_back(HONE_TRY(value_of(graph, id, values)));
    return graph.result(HONE_TRY(graph.append(ops_.ops[term.op], operands)));
  }

  const TermTable& table_;
  const TermOps& ops_;
  const std::vector<Id> generalized_;
};

size_t ops_of(const Graph& graph) {
  size_t ops = 0;
  for (NodeId n : graph.nodes()) ops += !is_leaf(graph.opcode(n));
  return ops;
}

// The ops of a graph, sorted, each as a hash of all of it but sizes.
std::vector<uint64_t> ops_in(const Graph& graph) {
  std::vector<uint64_t> ops;
  for (NodeId n : graph.nodes()) {
    if (is_leaf(graph.opcode(n))) continue;
    const auto has_sizes = [](const AttrValue& value) {
      return std::holds_alternative<Dims>(value);
    };
    const bool is_sized = std::ranges::any_of(graph.op(n).attrs(), has_sizes);
    ops.push_back(is_sized ? static_cast<uint64_t>(graph.opcode(n)) : graph.op(n).hash());
  }
  std::ranges::sort(ops);
  return ops;
}

// All tables of a family share these: the rules so far.
class Found {
 public:
  explicit Found(const GenerateOptions& options) : options_(options), pool(options.threads) {}

  void accept(Rule rule, const std::string& certificate, bool is_guarded) {
    ++generated.counts.accepted;
    if (rule.rung == Rung::all_sizes) ++generated.counts.proved;
    if (is_guarded) ++generated.counts.guarded;
    std::string name = fmt::format("{}_{}", options_.prefix, generated.counts.accepted);
    if (!certificate.empty())
      generated.proofs +=
          fmt::format("certificate @{}{}", name,
                      certificate.substr(certificate.rfind(' ', certificate.find('\n'))));
    rule.name = std::move(name);
    generated.rules.push_back(std::move(rule));
    kept_.push_back(std::make_unique<Rule>(generated.rules.back()));
    matchers.emplace_back(*kept_.back());
    ops_of_matchers.push_back(ops_in(kept_.back()->left));
  }

  void reject(const Rule& rule, std::string why) {
    constexpr size_t kKept = 1000;
    if (++generated.counts.rejected > kKept) return;
    generated.rejected.push_back({rule, std::move(why)});
    generated.rejected.back().rule.name = fmt::format("rejected_{}", generated.counts.rejected);
  }

 private:
  const GenerateOptions& options_;
  std::vector<std::unique_ptr<Rule>> kept_;  // what the matchers read

 public:
  ThreadPool pool;
  Generated generated;
  std::vector<RuleMatcher> matchers;
  std::vector<std::vector<uint64_t>> ops_of_matchers;
};

class Generator {
 public:
  // general: the ops of the family, where those of the table are these at some sizes; else the
  // table's.
  Generator(TermTable& table, const TermOps& general, const GenerateOptions& options, Found& found)
      : table_(table), general_(general), options_(options), found_(found) {}

  Status run() {
    Progress& progress = options_.progress != nullptr ? *options_.progress : no_progress();
    HONE_TRY(table_.enumerate(
        options_.limits, found_.pool, progress, options_.cancel,
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
    counts().made += table_.counts().made;
    counts().distinct += table_.counts().distinct;
    counts().spilled += table_.counts().spilled;
    progress.finish(fmt::format("{} rules", found_.generated.rules.size()));
    return {};
  }

 private:
  GenerateCounts& counts() { return found_.generated.counts; }

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
    ++counts().candidates;
    if (table_.is_leaf(term)) return {};
    const Result<Rule> rule = SideBuilder(table_, {}).rule(term, same);
    if (!rule.ok()) {
      ++counts().unbound;
      return {};
    }
    if (!seen_.insert(hash_string(print(*rule))).second) {
      ++counts().renamed;
      return {};
    }
    if (seen_.size() > options_.max_candidates)
      return over_limit("there are more than {} different candidates", options_.max_candidates)
          .with_hint("use fewer ops, or a larger --max-candidates");
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

  // True if it is true of any value in the place of a part that both sides have.
  bool is_common(const Waiting& waiting) const {
    for (Id part : common_parts(waiting.left, waiting.right)) {
      const Result<Rule> general = SideBuilder(table_, {part}).rule(waiting.left, waiting.right);
      if (general.ok() && check(*general).ok() && holds(*general)) return true;
    }
    return false;
  }

  static bool holds(const Rule& rule) {
    const Result<IdentityTest> test = test_identity(rule, {.log2_error = -40, .sizes = 2});
    return test.ok() && !test->counterexample;
  }

  // An accepted rule turns the left side's root into something smaller, or into the right side.
  bool is_implied(const Rule& rule) {
    const uint64_t wanted = structural_hash(rule.right);
    const ValueId root = rule.left.outputs()[0];
    const std::vector<uint64_t> ops = ops_in(rule.left);
    for (size_t m = 0; m < found_.matchers.size(); ++m) {
      if (!std::ranges::includes(ops, found_.ops_of_matchers[m])) continue;
      const RuleMatcher& matcher = found_.matchers[m];
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
    CandidateBlock outcomes(count);
    std::optional<CandidateBlock> known;
    if (options_.state != nullptr) known = options_.state->next();
    if (known) {
      if (known->size() != count) return bad_input("the state is of another search");
      outcomes = std::move(*known);
    } else {
      HONE_TRY(verify_all(rules, begin, outcomes));
    }
    for (size_t i = 0; i < count; ++i) {
      CandidateOutcome& outcome = outcomes[i];
      if (outcome.is_common) {
        ++counts().common;
        continue;
      }
      if (!outcome.is_implied && !outcome.rule) {
        found_.reject(rules[i], std::move(outcome.why));
        continue;
      }
      // Rules of this block may imply it, too.
      if (outcome.is_implied || is_implied(rules[i])) {
        ++counts().implied;
        continue;
      }
      found_.accept(std::move(*outcome.rule), outcome.certificate, outcome.is_guarded);
    }
    return {};
  }

  Status verify_all(const std::vector<Rule>& rules, size_t begin, CandidateBlock& outcomes) {
    const int64_t count = static_cast<int64_t>(rules.size());
    found_.pool.parallel_for(0, count, 1, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) {
        const size_t at = static_cast<size_t>(i);
        outcomes[at].is_common = is_common(waiting_[begin + at]);
        if (outcomes[at].is_common) continue;
        outcomes[at].is_implied = is_implied(rules[at]);
        if (!outcomes[at].is_implied) verify_one(rules[at], waiting_[begin + at], outcomes[at]);
      }
    });
    return options_.state != nullptr ? options_.state->append(outcomes) : Status();
  }

  void verify_one(const Rule& rule, const Waiting& waiting, CandidateOutcome& outcome) const {
    if (const Status good = check(rule); !good.ok()) {
      outcome.why = good.error().what();
      return;
    }
    const VerifyOptions options = {.seed = options_.seed + 1, .small = false};
    const Result<RuleVerdict> verdict = verify(rule, options);
    if (!verdict.ok()) {
      outcome.why = verdict.error().what();
      return;
    }
    const bool is_at_sizes = &general_ != &table_.ops();
    if (is_at_sizes && !verdict->refuted()) {
      // A rule that is true at these sizes may be well-typed in general.
      const Result<Rule> general =
          SideBuilder(table_, general_, {}).rule(waiting.left, waiting.right);
      if (general.ok() && check(*general).ok() && add_guard(*general, options, outcome)) return;
    }
    if (verdict->refuted()) {
      outcome.why = verdict->identity.counterexample->to_string();
      if (options_.guards) add_guard(rule, options, outcome);
      return;
    }
    outcome.is_guarded = is_at_sizes;
    outcome.rule = rule;
    say(*outcome.rule, *verdict);
    outcome.certificate = verdict->certificate;
  }

  static bool add_guard(const Rule& rule, const VerifyOptions& options, CandidateOutcome& outcome) {
    Result<GuardSearch> search = infer_guard(rule, {.verify = options});
    if (!search.ok() || !search->rule) return false;
    outcome.is_implied = !search->counterexample;  // true in general, as another rule says
    outcome.is_guarded = true;
    outcome.rule = std::move(search->rule);
    outcome.certificate = std::move(search->verdict.certificate);
    return true;
  }

  TermTable& table_;
  const TermOps& general_;
  const GenerateOptions& options_;
  Found& found_;
  std::unordered_set<uint64_t> seen_;
  std::vector<Waiting> waiting_;
};

// The ops of a family where a symbol is 1 or another one.
Result<TermOps> ops_at(const TermOps& ops, const Bindings& sizes) {
  TermOps bound = ops;
  for (Type& type : bound.inputs) type = HONE_TRY(type.bind(sizes));
  for (Op& op : bound.ops) op = op.bind(sizes).canonical();
  return bound;
}

std::vector<Bindings> special_sizes(const TermOps& ops) {
  Graph head;
  for (Type type : ops.inputs) head.add_parameter(type);
  const std::vector<Symbol> symbols = head.symbols();
  std::vector<Bindings> all;
  for (Symbol s : symbols)
    if (check_binding(s, 1).ok()) all.push_back({{s.name(), 1}});
  for (size_t i = 0; i < symbols.size(); ++i)
    for (size_t j = i + 1; j < symbols.size(); ++j)
      if (check_binding(symbols[j], symbols[i]).ok())
        all.push_back({{symbols[j].name(), symbols[i]}});
  return all;
}

}  // namespace

Result<Generated> generate_rules(const TermOps& ops, const GenerateOptions& options) {
  Found found(options);
  TermTable table = HONE_TRY(TermTable::make(ops, options.seed));
  HONE_TRY(Generator(table, table.ops(), options, found).run());
  GenerateOptions at_special_sizes = options;
  if (options.guard_ops > 0) at_special_sizes.limits.max_ops = options.guard_ops;
  if (options.guards)
    for (const Bindings& sizes : special_sizes(ops)) {
      TermTable special = HONE_TRY(TermTable::make(HONE_TRY(ops_at(ops, sizes)), options.seed));
      HONE_TRY(Generator(special, ops, at_special_sizes, found).run());
    }
  return std::move(found.generated);
}

}  // namespace hone
