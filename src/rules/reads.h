#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "ir/op_def.h"

namespace hone {

// Tells which operand elements make each element of an op's result. It spells this out from the
// op's access relation for one list of operand types.
struct Reads {
  static constexpr int32_t kNothing = -1;

  size_t operands = 0;
  // Row r belongs to element e for begin[e] <= r < begin[e + 1], and holds what it reads of each
  // operand: an element, or nothing. Rows that read nothing at all are left out.
  std::vector<uint32_t> begin;
  std::vector<int32_t> rows;

  int32_t at(size_t row, size_t operand) const { return rows[row * operands + operand]; }
};

// Remembers the reads of what it was asked before, up to 256 MB.
class ReadTables {
 public:
  // Unsupported: ops without a relation of one result, or that data decides, and too many points.
  Result<const Reads*> of(Op op, std::span<const Type> operands, Type result);

 private:
  struct Key {
    Op op;
    std::vector<Type> operands;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const;
  };
  std::unordered_map<Key, Reads, Hash> tables_;
  size_t numbers_ = 0;  // in all of them
};

}  // namespace hone
