#pragma once

#include <cstdint>
#include <unordered_map>

#include "tensor/tensor.h"

namespace hone {

// How many bytes some tensors take together. Memory that several of them share counts once; an
// absent tensor takes none.
class HeldBytes {
 public:
  void add(const Tensor& tensor) {
    if (!tensor || tensor.byte_size() == 0) return;
    Memory& memory = memories_[tensor.bytes().data()];
    if (memory.holders++ > 0) return;
    memory.bytes = tensor.byte_size();
    bytes_ += memory.bytes;
  }
  // Drops a tensor that was added.
  void drop(const Tensor& tensor) {
    if (!tensor || tensor.byte_size() == 0) return;
    const auto found = memories_.find(tensor.bytes().data());
    if (--found->second.holders > 0) return;
    bytes_ -= found->second.bytes;
    memories_.erase(found);
  }
  int64_t bytes() const { return bytes_; }

 private:
  struct Memory {
    int64_t holders = 0;
    int64_t bytes = 0;
  };
  std::unordered_map<const std::byte*, Memory> memories_;  // by where they begin
  int64_t bytes_ = 0;
};

}  // namespace hone
