#pragma once

#include <cstdint>
#include <vector>

#include "front/onnx/node.h"

// Decision trees as ai.onnx.ml writes them. They are checked, and every form of a node becomes one
// Forest.

namespace hone::onnx_io {

enum class Branching : uint8_t { le, lt, ge, gt, eq, ne, member, leaf };

struct TreeNode {
  Branching mode = Branching::leaf;
  bool nan_is_true = false;
  int64_t feature = 0;
  double split = 0;
  int32_t if_true = 0;  // places in Forest::nodes
  int32_t if_false = 0;
};

struct Vote {
  int32_t leaf = 0;
  int64_t target = 0;
  double weight = 0;
};

enum class Aggregate : uint8_t { average, sum, min, max };

struct Forest {
  std::vector<TreeNode> nodes;  // of all trees
  std::vector<int32_t> roots;
  std::vector<Vote> votes;  // a leaf may have several, or none
  int64_t targets = 1;
  int64_t depth = 0;  // the most branches on a way from a root to a leaf
  Aggregate aggregate = Aggregate::sum;
};

// The forest of TreeEnsembleRegressor ("target") and TreeEnsembleClassifier ("class"): nodes named
// by tree and number. `targets`: how many a vote may name.
Forest read_numbered_forest(Node& n, const std::string& voters, int64_t targets);
// The forest of TreeEnsemble: branches and leaves in lists of their own. Tests of membership become
// branches that search the set.
Forest read_listed_forest(Node& n);

// A list of floats, which a tensor may give instead from version 3 on; each as the file has it.
std::vector<double> exact_reals(Node& n, const std::string& name);

// The result of the trees for each row of x [rows, features], in its element type.
struct ForestScores {
  Value values;     // [rows, targets]; 0 where no leaf votes for the target
  Value has_votes;  // whether one does; absent if that is so in any row
};
ForestScores forest_scores(Node& n, const Forest& forest, Value x);

}  // namespace hone::onnx_io
