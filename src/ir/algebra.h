#pragma once

#include <span>

#include "ir/op.h"

namespace hone {

// Computes one element of an elementwise op in an algebra: exact numbers, or the forms that a proof
// compares. `x` has one element of each operand. An algebra is a class with
//   using Computed;             // an element, or a Result of one
//   bool takes_bools() const;   // whether and, or, xor and not are of bools, not of bits
// and these functions, each of which gives a Computed:
//   sum(a, b)  difference(a, b)  negative(a)  product(a, b)  quotient(a, b)
//   largest(a, b)  smallest(a, b)  size(a)  exponential(a)
//   choice(predicate, yes, no)  comparison(direction, a, b)
//   opposite(a)  both(a, b)  either(a, b)  differ(a, b)
//   function(op, x)             // all that is known of any other op is its name
template <class Algebra, class Element>
typename Algebra::Computed compute(Algebra& algebra, Op op, std::span<const Element> x) {
  switch (op.opcode()) {
    case Opcode::add: return algebra.sum(x[0], x[1]);
    case Opcode::sub: return algebra.difference(x[0], x[1]);
    case Opcode::neg: return algebra.negative(x[0]);
    case Opcode::mul: return algebra.product(x[0], x[1]);
    case Opcode::div: return algebra.quotient(x[0], x[1]);
    case Opcode::max: return algebra.largest(x[0], x[1]);
    case Opcode::min: return algebra.smallest(x[0], x[1]);
    case Opcode::abs: return algebra.size(x[0]);
    case Opcode::exp: return algebra.exponential(x[0]);
    case Opcode::select: return algebra.choice(x[0], x[1], x[2]);
    case Opcode::compare: return algebra.comparison(op.word("direction"), x[0], x[1]);
    default: break;
  }
  if (!algebra.takes_bools()) return algebra.function(op, x);
  switch (op.opcode()) {
    case Opcode::not_: return algebra.opposite(x[0]);
    case Opcode::and_: return algebra.both(x[0], x[1]);
    case Opcode::or_: return algebra.either(x[0], x[1]);
    case Opcode::xor_: return algebra.differ(x[0], x[1]);
    default: return algebra.function(op, x);
  }
}

}  // namespace hone
