#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "front/onnx/ops/ml_forest.h"

// All trees are walked at once, for all rows. A table has the places that a place leads to. A walk
// takes as many steps as the deepest tree has levels. A leaf leads to itself.

namespace hone::onnx_io {
namespace {

constexpr int64_t kMostUnrolled = 64;             // levels; more are a loop
constexpr int64_t kMostVotes = int64_t{1} << 25;  // in a table of leaves by targets

// ---- The walk -----------------------------------------------------------------------------------

// How a comparison ends: 2 if the number is at most the split, plus 1 if it is at least that. NaN
// is neither.
constexpr int64_t kOutcomes = 4;

bool leads_to_true(const TreeNode& node, int64_t outcome) {
  const bool at_most = (outcome & 2) != 0, at_least = (outcome & 1) != 0;
  if (outcome == 0 && node.nan_is_true) return true;
  switch (node.mode) {
    case Branching::le: return at_most;
    case Branching::lt: return at_most && !at_least;
    case Branching::ge: return at_least;
    case Branching::gt: return at_least && !at_most;
    case Branching::eq: return at_most && at_least;
    default: return !(at_most && at_least);
  }
}

// The comparison of all branches, if they have one.
std::optional<Branching> only_mode(const Forest& forest) {
  std::optional<Branching> mode;
  for (const TreeNode& node : forest.nodes) {
    if (node.mode == Branching::leaf) continue;
    if (node.nan_is_true || (mode && *mode != node.mode)) return {};
    mode = node.mode;
  }
  return mode;
}

std::string_view direction_of(Branching mode) {
  constexpr std::string_view kDirections[] = {"le", "lt", "ge", "gt", "eq", "ne"};
  return kDirections[static_cast<size_t>(mode)];
}

class Walk {
 public:
  Walk(Node& n, const Forest& forest, Value x)
      : forest_(forest), x_(x), builder_(n.builder()), mode_(only_mode(forest)) {
    Ints features, next;
    std::vector<double> splits;
    for (size_t i = 0; i < forest.nodes.size(); ++i) {
      const TreeNode& node = forest.nodes[i];
      features.push_back(node.feature);
      splits.push_back(node.split);
      append_next(next, static_cast<int64_t>(i), node);
    }
    features_ = table(features);
    splits_ = builder_.constant(
        Tensor::from_reals(Type::get(x.dtype(), {static_cast<int64_t>(splits.size())}), splits));
    next_ = table(next);
  }

  // The leaf in which each tree ends: [rows, trees].
  Value leaves() {
    Ints roots(forest_.roots.begin(), forest_.roots.end());
    Value at = broadcast(table(roots), {x_.dim(0), static_cast<int64_t>(roots.size())}, {1});
    if (forest_.depth > kMostUnrolled) return walked_in_a_loop(at);
    for (int64_t level = 0; level < forest_.depth; ++level)
      at = step(at, x_, features_, splits_, next_);
    return at;
  }

 private:
  Value table(const Ints& numbers) {
    const Type type = Type::get(DType::i32, {static_cast<int64_t>(numbers.size())});
    return builder_.constant(Tensor::from_integers(type, numbers));
  }

  void append_next(Ints& next, int64_t place, const TreeNode& node) {
    const bool is_leaf = node.mode == Branching::leaf;
    if (mode_) {
      next.push_back(is_leaf ? place : node.if_false);
      next.push_back(is_leaf ? place : node.if_true);
      return;
    }
    for (int64_t outcome = 0; outcome < kOutcomes; ++outcome)
      next.push_back(is_leaf ? place
                             : (leads_to_true(node, outcome) ? node.if_true : node.if_false));
  }

  Value step(Value at, Value x, Value features, Value splits, Value next) {
    Value number = tested(x, take(features, at)), split = take(splits, at);
    if (mode_) {
      Value is_true = compare(direction_of(*mode_), number, split);
      return take(next, at + at + cast(is_true, DType::i32));
    }
    Value at_most = cast(compare("le", number, split), DType::i32);
    Value at_least = cast(compare("ge", number, split), DType::i32);
    Value outcome = at_most + at_most + at_least;
    return take(next, at * static_cast<double>(kOutcomes) + outcome);
  }

