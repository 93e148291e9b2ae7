#include "bench/prices/trees.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/rng.h"

namespace hone::bench {
namespace {

constexpr size_t kBins = 64;

}  // namespace

Trees::Trees(std::span<const DescribedKernel> kernels, const TreeOptions& options) {
  std::vector<const Features*> rows;
  std::vector<double> left;  // residual that no tree has explained yet
  for (const DescribedKernel& kernel : kernels)
    for (size_t i = 0; i < kernel.times.size(); ++i) {
      rows.push_back(&kernel.features[i]);
      left.push_back(static_cast<double>(kernel.times[i] - kernel.analytic[i]));
    }
  // Edges of bins are quantiles.
  std::array<std::vector<float>, kFeatures> edges;
  std::vector<std::array<uint8_t, kFeatures>> bins(rows.size());
  for (size_t f = 0; f < kFeatures; ++f) {
    std::vector<float> values;
    for (const Features* row : rows) values.push_back(row->all()[f]);
    std::ranges::sort(values);
    for (size_t b = 1; b < kBins; ++b) {
      const float edge = values[b * values.size() / kBins];
      if (edges[f].empty() || edge > edges[f].back()) edges[f].push_back(edge);
    }
    for (size_t r = 0; r < rows.size(); ++r)
      bins[r][f] = static_cast<uint8_t>(std::ranges::lower_bound(edges[f], rows[r]->all()[f]) -
                                        edges[f].begin());
  }
  Rng rng(options.seed);
  for (int round = 0; round < options.rounds; ++round) {
    std::vector<size_t> seen, columns;
    for (size_t r = 0; r < rows.size(); ++r)
      if (rng.chance(options.rows)) seen.push_back(r);
    for (size_t f = 0; f < kFeatures; ++f)
      if (rng.chance(options.columns)) columns.push_back(f);
    Tree tree;
    struct Open {
      int node, depth;
      std::vector<size_t> rows;
    };
    std::vector<Open> open;
    tree.emplace_back();
    open.push_back({0, 0, std::move(seen)});
    while (!open.empty()) {
      const Open now = std::move(open.back());
      open.pop_back();
      double sum = 0;
      for (size_t r : now.rows) sum += left[r];
      const auto count = static_cast<double>(now.rows.size());
      tree[static_cast<size_t>(now.node)].value =
          static_cast<float>(options.rate * sum / (count + options.pull));
      double most = 1e-9;
      int feature = -1;
      size_t bin = 0;
      for (size_t f : now.depth < options.depth ? columns : std::vector<size_t>()) {
        std::array<double, kBins> sums = {}, counts = {};
        for (size_t r : now.rows) {
          sums[bins[r][f]] += left[r];
          ++counts[bins[r][f]];
        }
        double below = 0, many = 0;
        for (size_t b = 0; b < edges[f].size(); ++b) {
          below += sums[b];
          many += counts[b];
          if (many < options.least || count - many < options.least) continue;
          const double gain = below * below / (many + options.pull) +
                              (sum - below) * (sum - below) / (count - many + options.pull) -
                              sum * sum / (count + options.pull);
          if (gain > most) most = gain, feature = static_cast<int>(f), bin = b;
        }
      }
      if (feature < 0) continue;
      const auto f = static_cast<size_t>(feature);
      Open a{static_cast<int>(tree.size()), now.depth + 1, {}};
      Open b{static_cast<int>(tree.size()) + 1, now.depth + 1, {}};
      for (size_t r : now.rows) (bins[r][f] <= bin ? a : b).rows.push_back(r);
      Node& node = tree[static_cast<size_t>(now.node)];
      node.feature = feature;
      node.at = edges[f][bin];
      node.left = a.node;
      node.right = b.node;
      tree.resize(tree.size() + 2);
      open.push_back(std::move(a));
      open.push_back(std::move(b));
    }
    for (size_t r = 0; r < rows.size(); ++r) {
      size_t n = 0;
      while (tree[n].feature >= 0)
        n = static_cast<size_t>(rows[r]->all()[static_cast<size_t>(tree[n].feature)] <= tree[n].at
                                    ? tree[n].left
                                    : tree[n].right);
      left[r] -= static_cast<double>(tree[n].value);
    }
    trees_.push_back(std::move(tree));
  }
}

double Trees::residual(const Features& features) const {
  double sum = 0;
  for (const Tree& tree : trees_) {
    size_t n = 0;
    while (tree[n].feature >= 0)
      n = static_cast<size_t>(features.all()[static_cast<size_t>(tree[n].feature)] <= tree[n].at
                                  ? tree[n].left
                                  : tree[n].right);
    sum += static_cast<double>(tree[n].value);
  }
  return sum;
}

}  // namespace hone::bench
