#pragma once

#include <span>
#include <vector>

#include "base/hash.h"
#include "ir/graph.h"

namespace hone {

// A key: an op with its operand types. Models repeat the same few applications, so facts about one
// are worth keeping.
struct ApplicationKey {
  Op op;
  std::vector<Type> operands;  // null for absent ones

  bool operator==(const ApplicationKey&) const = default;
  size_t hash() const {
    Hasher hasher(op.hash());
    for (Type type : operands) hasher.add(type ? type.hash() : 0);
    return hasher.value();
  }
};
struct ApplicationHash {
  size_t operator()(const ApplicationKey& key) const { return key.hash(); }
};

// The expansion of a composite as a graph; its inputs are the operands that are present.
// `form` is another spelling than the op's own.
Result<Graph> expansion(Op op, std::span<const Type> operands, ExpandFn form = nullptr);

}  // namespace hone
