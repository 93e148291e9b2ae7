#include "front/onnx/ops/ml_forest.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

namespace hone::onnx_io {
namespace {

constexpr int64_t kMostTreeNodes = int64_t{1} << 24;
constexpr std::pair<std::string_view, Branching> kModes[] = {
    {"BRANCH_LEQ", Branching::le}, {"BRANCH_LT", Branching::lt}, {"BRANCH_GTE", Branching::ge},
    {"BRANCH_GT", Branching::gt},  {"BRANCH_EQ", Branching::eq}, {"BRANCH_NEQ", Branching::ne},
    {"LEAF", Branching::leaf},
};

Branching mode_of(Node& n, std::string_view word) {
  for (const auto& [name, mode] : kModes)
    if (name == word) return mode;
  n.bad("a node has the mode '{}'", word);
}

// Lists that describe the same things have the same length.
template <class List>
void require_length(Node& n, const List& list, size_t wanted, std::string_view name) {
  if (list.size() != wanted) n.bad("{} has {} entries, {} are needed", name, list.size(), wanted);
}

// A list that may be missing.
Ints flags_of(Node& n, std::string_view name, size_t count) {
  Ints flags = n.ints(name);
  if (flags.empty()) return Ints(count, 0);
  require_length(n, flags, count, name);
  return flags;
}

int32_t place_in(Node& n, int64_t place, size_t count, std::string_view what) {
  if (place < 0 || std::cmp_greater_equal(place, count))
    n.bad("{} {} is none of the {}", what, place, count);
  return static_cast<int32_t>(place);
}

void check_count(size_t nodes) {
  if (std::cmp_greater(nodes, kMostTreeNodes))
    throw Failure{
        over_limit("the trees have {} nodes, at most {} are read", nodes, kMostTreeNodes)};
}

// Each branch is reached once, so walks end. `steps`: how many branches one of them becomes.
template <class Steps>
int64_t checked_depth(Node& n, const Forest& forest, const Steps& steps) {
  std::vector<bool> seen(forest.nodes.size());
  std::vector<std::pair<int32_t, int64_t>> open;
  for (int32_t root : forest.roots) open.push_back({root, 0});
  int64_t depth = 0;
  while (!open.empty()) {
    const auto [place, above] = open.back();
    open.pop_back();
    const TreeNode& node = forest.nodes[static_cast<size_t>(place)];
    depth = std::max(depth, above);
    if (node.mode == Branching::leaf) continue;
    if (node.feature < 0) n.bad("a branch tests feature {}", node.feature);
    if (seen[static_cast<size_t>(place)])
      n.bad("two branches, or two trees, lead to the branch at place {}", place);
    seen[static_cast<size_t>(place)] = true;
    const int64_t below = above + steps(place);
    open.push_back({node.if_true, below});
    open.push_back({node.if_false, below});
  }
  for (size_t i = 0; i < seen.size(); ++i)
    if (!seen[i] && forest.nodes[i].mode != Branching::leaf)
      n.bad("no root leads to the branch at place {}", i);
  return depth;
}

void check_votes(Node& n, const Forest& forest) {
  if (forest.targets < 1 || forest.targets > kMostTreeNodes)
    n.bad("there are {} targets", forest.targets);
  for (const Vote& vote : forest.votes) {
    if (vote.target < 0 || vote.target >= forest.targets)
      n.bad("a leaf votes for target {} of {}", vote.target, forest.targets);
    if (forest.nodes[static_cast<size_t>(vote.leaf)].mode != Branching::leaf)
      n.bad("the branch at place {} votes; leaves do", vote.leaf);
  }
}

Aggregate aggregate_of(Node& n, std::string_view word) {
  constexpr std::string_view kWords[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  for (size_t i = 0; i < std::size(kWords); ++i)
    if (kWords[i] == word) return static_cast<Aggregate>(i);
  n.bad("the aggregate function is '{}'", word);
}

// ---- Nodes named by tree and number -------------------------------------------------------------

class NumberedForest {
 public:
  NumberedForest(Node& n, const std::string& voters) : n_(n), voters_(voters) {}

  Forest read() {
    read_nodes();
    find_roots();
    read_votes();
    return std::move(forest_);
  }

 private:
  using Name = std::pair<int64_t, int64_t>;  // tree and number

  void read_nodes() {
    const Ints trees = n_.ints("nodes_treeids");
    const Ints numbers = n_.ints("nodes_nodeids"), features = n_.ints("nodes_featureids");
    const Ints yes = n_.ints("nodes_truenodeids"), no = n_.ints("nodes_falsenodeids");
    const std::vector<std::string> modes = n_.words("nodes_modes");
    const size_t count = trees.size();
    check_count(count);
    const Ints missing = flags_of(n_, "nodes_missing_value_tracks_true", count);
    const std::vector<double> splits = exact_reals(n_, "nodes_values");
    n_.ignore("nodes_hitrates");
    if (n_.version() >= 3) n_.ignore("nodes_hitrates_as_tensor");
    require_length(n_, numbers, count, "nodes_nodeids");
    require_length(n_, features, count, "nodes_featureids");
    require_length(n_, yes, count, "nodes_truenodeids");
    require_length(n_, no, count, "nodes_falsenodeids");
    require_length(n_, modes, count, "nodes_modes");
    require_length(n_, splits, count, "nodes_values");
    for (size_t i = 0; i < count; ++i)
      if (!places_.emplace(Name{trees[i], numbers[i]}, static_cast<int32_t>(i)).second)
        n_.bad("tree {} has node {} twice", trees[i], numbers[i]);
    forest_.nodes.resize(count);
    trees_ = trees;
    for (size_t i = 0; i < count; ++i) {
      TreeNode& node = forest_.nodes[i];
      node.mode = mode_of(n_, modes[i]);
      if (node.mode == Branching::leaf) continue;
      node.nan_is_true = missing[i] != 0;
      node.feature = features[i];
      node.split = splits[i];
      node.if_true = place({trees[i], yes[i]});
      node.if_false = place({trees[i], no[i]});
    }
  }

  int32_t place(Name name) {
    auto at = places_.find(name);
    if (at == places_.end()) n_.bad("tree {} has no node {}", name.first, name.second);
    return at->second;
  }

  // The node of each tree that no branch leads to.
  void find_roots() {
    std::vector<bool> is_child(forest_.nodes.size());
    for (const TreeNode& node : forest_.nodes) {
      if (node.mode == Branching::leaf) continue;
      is_child[static_cast<size_t>(node.if_true)] = true;
      is_child[static_cast<size_t>(node.if_false)] = true;
    }
    std::map<int64_t, int64_t> roots;  // of each tree
    for (size_t i = 0; i < is_child.size(); ++i) {
      int64_t& count = roots[trees_[i]];
      if (is_child[i]) continue;
      if (++count > 1) n_.bad("tree {} has more than one root", trees_[i]);
      forest_.roots.push_back(static_cast<int32_t>(i));
    }
    for (const auto& [tree, count] : roots)
      if (count == 0) n_.bad("tree {} has no root: its branches form a circle", tree);
  }

  void read_votes() {
    const Ints trees = n_.ints(voters_ + "_treeids"), numbers = n_.ints(voters_ + "_nodeids");
    const Ints targets = n_.ints(voters_ + "_ids");
    const std::vector<double> weights = exact_reals(n_, voters_ + "_weights");
    require_length(n_, numbers, trees.size(), voters_ + "_nodeids");
    require_length(n_, targets, trees.size(), voters_ + "_ids");
    require_length(n_, weights, trees.size(), voters_ + "_weights");
    for (size_t i = 0; i < trees.size(); ++i)
      forest_.votes.push_back({place({trees[i], numbers[i]}), targets[i], weights[i]});
  }

  Node& n_;
  const std::string& voters_;
  Forest forest_;
  Ints trees_;
  std::map<Name, int32_t> places_;
};

// ---- Branches and leaves in lists
// ----------------------------------------------------------------

std::vector<double> tensor_reals(Node& n, std::string_view name) {
  const Tensor tensor = n.tensor(name);
  check_count(static_cast<size_t>(tensor.elements()));
  std::vector<double> numbers(static_cast<size_t>(tensor.elements()));
  tensor.read_reals(0, std::span<double>(numbers));
  return numbers;
}

// The sets of the tests of membership, one after the other; NaN ends each.
class Members {
 public:
  explicit Members(Node& n) {
    if (n.has_attribute("membership_values")) values_ = tensor_reals(n, "membership_values");
  }

  // In order, each once.
  std::vector<double> next(Node& n) {
    if (at_ >= values_.size()) n.bad("membership_values has too few sets");
    std::vector<double> set;
    for (; at_ < values_.size() && !std::isnan(values_[at_]); ++at_) set.push_back(values_[at_]);
    ++at_;  // the NaN
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
    return set;
  }

 private:
  std::vector<double> values_;
  size_t at_ = 0;
};

// A test of membership as branches: halves of the set down to one number, which is compared.
class SetSearch {
 public:
  SetSearch(std::vector<TreeNode>& nodes, TreeNode test, const std::vector<double>& set)
      : nodes_(nodes), test_(test), set_(set) {}

  // Into the test's own place, and behind the others.
  void write(size_t place) { nodes_[place] = node(0, set_.size()); }

 private:
  TreeNode node(size_t from, size_t to) {
    TreeNode node = test_;
    if (to - from == 1) {
      node.mode = Branching::eq;
      node.split = set_[from];
      return node;
    }
    const size_t middle = from + (to - from) / 2;
    node.mode = Branching::lt;
    node.split = set_[middle];
    node.if_true = added(from, middle);
    node.if_false = added(middle, to);
    return node;
  }
  int32_t added(size_t from, size_t to) {
    const TreeNode one = node(from, to);
    nodes_.push_back(one);
    return static_cast<int32_t>(nodes_.size() - 1);
  }

  std::vector<TreeNode>& nodes_;
  const TreeNode test_;
  const std::vector<double>& set_;
};

void read_branches(Node& n, Forest& forest, size_t leaves) {
  const Ints features = n.ints("nodes_featureids");
  const Ints yes = n.ints("nodes_truenodeids"), no = n.ints("nodes_falsenodeids");
  const Ints yes_is_leaf = n.ints("nodes_trueleafs"), no_is_leaf = n.ints("nodes_falseleafs");
  const size_t count = features.size();
  check_count(count + leaves);
  const std::vector<double> modes = tensor_reals(n, "nodes_modes");
  const std::vector<double> splits = tensor_reals(n, "nodes_splits");
  const Ints missing = flags_of(n, "nodes_missing_value_tracks_true", count);
  n.ignore("nodes_hitrates");
  require_length(n, yes, count, "nodes_truenodeids");
  require_length(n, no, count, "nodes_falsenodeids");
  require_length(n, yes_is_leaf, count, "nodes_trueleafs");
  require_length(n, no_is_leaf, count, "nodes_falseleafs");
  require_length(n, modes, count, "nodes_modes");
  require_length(n, splits, count, "nodes_splits");
  const auto child = [&](int64_t place, bool is_leaf) {
    if (!is_leaf) return place_in(n, place, count, "branch");
    return static_cast<int32_t>(count) + place_in(n, place, leaves, "leaf");
  };
  forest.nodes.resize(count + leaves);
  for (size_t i = 0; i < count; ++i) {
    if (!(modes[i] >= 0 && modes[i] <= 6)) n.bad("a node has the mode {}", modes[i]);
    forest.nodes[i] = {.mode = static_cast<Branching>(static_cast<int>(modes[i])),
                       .nan_is_true = missing[i] != 0,
                       .feature = features[i],
                       .split = splits[i],
                       .if_true = child(yes[i], yes_is_leaf[i] != 0),
                       .if_false = child(no[i], no_is_leaf[i] != 0)};
  }
}

void search_sets(Forest& forest, const std::map<int32_t, std::vector<double>>& sets) {
  for (const auto& [place, set] : sets) {
    const auto at = static_cast<size_t>(place);
    TreeNode& test = forest.nodes[at];
    if (!set.empty()) {
      SetSearch(forest.nodes, test, set).write(at);
      continue;
    }
    test.mode = Branching::eq;
    test.split = std::nan("");  // equals nothing
  }
}

}  // namespace

std::vector<double> exact_reals(Node& n, const std::string& name) {
  if (n.version() >= 3 && n.has_attribute(name + "_as_tensor"))
    return tensor_reals(n, name + "_as_tensor");
  std::vector<double> numbers = n.reals(name);
  for (double& number : numbers) number = static_cast<double>(static_cast<float>(number));
  return numbers;
}

Forest read_numbered_forest(Node& n, const std::string& voters, int64_t targets) {
  Forest forest = NumberedForest(n, voters).read();
  forest.targets = targets;
  forest.depth = checked_depth(n, forest, [](int32_t) { return 1; });
  if (voters == "target") forest.aggregate = aggregate_of(n, n.word("aggregate_function", "SUM"));
  check_votes(n, forest);
  return forest;
}

Forest read_listed_forest(Node& n) {
  Forest forest;
  const Ints targets = n.ints("leaf_targetids");
  const std::vector<double> weights = tensor_reals(n, "leaf_weights");
  require_length(n, weights, targets.size(), "leaf_weights");
  read_branches(n, forest, targets.size());
  const size_t branches = forest.nodes.size() - targets.size();
  for (int64_t root : n.ints("tree_roots"))
    forest.roots.push_back(place_in(n, root, branches, "root"));
  for (size_t i = 0; i < targets.size(); ++i)
    forest.votes.push_back({static_cast<int32_t>(branches + i), targets[i], weights[i]});
  forest.targets = n.integer("n_targets", 1);
  const int64_t aggregate = n.integer("aggregate_function", 1);
  if (aggregate < 0 || aggregate > 3) n.bad("aggregate_function is {}", aggregate);
  forest.aggregate = static_cast<Aggregate>(aggregate);
  Members members(n);
  std::map<int32_t, std::vector<double>> sets;
  for (size_t i = 0; i < branches; ++i)
    if (forest.nodes[i].mode == Branching::member)
      sets.emplace(static_cast<int32_t>(i), members.next(n));
  forest.depth = checked_depth(n, forest, [&](int32_t place) {
    auto set = sets.find(place);
    return set == sets.end() ? 1 : 1 + static_cast<int>(std::bit_width(set->second.size()));
  });
  check_votes(n, forest);
  search_sets(forest, sets);
  check_count(forest.nodes.size());
  return forest;
}

}  // namespace hone::onnx_io