  // The feature of its row that each tree tests.
  static Value tested(Value x, Value features) {
    return x.builder().op(Opcode::gather, {x, features},
                          {{"offset_dims", Ints{}},
                           {"collapsed_dims", Ints{1}},
                           {"operand_batch_dims", Ints{0}},
                           {"index_batch_dims", Ints{0}},
                           {"index_map", Ints{1}},
                           {"index_vector_dim", int64_t{2}},
                           {"sizes", Dims{1, 1}}});
  }

  Value walked_in_a_loop(Value at) {
    Value level = builder_.scalar(DType::i32, 0);
    const double depth = static_cast<double>(forest_.depth);
    const auto body = [&](Builder&, std::span<const Value> s) {
      return std::vector<Value>{s[0] + 1, step(s[1], s[2], s[3], s[4], s[5]), s[2], s[3], s[4],
                                s[5]};
    };
    const auto goes_on = [&](Builder&, std::span<const Value> s) {
      return std::vector<Value>{compare("lt", s[0], depth)};
    };
    const std::vector<Value> state = {level, at, x_, features_, splits_, next_};
    return while_loop(state, goes_on, body)[1];
  }

  const Forest& forest_;
  Value x_;
  Builder& builder_;
  std::optional<Branching> mode_;
  Value features_, splits_, next_;
};

// ---- The votes ----------------------------------------------------------------------------------

double combined(Aggregate how, double a, double b) {
  if (how == Aggregate::min) return std::min(a, b);
  if (how == Aggregate::max) return std::max(a, b);
  return a + b;
}

// The contribution of a leaf without a vote for the target.
double neutral(Aggregate how) {
  if (how == Aggregate::min) return std::numeric_limits<double>::infinity();
  return how == Aggregate::max ? -std::numeric_limits<double>::infinity() : 0;
}

std::string_view reduction_of(Aggregate how) {
  if (how == Aggregate::min) return "min";
  return how == Aggregate::max ? "max" : "sum";
}

// The root above each place.
std::vector<int32_t> trees_of(const Forest& forest) {
  std::vector<int32_t> trees(forest.nodes.size(), -1), open;
  for (size_t tree = 0; tree < forest.roots.size(); ++tree) {
    open = {forest.roots[tree]};
    while (!open.empty()) {
      const auto place = static_cast<size_t>(open.back());
      open.pop_back();
      if (trees[place] >= 0) continue;
      trees[place] = static_cast<int32_t>(tree);
      const TreeNode& node = forest.nodes[place];
      if (node.mode != Branching::leaf) open.insert(open.end(), {node.if_true, node.if_false});
    }
  }
  return trees;
}

class Votes {
 public:
  Votes(Node& n, const Forest& forest) : node_(n), forest_(forest) {}

  ForestScores scores(Value x) {
    if (std::optional<Ints> order = by_target()) return grouped(x, *order);
    return by_table(x);
  }

 private:
  int64_t places() const { return static_cast<int64_t>(forest_.nodes.size()); }
  int64_t trees() const { return static_cast<int64_t>(forest_.roots.size()); }

