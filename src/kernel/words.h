#pragma once

#include <optional>

#include "kernel/contraction.h"

namespace hone {

// A gemm whose operands are words of 32 bits: neighbours along one dim of the reduction, whose
// products one instruction adds to one sum. Quads are four bytes, u8 and i8, with sums of i32;
// pairs are two bf16 with sums of f32. After the end of the dim, words are filled with 0.
struct WordProducts {
  Products products = Products::quads;
  int iter = 0;  // of the node's relation: the dim of the reduction that words are taken along

  int64_t each() const { return products == Products::pairs ? 2 : 4; }  // numbers of a word
};

// The products of words of a node, along the longest dim that both operands go along element by
// element; whole words are better. None: its numbers are others, or, where words are pairs,
// denormal ones do matter.
std::optional<WordProducts> word_products(GraphView graph, NodeId node,
                                          const AccessRelation& relation);

struct WordShape {
  int64_t each = 0;         // numbers of a word
  size_t first_side = 0;    // the operand that the instruction takes first: of quads that of u8
  int inner = 0;            // the dim of the reduction that words are taken along
  int64_t inner_words = 0;  // that a block takes along it
  int64_t words = 0;        // and along all dims of the reduction
};

// Or why the schedule, of a gemm, cannot be carried out so.
Result<WordShape> word_shape(const KernelBody& body, const Contraction& contraction,
                             const KernelSpace& space, const Schedule& schedule);

// Where the words of an operand lie in memory, if they do: each is neighbours of a parameter. Their
// bits may have to be changed, or each byte holds several numbers.
struct WordSource {
  ValueId parameter;
  int64_t each;  // numbers of a word
  // The first element in the memory's dims: by the space's dims, of which the one that words are
  // taken along counts words.
  std::vector<IndexExpr> index;
  uint8_t flip = 0;  // exclusive or with each byte
  // Then the lowest bits of each byte, shifted down by as many bits as this says, by the space's
  // dims but the one that words are taken along. All of the byte has no shift.
  uint8_t mask = 0xff;
  IndexExpr shift = 0;
  bool takes_fields() const { return mask != 0xff; }
};
std::optional<WordSource> word_source(const KernelBody& body, const Contraction& contraction,
                                      const KernelSpace& space, const WordShape& shape,
                                      size_t side);

}  // namespace hone
