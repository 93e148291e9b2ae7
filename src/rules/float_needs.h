#pragma once

#include <vector>

#include "rules/rule.h"

namespace hone {

// The values of the right side, ascending, that may overflow or vanish on inputs on which no value
// of the left side does; Rule::within says them. The judgement is by exponents, without numbers.
// Each element of the right side that a result depends on is a sum of products of input elements,
// and so is each element of the left side. An element may not overflow if the left side has a value
// that is a sum of the same terms. A sum over an axis that has them among its terms will do, since
// kernels add these up in any order. So will a sum of the same terms and others, if the others are
// those of values that are said, maybe of an input. A product may not vanish if the left side has a
// product of some of the same terms. Elements that a result does not depend on may be anything.
//
// A side that has no polynomials, or too large ones, is not judged: all that the right side
// computes is said.
Result<std::vector<ValueId>> float_needs(const Rule& rule);

// True if a node makes products or functions of its operands, which may be smaller than these.
bool may_vanish(const Graph& graph, NodeId n);

}  // namespace hone
