#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "learn/models/kernel_network.h"

// Boosted regression trees on the features of the kernel model: its rival.

namespace hone::bench {

struct TreeOptions {
  int rounds = 300, depth = 6;
  double rate = 0.08;
  double rows = 0.7, columns = 0.5;  // shares that a tree sees
  double least = 8;                  // samples of a leaf
  double pull = 4;                   // of leaves towards 0
  uint64_t seed = 0;
};

// Predicts log(time / analytic price), of each kernel's mean and within it.
class Trees {
 public:
  Trees(std::span<const DescribedKernel> kernels, const TreeOptions& options);
  double residual(const Features& features) const;

 private:
  struct Node {
    int feature = -1;  // -1: a leaf
    float at = 0;      // to the left: less or equal
    int left = 0, right = 0;
    float value = 0;
  };
  using Tree = std::vector<Node>;
  std::vector<Tree> trees_;
};

}  // namespace hone::bench
