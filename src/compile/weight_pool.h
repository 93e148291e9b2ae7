#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "tensor/tensor.h"

namespace hone {

// Constants of images, each once: programs for other instructions may have the same.
class WeightPool {
 public:
  // The place of the constant's bytes among all().
  size_t add(const Tensor& constant) {
    std::vector<size_t>& known = known_[constant.content_hash()];
    for (size_t i : known)
      if (all_[i].same_bytes(constant)) return i;
    known.push_back(all_.size());
    all_.push_back(constant);
    return known.back();
  }
  std::span<const Tensor> all() const { return all_; }

 private:
  std::vector<Tensor> all_;
  std::map<uint64_t, std::vector<size_t>> known_;  // by hash of content
};

}  // namespace hone
