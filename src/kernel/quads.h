#pragma once

#include <optional>

#include "kernel/contraction.h"

namespace hone {

// A gemm whose products are quads: the operands are u8 and i8, the sums i32. A word has the bytes
// of four neighbours along one dim of the reduction; behind its end they are 0.
struct QuadShape {
  static constexpr int64_t kBytes = 4;

  size_t unsigned_side = 0;  // the operand of u8
  int inner = 0;             // the dim of the reduction that words are taken along
  int64_t inner_words = 0;   // that a block takes along it
  int64_t words = 0;         // and along all dims of the reduction
};

// Or why the schedule, of a gemm, cannot be carried out so.
Result<QuadShape> quad_shape(const KernelBody& body, const Contraction& contraction,
                             const KernelSpace& space, const Schedule& schedule);

// Of a node's relation: the reduction dim that words are taken along, the longest that both
// operands go along element by element; whole words are better. None: the node multiplies no bytes
// to i32.
std::optional<int> quad_dim(GraphView graph, NodeId node, const AccessRelation& relation);

// Where the words of an operand lie in memory, if they do: each is four neighbours of a parameter,
// whose bits may have to be changed.
struct WordSource {
  ValueId parameter;
  // Of the memory's dims, the first element: by the space's dims, of which the one that words are
  // taken along counts words.
  std::vector<IndexExpr> index;
  uint8_t flip = 0;  // exclusive or with each byte
};
std::optional<WordSource> word_source(const KernelBody& body, const Contraction& contraction,
                                      const KernelSpace& space, int inner, size_t side);

}  // namespace hone
