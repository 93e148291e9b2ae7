#include "search/rewrite_search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_set>

#include "ir/op_def.h"
#include "rules/extract.h"
#include "rules/sizes.h"
#include "search/retrace.h"

namespace hone {
namespace {

constexpr size_t kMostMatches = 256;     // of a rule in a graph
constexpr double kShareOfEGraph = 0.15;  // of the seconds
constexpr double kLess = 1 - 1e-6;       // what is cheaper by less is not
constexpr double kAlike = 0.003;         // prices in one step of this count as equal in the queue

class RewriteSearch {
 public:
  RewriteSearch(std::span<const Rule> rules, const PriceOfGraph& price,
                std::span<const NodeCost> nodes, const RewriteOptions& options)
      : price_(price), nodes_(nodes), options_(options), ranges_(options.assumed_decades) {
    for (const Rule& rule : rules) {
      const Graph& left = rule.left;
      if (left.outputs().size() == 1)
        groups_[left.opcode(left.producer(left.outputs()[0]))].push_back(matchers_.size());
      matchers_.emplace_back(rule);
    }
  }

  Result<Rewritten> run(const Graph& given) {
    Graph graph = HONE_TRY(rewritable(given));
    result_.before = result_.after = HONE_TRY(price_(graph));
    ++result_.priced;
    result_.graph = graph;
    seen_.insert(structural_hash(graph));
    queue_.push_back({graph, result_.before, {}, kGroups});
    if (!matchers_.empty() && options_.egraph.nodes > 0 && may_go_on()) HONE_TRY(try_egraph(graph));
    while (!queue_.empty() && may_go_on()) {
      const auto first = std::ranges::min_element(queue_, {}, [&](const State& state) {
        const double part = state.price / (kAlike * result_.before);
        return std::tuple(state.step, std::floor(part),
                          -static_cast<double>(state.rewrites.size()));
      });
      State state = std::move(*first);
      queue_.erase(first);
      if (state.price > options_.relaxation * result_.after) continue;
      HONE_TRY(expand(state));
      if (++state.step <= kFine) queue_.push_back(std::move(state));
    }
    return std::move(result_);
  }

 private:
  static constexpr int kGroups = 0;  // all rules of a group, until none matches
  static constexpr int kCoarse = 1;  // all places of a rule at once
  static constexpr int kMiddle = 2;  // those with the same sizes
  static constexpr int kFine = 3;    // single ones
  struct State {
    Graph graph;
    double price = 0;
    std::vector<Rewrite> rewrites;  // that lead to it
    int step = kGroups;             // how it is rewritten next
  };

  // ---- Budget -----------------------------------------------------------------------------------

  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }
  bool may_go_on() {
    if (options_.cancel != nullptr && options_.cancel->cancelled())
      result_.end = RewriteEnd::cancelled;
    else if (elapsed() >= options_.seconds)
      result_.end = RewriteEnd::seconds;
    else
      return true;
    return false;
  }
  void tell(std::string_view line) const {
    if (options_.told) options_.told(line);
  }

  // ---- Graphs -----------------------------------------------------------------------------------

  // True if it is the cheapest so far.
  Result<bool> enter(Graph graph, std::vector<Rewrite> rewrites) {
    if (!seen_.insert(structural_hash(graph)).second) return false;
    const Result<double> price = price_(graph);
    ++result_.priced;
    if (options_.progress != nullptr) options_.progress->advance();
    if (!price.ok()) {
      if (price.error().code() == ErrorCode::interrupted) return false;
      tell(fmt::format("a graph is left out: {}", price.error().to_string()));
      return false;
    }
    const bool is_best = *price < kLess * result_.after;
    if (is_best) {
      result_.after = *price;
      result_.graph = graph;
      result_.rewrites = rewrites;
      if (options_.progress != nullptr)
        options_.progress->now(fmt::format("{:.4g} of the price", *price / result_.before));
    }
    if (*price > options_.relaxation * result_.after) return false;
    const int step = is_best ? kGroups : kCoarse;
    queue_.push_back({std::move(graph), *price, std::move(rewrites), step});
    if (queue_.size() > options_.queue)
      queue_.erase(std::ranges::max_element(queue_, {}, &State::price));
    return is_best;
  }

  Status try_egraph(const Graph& graph) {
    Result<EGraph> egraph = EGraph::of(graph);
    if (!egraph.ok()) return egraph.error();
    SaturateLimits limits = options_.egraph;
    limits.seconds = std::min(limits.seconds, kShareOfEGraph * (options_.seconds - elapsed()));
    result_.egraph = HONE_TRY(saturate(*egraph, matchers_, limits, options_.cancel, &ranges_));
    const double each = limits.seconds / static_cast<double>(std::max<size_t>(nodes_.size(), 1));
    for (const NodeCost& cost : nodes_) {
      if (!may_go_on()) break;
      const Extracted found = HONE_TRY(extract(*egraph, cost, {each, options_.cancel}));
      Retraced made = HONE_TRY(retrace(
          graph, *egraph, result_.egraph, matchers_, found.origins, ranges_,
          [&] { return may_go_on(); }));
      HONE_TRY(enter(std::move(made.graph), std::move(made.rewrites)));
    }
    return {};
  }

  // ---- Rules ------------------------------------------------------------------------------------

  std::vector<RuleMatch> matches_of(size_t rule, const Graph& graph,
                                    size_t most = kMostMatches) const {
    std::vector<RuleMatch> matches;
    KnownRanges known(graph, ranges_);
    matchers_[rule].find(graph, [&](RuleMatch match) {
      if (may_apply(matchers_[rule].rule(), match, known)) matches.push_back(std::move(match));
      return matches.size() < most;
    });
    return matches;
  }