  // If each tree votes for one target and in each of its leaves, and the targets have equally many:
  // the trees in the order of their targets.
  std::optional<Ints> by_target() const {
    if (trees() % forest_.targets != 0) return {};
    const std::vector<int32_t> tree_of = trees_of(forest_);
    Ints target(forest_.roots.size(), -1), counts(static_cast<size_t>(forest_.targets), 0);
    std::vector<bool> votes(forest_.nodes.size());
    for (const Vote& vote : forest_.votes) {
      const auto leaf = static_cast<size_t>(vote.leaf);
      if (tree_of[leaf] < 0) continue;
      int64_t& known = target[static_cast<size_t>(tree_of[leaf])];
      if (known >= 0 && known != vote.target) return {};
      known = vote.target;
      votes[leaf] = true;
    }
    for (size_t i = 0; i < votes.size(); ++i)
      if (forest_.nodes[i].mode == Branching::leaf && tree_of[i] >= 0 && !votes[i]) return {};
    for (int64_t t : target) {
      if (t < 0) return {};
      ++counts[static_cast<size_t>(t)];
    }
    if (std::ranges::any_of(counts, [&](int64_t c) { return c != counts[0]; })) return {};
    Ints order(forest_.roots.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {},
                      [&](int64_t i) { return std::pair(target[static_cast<size_t>(i)], i); });
    return order;
  }

  ForestScores grouped(Value x, const Ints& order) {
    Forest sorted = forest_;
    for (size_t i = 0; i < order.size(); ++i)
      sorted.roots[i] = forest_.roots[static_cast<size_t>(order[i])];
    std::vector<double> weights(forest_.nodes.size(), neutral(forest_.aggregate));
    for (const Vote& vote : forest_.votes) {
      double& weight = weights[static_cast<size_t>(vote.leaf)];
      weight = combined(forest_.aggregate, weight, vote.weight);
    }
    Value leaves = Walk(node_, sorted, x).leaves();
    Value each = take(constant(x.dtype(), {places()}, weights), leaves);
    each = reshape(each, {x.dim(0), forest_.targets, trees() / forest_.targets});
    return {averaged(reduce(reduction_of(forest_.aggregate), each, {2})), Value()};
  }

  ForestScores by_table(Value x) {
    if (places() > kMostVotes / forest_.targets)
      throw Failure{over_limit("a table of {} nodes by {} targets, at most {} entries are made",
                               places(), forest_.targets, kMostVotes)};
    const auto size = static_cast<size_t>(places() * forest_.targets);
    std::vector<double> weights(size, neutral(forest_.aggregate)), has(size, 0);
    for (const Vote& vote : forest_.votes) {
      const auto at = static_cast<size_t>(vote.leaf * forest_.targets + vote.target);
      weights[at] = combined(forest_.aggregate, weights[at], vote.weight);
      has[at] = 1;
    }
    const Dims dims = {places(), forest_.targets};
    Value leaves = Walk(node_, forest_, x).leaves();
    Value values = reduce(reduction_of(forest_.aggregate),
                          take(constant(x.dtype(), dims, weights), leaves), {1});
    if (all_vote(has)) return {averaged(values), Value()};
    Value voted = reduce("or", take(constant(DType::boolean, dims, has), leaves), {1});
    Value none = node_.builder().scalar(x.dtype(), 0);
    return {averaged(select(voted, values, none)), voted};
  }

  // True if every leaf votes for every target.
  bool all_vote(const std::vector<double>& has) const {
    for (size_t i = 0; i < has.size(); ++i) {
      const size_t place = i / static_cast<size_t>(forest_.targets);
      if (has[i] == 0 && forest_.nodes[place].mode == Branching::leaf) return false;
    }
    return true;
  }

  Value averaged(Value sums) const {
    if (forest_.aggregate != Aggregate::average) return sums;
    return sums / static_cast<double>(trees());
  }

  Value constant(DType dtype, const Dims& dims, const std::vector<double>& numbers) {
    return node_.builder().constant(Tensor::from_reals(Type::get(dtype, dims), numbers));
  }

  Node& node_;
  const Forest& forest_;
};

}  // namespace

ForestScores forest_scores(Node& n, const Forest& forest, Value x) {
  for (const TreeNode& node : forest.nodes)
    if (x.dim(1).is_static() && node.feature >= x.dim(1).value())
      n.bad("a branch tests feature {} of {}", node.feature, x.dim(1).value());
  if (forest.roots.empty()) n.bad("there are no trees");
  return Votes(n, forest).scores(x);
}

}  // namespace hone::onnx_io