  static bool may_apply(const Rule& rule, RuleMatch& match, KnownRanges& known) {
    return !merges_one_with_itself(rule, match) && known.suffice(rule, match);
  }

  // At one place after another, `sizes` if it is not empty, until there are none or as many as
  // there were; each may leave or make others.
  Status rewrite_all(const State& state, size_t rule, const std::string& sizes, bool& is_best) {
    const RuleMatcher& matcher = matchers_[rule];
    Graph graph = state.graph;
    std::vector<Rewrite> rewrites = state.rewrites;
    for (size_t left = kMostMatches; left > 0;) {
      std::optional<RuleMatch> next;
      size_t found = 0;
      KnownRanges known(graph, ranges_);
      matcher.find(graph, [&](RuleMatch match) {
        if (!sizes.empty() && to_string(match.sizes) != sizes) return true;
        if (!may_apply(matcher.rule(), match, known)) return true;
        if (!next) next = std::move(match);
        return ++found < left;
      });
      if (!next) break;
      left = std::min(left, found) - 1;
      rewrites.push_back(rewrite_of(matcher, graph, *next));
      graph = HONE_TRY(rewrite(matcher.rule(), graph, *next));
    }
    is_best |= HONE_TRY(enter(std::move(graph), std::move(rewrites)));
    return {};
  }

  // Tries rules that end in the same op; each leaves places for others. A slice that moves in front
  // of one op after another pays at the end of its way.
  Status rewrite_groups(const State& state) {
    for (const auto& [opcode, rules] : groups_) {
      if (rules.size() < 2 || !may_go_on()) continue;
      Graph graph = state.graph;
      std::vector<Rewrite> rewrites = state.rewrites;
      const size_t before = rewrites.size();
      for (size_t found = SIZE_MAX; found != rewrites.size() && may_go_on();) {
        found = rewrites.size();
        for (size_t rule : rules)
          while (rewrites.size() < before + kMostMatches && may_go_on()) {
            const std::vector<RuleMatch> match = matches_of(rule, graph, 1);
            if (match.empty()) break;
            rewrites.push_back(rewrite_of(matchers_[rule], graph, match[0]));
            graph = HONE_TRY(rewrite(matchers_[rule].rule(), graph, match[0]));
          }
      }
      if (rewrites.size() == before) continue;
      if (HONE_TRY(enter(std::move(graph), std::move(rewrites)))) return {};
    }
    return {};
  }

  // Once a step pays, what it has led to comes first.
  Status expand(const State& state) {
    if (state.step == kGroups) return rewrite_groups(state);
    bool is_best = false;
    for (size_t r = 0; r < matchers_.size(); ++r) {
      const std::vector<RuleMatch> matches = matches_of(r, state.graph);
      if (matches.empty() || (matches.size() == 1 && state.step != kCoarse)) continue;
      if (state.step == kFine) {
        HONE_TRY(rewrite_one(state, r, matches, is_best));
      } else {
        std::set<std::string> kinds = {""};
        if (state.step == kMiddle) {
          kinds.clear();
          for (const RuleMatch& match : matches) kinds.insert(to_string(match.sizes));
        }
        if (state.step == kMiddle && kinds.size() < 2) continue;
        for (const std::string& sizes : kinds)
          if (may_go_on() && !is_best) HONE_TRY(rewrite_all(state, r, sizes, is_best));
      }
      if (is_best || !may_go_on()) return {};
    }
    return {};
  }

  Status rewrite_one(const State& state, size_t rule, const std::vector<RuleMatch>& matches,
                     bool& is_best) {
    for (size_t m = 0; m < std::min(matches.size(), options_.places); ++m) {
      if (is_best || !may_go_on()) return {};
      std::vector<Rewrite> rewrites = state.rewrites;
      rewrites.push_back(rewrite_of(matchers_[rule], state.graph, matches[m]));
      Graph made = HONE_TRY(rewrite(matchers_[rule].rule(), state.graph, matches[m]));
      is_best = HONE_TRY(enter(std::move(made), std::move(rewrites)));
    }
    return {};
  }

  const PriceOfGraph& price_;
  const std::span<const NodeCost> nodes_;
  const RewriteOptions& options_;
  const Ranges ranges_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::vector<RuleMatcher> matchers_;
  std::map<Opcode, std::vector<size_t>> groups_;  // rules with one result, by the op behind it
  std::vector<State> queue_;
  std::unordered_set<uint64_t> seen_;
  Rewritten result_;
};

}  // namespace

std::string_view name(RewriteEnd end) {
  switch (end) {
    case RewriteEnd::done: return "nothing left to try";
    case RewriteEnd::seconds: return "out of time";
    case RewriteEnd::cancelled: return "cancelled";
  }
  return "";
}

Result<Rewritten> search_rewrites(const Graph& graph, std::span<const Rule> rules,
                                  const PriceOfGraph& price, std::span<const NodeCost> nodes,
                                  const RewriteOptions& options) {
  return RewriteSearch(rules, price, nodes, options).run(graph);
}

size_t nodes_outside(const Graph& graph, std::span<const Rule> rules) {
  std::set<Opcode> inside = {Opcode::parameter, Opcode::constant};
  for (const Rule& rule : rules)
    for (NodeId n : rule.left.nodes()) inside.insert(rule.left.opcode(n));
  size_t outside = 0;
  for (NodeId n : graph.nodes()) outside += inside.contains(graph.opcode(n)) ? 0 : 1;
  return outside;
}

}  // namespace hone
